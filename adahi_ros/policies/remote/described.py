# SPDX-License-Identifier: Apache-2.0
"""What the YAML file of every target here says of what that reads and proposes (docs/targets.md).

    history: 1
    horizon: 16                        # actions of a plan, the first of the policy's own
    rate_hz: 30
    action_names: [position.panda_joint1, ...]
    state:                             # each a key of the robot's contract, or goal; in this order
      observation.state: {size: 8, entries: [...], as: observation/state}
    images:
      observation.images.front: {size: [224, 224], padded: true, as: observation/exterior_image_1_left}
    instruction: true                  # or {as: prompt}, or {always: pick up the cube}
    action_range: {low: [...], high: [...]}
    action_scale: [...]

`as` is the policy's own name of it. Entries of `state` that have one `as` are joined, in the file's order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adahi_ros.core.action_range import ActionRange
from adahi_ros.core.signature import GOAL, Feature, ImageInput, Observations, Signature
from adahi_ros.policies.remote.target_fields import (
    flag,
    known_only,
    mapping,
    names,
    numbers,
    positive,
    text,
    whole,
)

FIELDS = (
    "history",
    "horizon",
    "rate_hz",
    "action_names",
    "state",
    "images",
    "instruction",
    "action_range",
    "action_scale",
)
ANY = float(np.finfo(np.float32).max)
LONGEST = 4096  # observations, actions or numbers
WIDEST = 4096  # pixels
FASTEST_HZ = 1e6


@dataclass(frozen=True)
class PolicyMetadata:
    """What a policy says of itself. A file may leave it out, and is refused where it says otherwise.

    Attributes:
        history, horizon, action_dim: as in `Signature`.
        state: how many numbers it reads, by its own names.
        images: rows and columns of those that it reads, by its own names.
        instruction: it is told what to do in a sentence.
        action_scale: (A,) where it knows.
    """

    history: int
    horizon: int
    action_dim: int
    state: Mapping[str, int]
    images: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    instruction: bool = False
    action_scale: np.ndarray | None = None


@dataclass(frozen=True)
class Described:
    """What a file says.

    Attributes:
        signature: without parameters.
        parts: by the name of a feature or a condition, the policy's own names of what it is made of, and
            their sizes.
        own_names: by the name of an image, the policy's own.
        prompt: the policy's own name of the sentence; empty where it is told none.
        always: the sentence that it is told whatever the robot says; empty where the robot says it.
        action_range: what lies beyond is refused.
        action_scale: (A,) float32.
    """

    signature: Signature
    parts: Mapping[str, Mapping[str, int]]
    own_names: Mapping[str, str]
    prompt: str
    always: str
    action_range: ActionRange
    action_scale: np.ndarray

    def state(self, observations: Observations) -> dict[str, np.ndarray]:
        """Return what B robots observed by the policy's own names, (B, H, size) float32."""
        joined: dict[str, list[np.ndarray]] = {}
        for feature in self.signature.features:
            self._share(observations.features[feature.name], feature.name, joined)
        for told in self.signature.conditions:
            now = observations.conditions[told.name][:, None]
            throughout = np.broadcast_to(now, (len(now), self.signature.history, told.size))
            self._share(throughout, told.name, joined)
        return {name: np.concatenate(each, axis=-1, dtype=np.float32) for name, each in joined.items()}

    def _share(self, values: np.ndarray, name: str, joined: dict[str, list[np.ndarray]]) -> None:
        """Add what a feature is made of to what has been found by the policy's own names."""
        begin = 0
        for called, size in self.parts[name].items():
            joined.setdefault(called, []).append(values[..., begin : begin + size])
            begin += size

    def pictures(self, observations: Observations) -> dict[str, np.ndarray]:
        """Return images of B robots by the policy's own names, (B, H, rows, columns, 3) uint8."""
        return {self.own_names[each.name]: observations.images[each.name] for each in self.signature.images}

    def sentences(self, observations: Observations, robots: int) -> tuple[str, ...]:
        """Return what each of B robots is told; empty where they are told nothing."""
        return (self.always,) * robots if self.always else observations.instructions


