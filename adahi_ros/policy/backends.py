"""The inference backends, by the name that the `backend` parameter takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from adahi_ros.policy.interface import Policy
from adahi_ros.policy.vqbet.checkpoint import load_checkpoint


def _torch(path: Path) -> Policy:
    from adahi_ros.policy.vqbet.torch_backend import TorchPolicy

    return TorchPolicy(load_checkpoint(path))


def _onnxruntime(path: Path) -> Policy:
    from adahi_ros.policy.vqbet.onnx_backend import OnnxPolicy

    return OnnxPolicy(load_checkpoint(path))


def _lerobot(path: Path) -> Policy:
    """Run a folder of LeRobot's, or what is ours, as the draft beside a target of LeRobot's, on torch."""
    from adahi_ros.policy.lerobot.vqbet import LeRobotPolicy

    return LeRobotPolicy(path) if path.is_dir() else _torch(path)


BACKENDS: dict[str, Callable[[Path], Policy]] = {
    "lerobot": _lerobot,
    "onnxruntime": _onnxruntime,
    "torch": _torch,
}


def load_policy(path: Path, backend: str) -> Policy:
    """Load a policy from `DIRECTORY/NAME`, or LeRobot's from its folder, to run on a backend.

    Raises:
        CheckpointError: the checkpoint cannot be used.
        ValueError: no such backend.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend: {backend!r}, must be one of {', '.join(sorted(BACKENDS))}")
    return BACKENDS[backend](path)
