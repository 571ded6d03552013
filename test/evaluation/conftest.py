from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from adahi_ros.evaluation.evaluate import Policies
from adahi_ros.policy.backends import load_policy
from adahi_ros.speculation.parameter_file import Calibration
from adahi_ros.speculation.records import Reason, StepRecord


@pytest.fixture(scope="session")
def policies(checkpoints: Path) -> Policies:
    return Policies(load_policy(checkpoints / "draft", "torch"), load_policy(checkpoints / "target", "torch"))


@pytest.fixture(scope="session")
def calibration(policies: Policies) -> Calibration:
    """Thresholds that the deviation of these drafts is above in some steps and below in others."""
    thresholds = {"deviation": 0.4, "uncertainty": 0.984, "random": 0.4}
    return Calibration(
        "ball", policies.draft.digest, policies.target.digest, 0.5, "std", 1.0, 0.6, thresholds
    )


@pytest.fixture(scope="session")
def step_record() -> Callable[..., StepRecord]:
    """From what is different to a step: verified and accepted unless told otherwise."""

    def make(**changes: object) -> StepRecord:
        values: dict[str, object] = {
            "stamp_ns": 0,
            "robot_id": "robot",
            "episode": 0,
            "step": 0,
            "gate": "deviation",
            "deviation": 1.0,
            "score": 1.0,
            "threshold": 0.5,
            "transmitted": True,
            "verified": True,
            "accepted": (True, True),
            "reason": Reason.NONE,
            "message": "",
            "draft_action": (0.0, 0.0),
            "action": (0.0, 0.0),
            "draft_ms": 0.1,
            "verify_ms": 1.0,
            "target_compute_ms": 0.2,
            "total_ms": 1.5,
            "request_bytes": 400,
            "response_bytes": 60,
        }
        return StepRecord(**{**values, **changes})  # type: ignore[arg-type]

    return make