def described(
    values: Mapping[str, Any], own: PolicyMetadata | None = None, prompt: str = "task"
) -> Described:
    """Read what a file says of what a target reads and proposes.

    Args:
        values: the file's, but for what only its kind of target knows.
        own: what the policy says; None where it is not known as the file is read.
        prompt: the policy's own name of a sentence, where the file does not say.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """
    known_only("", values, FIELDS)
    history = _history(values, own)
    horizon = _horizon(values, own)
    action_names = names("action_names", values["action_names"]) if "action_names" in values else ()
    if own is None and not action_names:
        raise ValueError("action_names: nothing, must name each entry of an action")
    action_dim = len(action_names) if own is None else own.action_dim
    if action_names and len(action_names) != action_dim:
        raise ValueError(
            f"action_names: {len(action_names)} names, must be {action_dim}, of the policy's actions"
        )
    rate_hz = positive("rate_hz", values["rate_hz"], FASTEST_HZ) if "rate_hz" in values else 0.0
    parts: dict[str, dict[str, int]] = {}
    own_names: dict[str, str] = {}
    read = _state(values, own, parts)
    images = _images(values, own, parts, own_names)
    if all(each.name == GOAL for each in read):
        raise ValueError(
            "state: nothing that is observed, must name at least one key of the robot's contract"
        )
    prompt, always = _instruction(values, own, prompt)
    signature = Signature(
        history,
        horizon,
        action_dim,
        tuple(each for each in read if each.name != GOAL),
        tuple(each for each in read if each.name == GOAL),
        instruction=bool(prompt) and not always,
        images=images,
        action_names=action_names,
        rate_hz=rate_hz,
    )
    action_range = _action_range(values, action_dim)
    return Described(
        signature, parts, own_names, prompt, always, action_range, _action_scale(values, own, action_dim)
    )


def _history(values: Mapping[str, Any], own: PolicyMetadata | None) -> int:
    history = whole("history", values.get("history", 1 if own is None else own.history), 1, LONGEST)
    if own is not None and history != own.history:
        raise ValueError(f"history: {history}, must be {own.history}, what the policy reads")
    return history


def _horizon(values: Mapping[str, Any], own: PolicyMetadata | None) -> int:
    if own is None and "horizon" not in values:
        raise ValueError("horizon: nothing, must be the number of actions of a plan")
    most = LONGEST if own is None else own.horizon
    return whole("horizon", values.get("horizon", most), 1, most)


def _state(
    values: Mapping[str, Any], own: PolicyMetadata | None, parts: dict[str, dict[str, int]]
) -> tuple[Feature, ...]:
    """Read `state`; note what each entry is made of by the policy's own names."""
    sizes = {} if own is None else dict(own.state)
    entries = mapping("state", values.get("state", {name: {} for name in sizes}))
    calls = [called for name, said in entries.items() for called in _shares(f"state.{name}", name, said)]
    found: dict[str, int] = {}
    read = []
    for name, said in entries.items():
        where = f"state.{name}"
        known_only(where, said, ("size", "entries", "as"))
        entry_names = names(f"{where}.entries", said["entries"]) if "entries" in said else ()
        shares = _shares(where, name, said)
        known = sum(
            size or (sizes.get(each, 0) if calls.count(each) == 1 else 0) for each, size in shares.items()
        )
        size = whole(f"{where}.size", said.get("size", known or len(entry_names)), 1, LONGEST)
        if entry_names and len(entry_names) != size:
            raise ValueError(
                f"{where}.entries: {len(entry_names)} names, must be {size}, as many as its size"
            )
        parts[name] = {each: share or size for each, share in shares.items()}
        if sum(parts[name].values()) != size:
            raise ValueError(f"{where}.as: {sum(parts[name].values())} in all, must be {size}, its size")
        for called, share in parts[name].items():
            found[called] = found.get(called, 0) + share
        read.append(Feature(name, size, entry_names))
    for called, size in found.items():
        if own is not None and sizes.get(called) != size:
            there_are = ", ".join(f"{each} of {count} numbers" for each, count in sizes.items()) or "none"
            raise ValueError(f"state: {called} of {size} numbers, must be what the policy reads: {there_are}")
    for called, size in sizes.items():
        if called not in found:
            raise ValueError(f"state: {called} of {size} numbers is read by the policy, must be there")
    return tuple(read)


