# SPDX-License-Identifier: Apache-2.0
"""From the name of a policy to the policy: checkpoints of ours on a backend, other kinds by a YAML file.

checkpoints/ball/draft.json     a VQ-BeT or a flow: `DIRECTORY/NAME`, on the backend that is asked for
anywhere/draft.yaml             `kind: NAME`, a key of `POLICIES`, and the arguments of that
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from adahi_ros.core.checkpoint_files import CheckpointError, kind_of
from adahi_ros.core.registry import Registry
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.policies.corrector.corrector_checkpoint import KIND as CORRECTOR
from adahi_ros.policies.corrector.corrector_checkpoint import load_corrector
from adahi_ros.policies.corrector.distilled import DistilledPolicy
from adahi_ros.policies.flow.flow_checkpoint import KIND as FLOW
from adahi_ros.policies.flow.flow_checkpoint import load_flow
from adahi_ros.policies.interface import Policy
from adahi_ros.policies.networks.onnx_cache import OpenSession, int8_session, onnx_session
from adahi_ros.policies.retrieval import KIND as RETRIEVAL
from adahi_ros.policies.retrieval import load_retrieval
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint

COMPUTE = ("device", "dtype", "compile")
"""What may be told of where and how a policy computes; see `OnTorch`."""
DTYPES = ("float32", "bfloat16", "float16")


def _torch(path: Path, **compute: Any) -> Policy:
    kind = kind_of(path)
    if kind == CORRECTOR:
        _told_nothing(compute, f"{path}, which runs on ONNX Runtime")
        return DistilledPolicy(load_corrector(path))
    if kind == RETRIEVAL:
        _told_nothing(compute, f"{path}, which runs on numpy")
        return load_retrieval(path)
    if kind == FLOW:
        from adahi_ros.policies.flow.flow_torch import torch_policy

        return torch_policy(load_flow(path), **compute)
    from adahi_ros.policies.vqbet.vqbet_torch import TorchPolicy

    return TorchPolicy(load_checkpoint(path), **compute)


def _onnxruntime(path: Path, **compute: Any) -> Policy:
    _told_nothing(compute, "the backend onnxruntime, which computes on the CPU; torch takes it")
    return _on_onnxruntime(path, onnx_session)


def _int8(path: Path, **compute: Any) -> Policy:
    """Run a VQ-BeT or a flow with eight-bit integers; what was distilled is too small to gain by it."""
    _told_nothing(compute, "the backend int8, which computes on the CPU; torch takes it")
    return _on_onnxruntime(path, int8_session)


def _on_onnxruntime(path: Path, open_session: OpenSession) -> Policy:
    kind = kind_of(path)
    if kind == CORRECTOR:
        return DistilledPolicy(load_corrector(path))
    if kind == RETRIEVAL:
        return load_retrieval(path)
    if kind == FLOW:
        from adahi_ros.policies.flow.flow_onnx import onnx_policy

        return onnx_policy(load_flow(path), open_session)
    from adahi_ros.policies.vqbet.vqbet_onnx import OnnxPolicy

    return OnnxPolicy(load_checkpoint(path), open_session)


def _lerobot(path: Path, **compute: Any) -> Policy:
    """Run a folder of LeRobot's, or what is ours, as the draft beside a target of LeRobot's, on torch."""
    from adahi_ros.policies.lerobot.lerobot_vqbet import LeRobotPolicy

    return LeRobotPolicy(path, **compute) if path.is_dir() else _torch(path, **compute)


def _told_nothing(compute: Mapping[str, Any], whose: str) -> None:
    """Refuse what was told to who does not take it.

    Raises:
        ValueError: something was; names it.
    """
    for name, value in compute.items():
        raise ValueError(f"{name}: {value!r}, must not be given for {whose}")


BACKENDS: dict[str, Callable[..., Policy]] = {
    "int8": _int8,
    "lerobot": _lerobot,
    "onnxruntime": _onnxruntime,
    "torch": _torch,
}


def _when_made(place: str, takes: tuple[str, ...] = ()) -> Callable[..., Policy]:
    """Return the class at "module:class", imported when one is made: its packages may not be here.

    Args:
        place: of the class.
        takes: see `POLICIES`.
    """

    def make(folder: Path, /, **values: Any) -> Policy:
        module, _, name = place.partition(":")
        policy: Policy = getattr(import_module(module), name)(folder, **values)
        return policy

    make.takes = takes  # type: ignore[attr-defined]  # as a class of another package may have it
    return make


POLICIES: Registry[Callable[..., Policy]] = Registry(
    "adahi_ros.policies",
    {
        "committee": _when_made("adahi_ros.policies.committee:load_committee"),
        "groot": _when_made("adahi_ros.policies.remote.groot:GrootTarget"),
        "lerobot": _when_made("adahi_ros.policies.remote.lerobot_target:LeRobotTarget", COMPUTE),
        "openpi": _when_made("adahi_ros.policies.remote.openpi:OpenPiTarget"),
        "switched": _when_made("adahi_ros.policies.switched:switched"),
    },
)
"""Kinds of policies that YAML files describe: called with the file's folder, and by name with arguments.

One may have an attribute `takes`: those of `COMPUTE` that are arguments of it.
"""


DESCRIBED = (".yaml", ".yml")
"""How the name of a file that describes a policy may end; only the first may be left out."""


def is_policy(path: Path) -> bool:
    """Whether there is a policy at `DIRECTORY/NAME`."""
    return any(path.with_name(path.name + suffix).is_file() for suffix in (".json", ".yaml"))


def description_of(path: Path) -> Path:
    """Return the YAML file that describes a policy of another kind, if there is one."""
    return path if path.suffix in DESCRIBED else path.with_name(path.name + DESCRIBED[0])


def load_policy(path: Path, backend: str, **compute: Any) -> Policy:
    """Load a policy from `DIRECTORY/NAME`, or LeRobot's from its folder, to run on a backend.

    What a YAML file describes runs as its kind does, whatever the backend.

    Args:
        path: of the policy.
        backend: a key of `BACKENDS`.
        compute: by the names of `COMPUTE`, where and how it computes, whatever its own file says.

    Raises:
        CheckpointError: the checkpoint cannot be used.
        ValueError: there is no such backend, or what `compute` says cannot be; names it.
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
        return BACKENDS[backend](path, **compute)
    if described.with_suffix(".json").is_file():
        raise CheckpointError(f"{path}: there is a .json and a .yaml of that name, must be one of them")
    return _described(described, compute)


def _described(path: Path, compute: Mapping[str, Any]) -> Policy:
    try:
        values = read_yaml(path)
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from None
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise CheckpointError(f"{path}: must be a mapping from names, with a kind")
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in POLICIES:
        raise CheckpointError(f"{path}: kind: {kind!r}, must be one of {', '.join(POLICIES)}")
    make = POLICIES[kind]
    takes = getattr(make, "takes", ())
    others = {name: value for name, value in compute.items() if name not in takes}
    _told_nothing(others, f"a target of the kind {kind}, which takes {' and '.join(takes) or 'none such'}")
    try:
        return make(path.parent, **{**values, **compute})
    except Exception as error:  # whatever another package raises as it makes its policy
        raise CheckpointError(f"{path}: kind: {kind!r}: {type(error).__name__}: {error}") from error
