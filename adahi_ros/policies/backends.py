# SPDX-License-Identifier: Apache-2.0
"""Loads a policy by name: our checkpoints on a backend, other kinds by a YAML file.

checkpoints/ball/draft.json     a VQ-BeT or a flow: `DIRECTORY/NAME`, on the requested backend
anywhere/draft.yaml             `kind: NAME`, a key of `POLICIES`, and the arguments of that kind
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from adahi_ros.core.checkpoint_files import CheckpointError, description_file, kind_of
from adahi_ros.core.gone_names import gone
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.policies.interface import Policy
from adahi_ros.policies.registry import BACKENDS, CHECKPOINTS, COMPUTE, POLICIES, SESSIONS, UNNAMED

if TYPE_CHECKING:
    from adahi_ros.policies.networks.network_checkpoint import NetworkCheckpoint


def _on_backend(path: Path, backend: str, compute: Mapping[str, Any]) -> Policy:
    """Run one of our checkpoints."""
    if backend in SESSIONS:
        _refuse_given(compute, f"the backend {backend}, which computes on the CPU; torch takes it")
    kind = kind_of(path) or UNNAMED
    if kind not in CHECKPOINTS:
        raise CheckpointError(f"{description_file(path)}: {CHECKPOINTS.refusal('kind', kind)}")
    load, make = CHECKPOINTS[kind]
    if make is None:
        _refuse_given(compute, f"{path}, which runs the same on every backend")
        return cast(Policy, load(path))
    checkpoint: NetworkCheckpoint[Any] = load(path)
    if backend in SESSIONS:
        return make(checkpoint, checkpoint.on_onnx(SESSIONS[backend]))
    run = checkpoint.on_torch(**compute)
    return make(checkpoint, run, str(run.device))


def _refuse_given(compute: Mapping[str, object], by: str) -> None:
    """Refuse arguments that are not accepted.

    Raises:
        ValueError: there is one; names it.
    """
    for name, value in compute.items():
        raise ValueError(f"{name}: {value!r}, must not be given for {by}")


DESCRIBED = (".yaml", ".yml")
"""Suffixes of a file that describes a policy; only the first may be left out."""


def is_policy(path: Path) -> bool:
    """Whether there is a policy at `DIRECTORY/NAME`."""
    return any(path.with_name(path.name + suffix).is_file() for suffix in (".json", ".yaml"))


def description_of(path: Path) -> Path:
    """Return the YAML file that describes a policy of another kind, if there is one."""
    return path if path.suffix in DESCRIBED else path.with_name(path.name + DESCRIBED[0])


def load_policy(path: Path, backend: str, **compute: object) -> Policy:
    """Load a policy from `DIRECTORY/NAME`, to run on a backend.

    What a YAML file describes runs as its kind does, whatever the backend.

    Args:
        path: of the policy.
        backend: one of `BACKENDS`.
        compute: by the names of `COMPUTE`, where and how it computes, whatever its own file says.

    Raises:
        CheckpointError: the checkpoint cannot be used.
        ValueError: the backend does not exist, or a value of `compute` is not possible; names it.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend: {backend!r}{gone(backend)}, must be one of {', '.join(BACKENDS)}")
    try:
        described = description_of(path)
        is_described = described.is_file()
    except (ValueError, OSError) as error:  # not a valid file name, such as / or one that is too long
        reason = getattr(error, "strerror", None) or error
        raise CheckpointError(f"{path}: no such checkpoint ({reason})") from None
    if not is_described and described == path:
        raise CheckpointError(f"{path}: there is no such file")
    if not is_described:
        return _on_backend(path, backend, compute)
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
        raise CheckpointError(f"{path}: {POLICIES.refusal('kind', kind)}")
    try:
        make = POLICIES[kind]
    except ImportError as error:
        raise CheckpointError(f"{path}: kind: {kind!r}: {type(error).__name__}: {error}") from error
    takes = [name for name in COMPUTE if name in signature(make).parameters]
    others = {name: value for name, value in compute.items() if name not in takes}
    _refuse_given(others, f"a target of the kind {kind}, which takes {' and '.join(takes) or 'none such'}")
    try:
        return make(path.parent, **{**values, **compute})
    except Exception as error:  # another package's constructor may raise anything
        raise CheckpointError(f"{path}: kind: {kind!r}: {type(error).__name__}: {error}") from error