def _images(
    values: Mapping[str, Any],
    own: PolicyMetadata | None,
    parts: Mapping[str, Mapping[str, int]],
    own_names: dict[str, str],
) -> tuple[ImageInput, ...]:
    """Read `images`; note the policy's own names."""
    sizes = {} if own is None else dict(own.images)
    entries = mapping("images", values.get("images", {name: {} for name in sizes}))
    read, found = [], set()
    for name, said in entries.items():
        where = f"images.{name}"
        called = _own_name(where, name, said)
        known_only(where, said, ("size", "padded", "as"))
        if called in found:
            raise ValueError(f"{where}.as: {called!r}, is another image's, must be its own")
        if own is not None and called not in sizes:
            raise ValueError(f"{where}.as: {called!r}, must be one of {', '.join(sizes) or 'none'}")
        if name in parts:
            raise ValueError(f"{where}: is in state too, must be in one of them")
        size = said.get("size", list(sizes.get(called, ())))
        if not isinstance(size, list) or len(size) != 2:
            raise ValueError(f"{where}.size: {size!r}, must be [rows, columns]")
        rows, columns = (whole(f"{where}.size", each, 1, WIDEST) for each in size)
        if own is not None and (rows, columns) != sizes[called]:
            raise ValueError(f"{where}.size: {size}, must be {list(sizes[called])}, what the policy reads")
        found.add(called)
        own_names[name] = called
        read.append(ImageInput(name, rows, columns, flag(f"{where}.padded", said.get("padded", False))))
    for called in sizes:
        if called not in found:
            raise ValueError(f"images: {called} is read by the policy, must be there")
    return tuple(read)


def _shares(where: str, name: str, said: Any) -> dict[str, int]:
    """Return the policy's own names of what an entry is made of, with sizes; 0 for one that is all of it."""
    called = mapping(where, said).get("as", name)
    if isinstance(called, str):
        return {text(f"{where}.as", called): 0}
    if not isinstance(called, dict):
        raise ValueError(f"{where}.as: {called!r}, must be a text, or a mapping from texts to sizes")
    shares = mapping(f"{where}.as", called)
    return {
        text(f"{where}.as", each): whole(f"{where}.as.{each}", size, 1, LONGEST)
        for each, size in shares.items()
    }


def _own_name(where: str, name: str, said: Any) -> str:
    return text(f"{where}.as", mapping(where, said).get("as", name))


def _instruction(values: Mapping[str, Any], own: PolicyMetadata | None, prompt: str) -> tuple[str, str]:
    """Return the policy's own name of the sentence, and the sentence where it is always the same."""
    wanted = own is not None and own.instruction
    said = values.get("instruction", wanted)
    told = said if isinstance(said, bool) else bool(mapping("instruction", said))
    if own is not None and told != wanted:
        allowed = "true, {as: NAME} or {always: SENTENCE}" if wanted else "false"
        raise ValueError(f"instruction: {said!r}, must be {allowed}, as the policy is")
    if not told:
        return "", ""
    if said is True:
        return prompt, ""
    known_only("instruction", said, ("as", "always"))
    always = text("instruction.always", said["always"]) if "always" in said else ""
    return text("instruction.as", said.get("as", prompt)), always


def _action_range(values: Mapping[str, Any], action_dim: int) -> ActionRange:
    if "action_range" not in values:
        most = np.full(action_dim, ANY)
        return ActionRange(-most, most)
    said = mapping("action_range", values["action_range"])
    known_only("action_range", said, ("low", "high"))
    low, high = (numbers(f"action_range.{end}", said.get(end), action_dim) for end in ("low", "high"))
    for index in np.flatnonzero(low >= high)[:1]:
        raise ValueError(f"action_range.low[{index}]: {low[index]:g}, must be below high, {high[index]:g}")
    return ActionRange(low, high)


def _action_scale(values: Mapping[str, Any], own: PolicyMetadata | None, action_dim: int) -> np.ndarray:
    if "action_scale" in values:
        scale = numbers("action_scale", values["action_scale"], action_dim)
        for index in np.flatnonzero(scale <= 0)[:1]:
            raise ValueError(f"action_scale[{index}]: {scale[index]:g}, must be above 0")
    elif own is not None and own.action_scale is not None:
        scale = own.action_scale
    else:
        scale = np.ones(action_dim)
    return scale.astype(np.float32)
