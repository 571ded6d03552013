# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of a target: from its file, completed by the policy's own description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from adahi_ros.core.proposal import ActionRange
from adahi_ros.core.signature import GOAL, Feature, ImageInput, Observations, Signature
from adahi_ros.policies.remote.relative import Relative
from adahi_ros.policies.remote.target_fields import LONGEST, ImageEntry, StateEntry, TargetFile

ANY = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class PolicyMetadata:
    """A policy's own description. A file may leave an entry out, and is refused where it differs.

    Attributes:
        history, horizon, action_dim: as in `Signature`.
        state: sizes of the numbers that it reads, by its own names.
        images: rows and columns of its images, by its own names.
        instruction: it reads a sentence.
        action_scale: (A,) if known.
        pads: it resizes images of any size itself, with borders.
    """

    history: int
    horizon: int
    action_dim: int
    state: Mapping[str, int]
    images: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    instruction: bool = False
    action_scale: np.ndarray | None = None
    pads: bool = False


@dataclass(frozen=True)
class DescribedTarget:
    """The content of a file.

    Attributes:
        signature: without parameters.
        parts: by the name of a feature or a condition, the policy's own names of its parts, and
            their sizes.
        own_names: by the name of an image, the policy's own.
        prompt: the policy's own name of the sentence; empty where it reads none.
        always: a constant sentence, which replaces the robot's; empty where the robot sends it.
        relative: makes plans absolute.
        action_range: actions beyond it are refused.
        action_scale: (A,) float32.
    """

    signature: Signature
    parts: Mapping[str, Mapping[str, int]]
    own_names: Mapping[str, str]
    prompt: str
    always: str
    relative: Relative
    action_range: ActionRange
    action_scale: np.ndarray

    def state(self, observations: Observations) -> dict[str, np.ndarray]:
        """Return the observations of B robots by the policy's own names, (B, H, size) float32."""
        joined: dict[str, list[np.ndarray]] = {}
        for feature in self.signature.features:
            self._share(observations.features[feature.name], feature.name, joined)
        for condition in self.signature.conditions:
            now = observations.conditions[condition.name][:, None]
            throughout = np.broadcast_to(now, (len(now), self.signature.history, condition.size))
            self._share(throughout, condition.name, joined)
        return {name: np.concatenate(each, axis=-1, dtype=np.float32) for name, each in joined.items()}

    def _share(self, values: np.ndarray, name: str, joined: dict[str, list[np.ndarray]]) -> None:
        """Add the parts of a feature to those already found, by the policy's own names."""
        begin = 0
        for called, size in self.parts[name].items():
            joined.setdefault(called, []).append(values[..., begin : begin + size])
            begin += size

    def pictures(self, observations: Observations) -> dict[str, np.ndarray]:
        """Return images of B robots by the policy's own names, (B, H, rows, columns, 3) uint8."""
        return {self.own_names[each.name]: observations.images[each.name] for each in self.signature.images}

    def sentences(self, observations: Observations, robots: int) -> tuple[str, ...]:
        """Return the sentence of each of B robots; empty where the policy reads none."""
        return (self.always,) * robots if self.always else observations.instructions


def described(file: TargetFile, own: PolicyMetadata | None = None, prompt: str = "task") -> DescribedTarget:
    """Return the inputs and outputs of a target.

    Args:
        file: of the target.
        own: the policy's description; None where it is unknown when the file is read.
        prompt: the policy's own name of a sentence, where the file has none.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """
    history = file.history or (1 if own is None else own.history)
    if own is not None and history != own.history:
        raise ValueError(f"history: {history}, must be {own.history}, what the policy reads")
    if own is None and not file.action_names:
        raise ValueError("action_names: nothing, must name each entry of an action")
    action_dim = len(file.action_names) if own is None else own.action_dim
    if file.action_names and len(file.action_names) != action_dim:
        raise ValueError(
            f"action_names: {len(file.action_names)} names, must be {action_dim}, of the policy's actions"
        )
    parts: dict[str, dict[str, int]] = {}
    own_names: dict[str, str] = {}
    read = _state(file, own, parts)
    images = _images(file, own, parts, own_names)
    if all(each.name == GOAL for each in read):
        raise ValueError(
            "state: nothing that is observed, must name at least one key of the robot's contract"
        )
    prompt, always = _instruction(file, own, prompt)
    signature = Signature(
        history,
        _horizon(file, own),
        action_dim,
        tuple(each for each in read if each.name != GOAL),
        tuple(each for each in read if each.name == GOAL),
        instruction=bool(prompt) and not always,
        images=images,
        action_names=file.action_names,
        rate_hz=file.rate_hz,
    )
    action_range = _action_range(file, action_dim)
    scale = _action_scale(file, own, action_dim)
    relative = Relative(file.relative, signature.action_names, signature.features)
    return DescribedTarget(signature, parts, own_names, prompt, always, relative, action_range, scale)


def check_parts(parts: Mapping[str, int], action_dim: int) -> None:
    """Check the sizes of an action's parts, if there are any.

    Raises:
        ValueError: they are not the size of an action in all.
    """
    if parts and sum(parts.values()) != action_dim:
        raise ValueError(
            f"actions: {sum(parts.values())} entries in all, must be {action_dim}, as many as action_names"
        )


