# SPDX-License-Identifier: Apache-2.0
"""Scenes of Meta-World in which several tasks are possible, and what a sentence can ask for in each.

As it comes, Meta-World (Yu et al., CoRL 2019) begins each of its tasks so that nothing but this task can be
done: a drawer to be opened is shut. Here the tasks that are about one thing share a scene, and it begins half
way between them. Models, places and scripted policies are the library's. When a task is done is told anew, by
the coordinate of the thing's joint: from half way, some of the library's tolerances are met at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from adahi_ros.core.assets import asset
from adahi_ros.core.yaml_files import read_yaml

Vector = tuple[float, float, float]


@dataclass(frozen=True)
class Point:
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
class Box:
    """Places between two corners, m from the world's origin."""

    low: Vector
    high: Vector


@dataclass(frozen=True)
class Span:
    """Done where the thing's joint is from `low` to `high`, m or rad."""

    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True)
class Delivery:
    """Done where a point is within `within_m` of a mark, whose place is drawn from a box."""

    point: Point
    mark: Box
    within_m: float


@dataclass(frozen=True)
class Errand:
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
class Scene:
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
    errands: tuple[Errand, ...]
    part: Point
    joint: int | None = None
    start: tuple[float, float] = (0.0, 0.0)


def _point(values: dict[str, Any]) -> Point:
    return Point(**{**values, "offset": tuple(values.get("offset", Point.offset))})


def _box(values: dict[str, Any]) -> Box:
    return Box(tuple(values["low"]), tuple(values["high"]))


def _errand(values: dict[str, Any]) -> Errand:
    said = values["done"]
    if "mark" in said:
        done: Span | Delivery = Delivery(_point(said["point"]), _box(said["mark"]), said["within_m"])
    else:
        done = Span(**said)
    return Errand(**{**values, "seen": _point(values["seen"]), "done": done})


def _scene(values: dict[str, Any]) -> Scene:
    return Scene(
        **{
            **values,
            "place": _box(values["place"]),
            "errands": tuple(map(_errand, values["errands"])),
            "part": _point(values["part"]),
            "start": tuple(values.get("start", Scene.start)),
        }
    )


SCENES = tuple(map(_scene, read_yaml(asset("config/metaworld/scenes.yaml"))))
