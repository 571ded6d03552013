# SPDX-License-Identifier: Apache-2.0
"""Kinds of policies by name; a new one is a line here, or an entry point of another package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from adahi_ros.core.registry import Registry
from adahi_ros.policies.interface import Policy

if TYPE_CHECKING:
    from adahi_ros.policies.networks.onnx_cache import OpenSession

COMPUTE = ("device", "dtype", "compile")
"""Where and how a policy computes; see `OnTorch`."""
DTYPES = ("float32", "bfloat16", "float16")
SESSIONS: Registry[OpenSession] = Registry(
    "adahi_ros.backends", {"onnxruntime": "adahi_ros.policies.networks.onnx_cache:onnx_session"}
)
"""Backends on ONNX Runtime: the function that opens an exported network there."""
BACKENDS = tuple(sorted((*SESSIONS, "torch")))
"""Backends that run our checkpoints."""

POLICIES: Registry[Callable[..., Policy]] = Registry(
    "adahi_ros.policies",
    {
        "groot": "adahi_ros.policies.remote.groot:GrootTarget",
        "lerobot": "adahi_ros.policies.remote.lerobot_target:LeRobotTarget",
        "lerobot_remote": "adahi_ros.policies.remote.lerobot_remote:LeRobotRemoteTarget",
        "openpi": "adahi_ros.policies.remote.openpi:OpenPiTarget",
    },
)
"""Kinds of policies in YAML files: called with the file's folder, and with keyword arguments.

Arguments in `COMPUTE` are also set by the parameters of a verifier.
"""


class CheckpointKind(NamedTuple):
    """A way to make a policy from `DIRECTORY/NAME.json` and the files beside it.

    Attributes:
        load: reads a `NetworkCheckpoint`.
        policy: makes a policy of it, its runtime and its device; None where `load` returns a policy that runs
            the same on every backend.
    """

    load: Callable[[Path], Any]
    policy: Callable[..., Policy] | None = None


CHECKPOINTS: Registry[CheckpointKind] = Registry(
    "adahi_ros.checkpoints",
    {
        "corrector": "adahi_ros.policies.corrector.distilled:DISTILLED",
        "flow": "adahi_ros.policies.flow.flow_policy:FLOW",
        "vqbet": "adahi_ros.policies.vqbet.vqbet_checkpoint:VQBET",
    },
)
"""Kinds of checkpoints, by the `kind` in their JSON file."""
UNNAMED = "vqbet"
"""The kind of a checkpoint without one."""