def _horizon(file: TargetFile, own: PolicyMetadata | None) -> int:
    if own is not None:
        if file.horizon is not None and file.horizon > own.horizon:
            raise ValueError(f"horizon: {file.horizon}, must be an integer from 1 to {own.horizon}")
        return file.horizon or own.horizon
    if file.horizon is None:
        raise ValueError("horizon: nothing, must be the number of actions of a plan")
    return file.horizon


def _state(
    file: TargetFile, own: PolicyMetadata | None, parts: dict[str, dict[str, int]]
) -> tuple[Feature, ...]:
    """Read `state`; note the parts of each entry by the policy's own names."""
    sizes = {} if own is None else dict(own.state)
    if own is None and file.state is None:
        raise ValueError("state: nothing, must name what the policy reads")
    entries = {name: StateEntry() for name in sizes} if file.state is None else file.state
    shares_of = {name: {name: None} if each.as_ is None else each.as_ for name, each in entries.items()}
    calls = [called for shares in shares_of.values() for called in shares]
    found: dict[str, int] = {}
    read = []
    for name, entry in entries.items():
        where, shares = f"state.{name}", shares_of[name]
        known = sum(
            size or (sizes.get(each, 0) if calls.count(each) == 1 else 0) for each, size in shares.items()
        )
        size = entry.size or known or len(entry.entries)
        if not 1 <= size <= LONGEST:
            raise ValueError(f"{where}.size: {size or 'missing'}, must be an integer from 1 to {LONGEST}")
        if entry.entries and len(entry.entries) != size:
            raise ValueError(
                f"{where}.entries: {len(entry.entries)} names, must be {size}, as many as its size"
            )
        parts[name] = {each: share or size for each, share in shares.items()}
        if sum(parts[name].values()) != size:
            raise ValueError(f"{where}.as: {sum(parts[name].values())} in all, must be {size}, its size")
        for called, share in parts[name].items():
            found[called] = found.get(called, 0) + share
        read.append(Feature(name, size, entry.entries))
    for called, size in found.items():
        if own is not None and sizes.get(called) != size:
            there_are = ", ".join(f"{each} of {count} numbers" for each, count in sizes.items()) or "none"
            raise ValueError(f"state: {called} of {size} numbers, must be what the policy reads: {there_are}")
    for called, size in sizes.items():
        if called not in found:
            raise ValueError(f"state: {called} of {size} numbers is read by the policy, must be there")
    return tuple(read)


def _images(
    file: TargetFile,
    own: PolicyMetadata | None,
    parts: Mapping[str, Mapping[str, int]],
    own_names: dict[str, str],
) -> tuple[ImageInput, ...]:
    """Read `images`; note the policy's own names."""
    sizes = {} if own is None else dict(own.images)
    entries = {name: ImageEntry() for name in sizes} if file.images is None else file.images
    read = []
    for name, entry in entries.items():
        where, called = f"images.{name}", entry.as_ or name
        if called in own_names.values():
            raise ValueError(f"{where}.as: {called!r}, is another image's, must be its own")
        if own is not None and called not in sizes:
            raise ValueError(f"{where}.as: {called!r}, must be one of {', '.join(sizes) or 'none'}")
        if name in parts:
            raise ValueError(f"{where}: is in state too, must be in one of them")
        size = entry.size or sizes.get(called)
        if size is None:
            raise ValueError(f"{where}.size: missing, must be [rows, columns]")
        if own is not None and not own.pads and size != sizes[called]:
            raise ValueError(
                f"{where}.size: {list(size)}, must be {list(sizes[called])}, what the policy reads"
            )
        own_names[name] = called
        padded = own is not None and own.pads if entry.padded is None else entry.padded
        read.append(ImageInput(name, size[0], size[1], padded))
    for called in sizes:
        if called not in own_names.values():
            raise ValueError(f"images: {called} is read by the policy, must be there")
    return tuple(read)


def _instruction(file: TargetFile, own: PolicyMetadata | None, prompt: str) -> tuple[str, str]:
    """Return the policy's own name of the sentence, and the sentence itself where it is constant."""
    wanted = own is not None and own.instruction
    instruction = wanted if file.instruction is None else file.instruction
    if own is not None and bool(instruction) != wanted:
        allowed = "true, {as: NAME} or {always: SENTENCE}" if wanted else "false"
        raise ValueError(f"instruction: {instruction!r}, must be {allowed}, as the policy is")
    if isinstance(instruction, bool):
        return (prompt if instruction else ""), ""
    return instruction.as_ or prompt, instruction.always


def _action_range(file: TargetFile, action_dim: int) -> ActionRange:
    if file.action_range is None:
        most = np.full(action_dim, ANY)
        return ActionRange(-most, most)
    ends = {"low": file.action_range.low, "high": file.action_range.high}
    return ActionRange(*(_numbers(f"action_range.{end}", each, action_dim) for end, each in ends.items()))


def _action_scale(file: TargetFile, own: PolicyMetadata | None, action_dim: int) -> np.ndarray:
    if file.action_scale is not None:
        scale = _numbers("action_scale", file.action_scale, action_dim)
    elif own is not None and own.action_scale is not None:
        scale = own.action_scale
    else:
        scale = np.ones(action_dim)
    return scale.astype(np.float32)


def _numbers(where: str, values: tuple[float, ...], count: int) -> np.ndarray:
    if len(values) != count:
        raise ValueError(f"{where}: {list(values)}, must be a list of {count} numbers")
    return np.array(values, dtype=np.float64)
