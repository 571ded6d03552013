"""The inference backends, by the name that the `backend` parameter takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from adahi_ros.policy.checkpoint import Checkpoint, load_checkpoint
from adahi_ros.policy.interface import Policy


def _torch(checkpoint: Checkpoint) -> Policy:
    from adahi_ros.policy.torch_backend import TorchPolicy

    return TorchPolicy(checkpoint)


def _onnxruntime(checkpoint: Checkpoint) -> Policy:
    from adahi_ros.policy.onnx_backend import OnnxPolicy

    return OnnxPolicy(checkpoint)


BACKENDS: dict[str, Callable[[Checkpoint], Policy]] = {"onnxruntime": _onnxruntime, "torch": _torch}


def load_policy(path: Path, backend: str) -> Policy:
    """Load a policy from `DIRECTORY/NAME` to run on a backend.

    Raises:
        CheckpointError: the checkpoint cannot be used.
        ValueError: no such backend.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend: {backend!r}, must be one of {', '.join(sorted(BACKENDS))}")
    return BACKENDS[backend](load_checkpoint(path))
