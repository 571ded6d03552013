# SPDX-License-Identifier: Apache-2.0
"""Suites of Meta-World: scenes in which several tasks are possible, and the library's MT10 and MT50.

As it comes, Meta-World (Yu et al., CoRL 2019) begins each of its tasks so that nothing but this task can be
done: a drawer to be opened is shut. Here the tasks that are about one thing share a scene, and it begins half
way between them. Models, places and scripted policies are the library's. When a task is done is told anew, by
the coordinate of the thing's joint: from half way, some of the library's tolerances are met at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from adahi_ros.core.assets import asset
from adahi_ros.core.schema import Listed, Schema, checked
from adahi_ros.core.yaml_files import read_yaml

AXES = ("x", "y", "z")
QUATERNION = ("qx", "qy", "qz", "qw")
Vector = Listed[float]  # x, y, z


@dataclass(frozen=True)
class Point(Schema):
    """A point of a model.

    Attributes:
        kind: "body", "geom" or "site"; "tool" for the point between the fingers, which needs no name.
        name: of it.
        offset: added to its place, m.
    """

    kind: str
    name: str = ""
    offset: Vector = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Box(Schema):
    """Places between two corners, m from the world's origin."""

    low: Vector
    high: Vector


@dataclass(frozen=True)
class Span(Schema):
    """Done where the thing's joint is from `low` to `high`, m or rad."""

    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True)
class Delivery(Schema):
    """Done where a point is within `within_m` of a mark, whose place is drawn from a box."""

    point: Point
    mark: Box
    within_m: float


@dataclass(frozen=True)
class Errand(Schema):
    """What a sentence asks for.

    Attributes:
        sentence: as it is told.
        policy: the library's task whose scripted policy does it.
        seen: what that policy looks at.
        done: when it is.
    """

    sentence: str
    policy: str
    seen: Point
    done: Span | Delivery


@dataclass(frozen=True)
class Scene(Schema):
    """A table with a thing, and what can be asked for.

    Attributes:
        name: for people.
        model: a task of the library, whose model and whose hand's first place these are.
        thing: body that is put on the table.
        place: where; drawn from it.
        errands: what can be asked for.
        part: what moves of the thing, and the robot sees.
        joint: index of its coordinate among the positions behind the robot's; None where it lies freely.
        start: from which this is drawn, low and high, m or rad.
    """

    name: str
    model: str
    thing: str
    place: Box
    errands: Listed[Errand]
    part: Point
    joint: int | None = None
    start: Listed[float] = (0.0, 0.0)


@dataclass(frozen=True)
class Original:
    """An unmodified task of the library: a scene with one instruction.

    Attributes:
        name: the library's, which is its scripted policy's, too.
        sentence: the instruction.
    """

    name: str
    sentence: str

    @property
    def policy(self) -> str:
        """The library's task whose scripted policy does it."""
        return self.name

    @property
    def errands(self) -> tuple[Original, ...]:
        """The only instruction."""
        return (self,)


@dataclass(frozen=True)
class Suite:
    """Scenes that are one task of ours.

    Attributes:
        name: registry name.
        scenes: that an episode may be in.
        things: what the robot sees beside the hand and the gripper.
        shows_scene: whether it sees which scene it is in.
        max_steps: an episode's length at most.
        success_text: the criterion, for people.
    """

    name: str
    scenes: tuple[Scene | Original, ...]
    things: tuple[str, ...]
    shows_scene: bool
    max_steps: int
    success_text: str


def _original(name: str, scenes: tuple[Original, ...]) -> Suite:
    """Return a suite of the library: its observation, without the goal, and its time."""
    things = tuple(
        f"{thing}_{entry}"
        for thing in ("first", "second")
        for entry in (*(f"{axis}_m" for axis in AXES), *QUATERNION)
    )
    return Suite(name, scenes, things, False, 500, "what the sentence asks for is done, as the library tells")


SCENES: tuple[Scene, ...] = checked(Listed[Scene], read_yaml(asset("config/metaworld/scenes.yaml")))
_SAID = read_yaml(asset("config/metaworld/sentences.yaml"))
ORIGINALS = {name: Original(name, sentence) for name, sentence in _SAID["sentences"].items()}
"""By the library's names."""

SHARED = Suite(
    "metaworld",
    SCENES,
    tuple(f"{thing}_{axis}_m" for thing in ("part", "thing") for axis in AXES),
    True,
    240,
    "what the sentence asks for is done, and nothing else before",
)
MT10 = _original("metaworld_10", tuple(ORIGINALS[name] for name in _SAID["mt10"]))
MT50 = _original("metaworld_50", tuple(ORIGINALS.values()))
