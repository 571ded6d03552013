"""From the name of a policy to the policy: checkpoints of ours on a backend, other kinds by a YAML file.

checkpoints/ball/draft.json     a VQ-BeT or a flow: `DIRECTORY/NAME`, on the backend that is asked for
anywhere/draft.yaml             `kind: NAME`, a key of `POLICIES`, and the arguments of that
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from adahi_ros.networks.checkpoint_files import CheckpointError, kind_of
from adahi_ros.policy.corrector.checkpoint import KIND as CORRECTOR
from adahi_ros.policy.corrector.checkpoint import load_corrector
from adahi_ros.policy.corrector.distilled import DistilledPolicy
from adahi_ros.policy.flow.checkpoint import KIND as FLOW
from adahi_ros.policy.flow.checkpoint import load_flow
from adahi_ros.policy.interface import Policy
from adahi_ros.policy.vqbet.checkpoint import load_checkpoint
from adahi_ros.registry import Registry
from adahi_ros.yaml_files import read_yaml


def _torch(path: Path) -> Policy:
    kind = kind_of(path)
    if kind == CORRECTOR:
        return DistilledPolicy(load_corrector(path))
    if kind == FLOW:
        from adahi_ros.policy.flow.torch_backend import torch_policy

        return torch_policy(load_flow(path))
    from adahi_ros.policy.vqbet.torch_backend import TorchPolicy

    return TorchPolicy(load_checkpoint(path))


def _onnxruntime(path: Path) -> Policy:
    kind = kind_of(path)
    if kind == CORRECTOR:
        return DistilledPolicy(load_corrector(path))
    if kind == FLOW:
        from adahi_ros.policy.flow.onnx_backend import onnx_policy

        return onnx_policy(load_flow(path))
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


def _when_made(place: str) -> Callable[..., Policy]:
    """Return the class at "module:class", imported when one is made: its packages may not be here."""

    def make(folder: Path, /, **values: Any) -> Policy:
        module, _, name = place.partition(":")
        policy: Policy = getattr(import_module(module), name)(folder, **values)
        return policy

    return make


POLICIES: Registry[Callable[..., Policy]] = Registry(
    "adahi_ros.policies",
    {
        "groot": _when_made("adahi_ros.targets.groot:GrootTarget"),
        "lerobot": _when_made("adahi_ros.targets.lerobot:LeRobotTarget"),
        "openpi": _when_made("adahi_ros.targets.openpi:OpenPiTarget"),
    },
)
"""Kinds of policies that YAML files describe: called with the file's folder, and by name with arguments."""


DESCRIBED = (".yaml", ".yml")
"""How the name of a file that describes a policy may end; only the first may be left out."""


def is_policy(path: Path) -> bool:
    """Whether there is a policy at `DIRECTORY/NAME`."""
    return any(path.with_name(path.name + suffix).is_file() for suffix in (".json", ".yaml"))


def description_of(path: Path) -> Path:
    """Return the YAML file that describes a policy of another kind, if there is one."""
    return path if path.suffix in DESCRIBED else path.with_name(path.name + DESCRIBED[0])


def load_policy(path: Path, backend: str) -> Policy:
    """Load a policy from `DIRECTORY/NAME`, or LeRobot's from its folder, to run on a backend.

    What a YAML file describes runs as its kind does, whatever the backend.

    Raises:
        CheckpointError: the checkpoint cannot be used.
        ValueError: no such backend.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend: {backend!r}, must be one of {', '.join(sorted(BACKENDS))}")
    try:
        described = description_of(path)
        is_described = described.is_file()
    except (ValueError, OSError) as error:  # no name that a file may have, such as / or one that is too long
        reason = getattr(error, "strerror", None) or error
        raise CheckpointError(f"{path}: no such checkpoint ({reason})") from None
    if not is_described and described == path:
        raise CheckpointError(f"{path}: there is no such file")
    if not is_described:
        return BACKENDS[backend](path)
    if described.with_suffix(".json").is_file():
        raise CheckpointError(f"{path}: there is a .json and a .yaml of that name, must be one of them")
    return _described(described)


def _described(path: Path) -> Policy:
    try:
        values = read_yaml(path)
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from None
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise CheckpointError(f"{path}: must be a mapping from names, with a kind")
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in POLICIES:
        raise CheckpointError(f"{path}: kind: {kind!r}, must be one of {', '.join(POLICIES)}")
    try:
        return POLICIES[kind](path.parent, **values)
    except Exception as error:  # whatever another package raises as it makes its policy
        raise CheckpointError(f"{path}: kind: {kind!r}: {type(error).__name__}: {error}") from error
