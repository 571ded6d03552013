# SPDX-License-Identifier: Apache-2.0
"""Suites of Meta-World: scenes in which several tasks are possible, and the library's MT10 and MT50.

Unmodified, Meta-World (Yu et al., CoRL 2019) begins each task so that only this task is possible: a drawer to
open is shut. Here the tasks about one thing share a scene, which begins half way between them. Models, places
and scripted policies are the library's. The joint coordinate defines new success criteria, because a start
half way already meets some of the library's tolerances.
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
    """Done where a point is within `within_m` of a mark at a place drawn from a box."""

    point: Point
    mark: Box
    within_m: float


@dataclass(frozen=True)
class Errand(Schema):
    """What a sentence asks for.

    Attributes:
        sentence: the instruction.
        reworded: the same in other words, all of which are in sentences.
        policy: the library's task with the scripted policy for it.
        seen: the point that this policy observes.
        done: its criterion.
    """

    sentence: str
    reworded: str
    policy: str
    seen: Point
    done: Span | Delivery


@dataclass(frozen=True)
class Scene(Schema):
    """A table with a thing and its errands.

    Attributes:
        name: for people.
        model: a task of the library, for the model and the hand's first place.
        thing: body on the table.
        place: range of its drawn place.
        errands: of the scene.
        part: moving part of the thing, visible to the robot.
        joint: index of its coordinate among the positions behind the robot's; None where it lies freely.
        start: range of the coordinate at the start, low and high, m or rad.
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
        name: the library's, also of its scripted policy.
        sentence: the instruction.
    """

    name: str
    sentence: str

    @property
    def policy(self) -> str:
        """The library's task with the scripted policy for it."""
        return self.name

    @property
    def errands(self) -> tuple[Original, ...]:
        """The only instruction."""
        return (self,)


@dataclass(frozen=True)
class Suite:
    """Scenes that form one task of ours.

    Attributes:
        name: registry name.
        scenes: of the episodes.
        things: that the robot observes, beside the hand and the gripper.
        shows_scene: whether the observation names the scene.
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
_SENTENCES = read_yaml(asset("config/metaworld/sentences.yaml"))
ORIGINALS = {name: Original(name, sentence) for name, sentence in _SENTENCES["sentences"].items()}
"""By the library's names."""

SHARED = Suite(
    "metaworld",
    SCENES,
    tuple(f"{thing}_{axis}_m" for thing in ("part", "thing") for axis in AXES),
    True,
    240,
    "what the sentence asks for is done, and nothing else before",
)
MT10 = _original("metaworld_10", tuple(ORIGINALS[name] for name in _SENTENCES["mt10"]))
MT50 = _original("metaworld_50", tuple(ORIGINALS.values()))
