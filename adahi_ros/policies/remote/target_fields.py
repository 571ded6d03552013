# SPDX-License-Identifier: Apache-2.0
"""Fields of every target file: the policy's inputs and outputs (docs/reference/target_file.md).

    history: 1
    horizon: 16                        # actions of a plan, the first of the policy's own
    rate_hz: 30
    action_names: [position.panda_joint1, ...]
    state:                             # each a key of the robot's contract, or goal; in this order
      observation.state: {size: 8, entries: [...], as: observation/state}
    images:
      observation.images.front: {size: [224, 224], padded: true, as: observation/exterior_image_1_left}
    relative: [{actions: [position.panda_joint1], state: observation.state}]    # see relative.py
    instruction: true                  # or {as: prompt}, or {always: pick up the cube}
    action_range: {low: [...], high: [...]}
    action_scale: [...]

`as` is the policy's own name. Entries of `state` that have one `as` are joined, in the file's order.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator
from pydantic.dataclasses import dataclass

from adahi_ros.core.schema import LARGEST, Listed, Schema, Text, above, checked, must, one_of, within

LONGEST = 4096  # observations, actions, numbers or pixels
FASTEST_HZ = 1e6

Count = Annotated[int, within(1, LONGEST, "an integer")]
Number = Annotated[float, within(-LARGEST, LARGEST)]
Names = Annotated[
    Listed[Text],
    must(
        f"be a list of names, from 1 to {LONGEST} different names",
        lambda names: 1 <= len(names) <= LONGEST and len(set(names)) == len(names),
    ),
]
Shares = Annotated[
    dict[Text, Count | None],
    BeforeValidator(lambda value: {value: None} if isinstance(value, str) else value),
]
"""Sizes of an entry's parts by the policy's own names; None for an entry that is not split."""


@dataclass(frozen=True, kw_only=True)
class StateEntry(Schema):
    """An entry of `state`.

    Attributes:
        size: number of values.
        entries: what each number is, by the paths in the contract's `select`; a robot with others is refused.
        as_: the policy's own name. Entries of one name are joined; `{NAME: SIZE, ...}` splits an entry.
            By default the same name.
    """

    size: Count | None = None
    entries: Names = ()
    as_: Shares | None = None


@dataclass(frozen=True, kw_only=True)
class ImageEntry(Schema):
    """An entry of `images`.

    Attributes:
        size: `[rows, columns]` that the policy reads. The robot sends JPEGs of at most this size.
        padded: keep the aspect, with black borders; otherwise stretch. By default as the policy itself does.
        as_: the policy's own name. By default the same name.
    """

    size: Annotated[Listed[Count], Field(min_length=2, max_length=2)] | None = None
    padded: bool | None = None
    as_: Text | None = None


@dataclass(frozen=True, kw_only=True)
class Instruction(Schema):
    """An `instruction` with more than true or false.

    Attributes:
        as_: the policy's own name of the sentence.
        always: the sentence where the robot gives none.
    """

    as_: Text | None = None
    always: Text = ""


@dataclass(frozen=True, kw_only=True)
class ActionEnds(Schema):
    """An `action_range`.

    Attributes:
        low: smallest value of each entry.
        high: largest value of each entry.
    """

    low: Listed[Number]
    high: Listed[Number]

    def __post_init__(self) -> None:
        for index, (low, high) in enumerate(zip(self.low, self.high, strict=False)):
            if low >= high:
                raise ValueError(f"low[{index}]: {low:g}, must be below high, {high:g}")


FRAMES = ("base", "tool")
ROTATIONS = ("quaternion", "rotation_vector")


@dataclass(frozen=True, kw_only=True)
class RelativeEntry(Schema):
    """An entry of `relative`.

    Attributes:
        actions: which of `action_names`; of a rotation its numbers, perhaps after three of a position.
        state: key of `state` that they are relative to, in the same order and units.
        at: index of its first number.
        rotation: `quaternion` (x, y, z, w) or `rotation_vector` (rad); otherwise numbers are added.
        state_rotation: of the state, where it differs.
        frame: of the motion: `base`, or `tool`, the state's pose.
        chained: each action is relative to the previous one, the first to the state.
    """

    actions: Names
    state: Text
    at: Annotated[int, within(0, LONGEST, "an integer")] = 0
    rotation: Annotated[str, one_of(ROTATIONS)] | None = None
    state_rotation: Annotated[str, one_of(ROTATIONS)] | None = None
    frame: Annotated[str, one_of(FRAMES)] = "base"
    chained: bool = False


def _instruction(value: Any) -> Instruction | bool:
    if not isinstance(value, bool | dict):
        raise ValueError("must be a mapping, true or false")
    return value if isinstance(value, bool) else checked(Instruction, value)


@dataclass(frozen=True, kw_only=True)
class TargetFile(Schema):
    """Fields of every target file; None where the policy itself provides the value.

    Attributes:
        history: observations that the policy reads; at most 64, or 8 with images. By default 1.
        horizon: actions of a plan; fewer than the policy's own are its first ones. By default the policy's.
        rate_hz: control steps per second that actions are meant for; a robot with another rate is refused.
        action_names: what each entry of an action is, by the paths in the contract's `select`. A robot with
            other names, or another order, is refused.
        state: what the policy reads, by keys of the contract; `observation` is all of it, `goal` the goal.
        images: cameras that the policy reads, by keys of the contract.
        instruction: the policy reads a sentence: `true`, `{as: NAME}`, or `{always: SENTENCE}`.
        relative: actions that are relative to the state of the request.
        action_range: `low` and `high` of each entry. Actions beyond it are faults.
        action_scale: unit of the action deviation, of each entry. By default what the policy gives, else 1.
    """

    history: Count | None = None
    horizon: Count | None = None
    rate_hz: Annotated[float, above(0.0, FASTEST_HZ)] = 0.0
    action_names: Names = ()
    state: dict[Text, StateEntry] | None = None
    images: dict[Text, ImageEntry] | None = None
    instruction: Annotated[Instruction | bool | None, PlainValidator(_instruction)] = None
    relative: Listed[RelativeEntry] = ()
    action_range: ActionEnds | None = None
    action_scale: Listed[Annotated[float, above(0.0)]] | None = None
