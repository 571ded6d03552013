"""A policy behind openpi's protocol, served by a test; who imports this is skipped where it cannot be."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from adahi_lab.evaluation.plain_contract import plain_values
from adahi_lab.tasks import make

REASON = "pip install -r requirements/remote_targets.txt"
pytest.importorskip("msgpack", reason=REASON)
pytest.importorskip("websockets.sync.server", reason=REASON)

from test.policies.remote.openpi_server import PolicyServer, Serving  # noqa: E402

__all__ = ["PolicyServer", "camera_contract", "served", "target_file"]


def camera_contract(rows: int, columns: int) -> dict[str, Any]:
    """Return the contract of the ball's robot with a camera, whose images are for the target."""
    spec = make("ball").spec
    contract = plain_values("arm", 20.0, spec.joint_names, 4, 0, spec.commanded, spec.command_field)
    contract["observations"]["observation.images.camera"] = {
        "channel": {"topic": "camera/image_raw", "type": "sensor_msgs/msg/Image"},
        "apply": [{"resize": [rows, columns]}],
        "align": {"strategy": "asof", "timeline": "header", "tolerance_ms": 0.0},
    }
    return {**contract, "images_for_target": True, "max_age_s": 60.0}


def target_file(port: int, horizon: int, rows: int, columns: int) -> dict[str, Any]:
    """Return the file of a target on this machine that reads joints, an image and an instruction."""
    return {
        "kind": "openpi",
        "url": f"ws://127.0.0.1:{port}",
        "timeout_s": 10.0,
        "horizon": horizon,
        "rate_hz": 20.0,
        "action_names": ["positions.plate_roll_joint", "positions.plate_pitch_joint"],
        "state": {"observation.joints": {"size": 2, "as": "observation/state"}},
        "images": {"observation.images.camera": {"size": [rows, columns], "as": "observation/image"}},
        "instruction": True,
    }


@contextlib.contextmanager
def served(plan_of: Callable[[dict[str, Any]], np.ndarray]) -> Iterator[PolicyServer]:
    """Serve for a while what makes a plan (T, A) float32 of an observation by the policy's names."""
    policy = PolicyServer(Serving(lambda observation: {"actions": plan_of(observation)}))
    policy.start()
    yield policy
    policy.stop()
