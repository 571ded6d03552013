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


DRAWER = Point("body", "drawer_link", (0.0, -0.16, 0.0))
DRAWER_FROM_ABOVE = Point("body", "drawer_link", (0.0, -0.16, 0.05))
OPENING, CLOSING = Point("site", "handleOpenStart"), Point("site", "handleCloseStart")
TURNING_ON = Point("site", "handleStartOpen", (0.0, 0.0, -0.01))
TURNING_OFF = Point("site", "handleStartClose", (0.0, 0.0, -0.01))
LOCKING, UNLOCKING = Point("site", "lockStartLock"), Point("site", "lockStartUnlock")
PRESSING, PULLING = Point("site", "handleStart"), Point("site", "handleRight")
PLATE, PUCK, TOOL = Point("geom", "puck"), Point("body", "obj"), Point("tool")
ON_TABLE = Box((-0.1, 0.8, 0.02), (0.1, 0.9, 0.02))
ABOVE_TABLE = Box((-0.1, 0.8, 0.05), (0.1, 0.9, 0.3))

SCENES = (
    Scene(
        "drawer",
        "drawer-open-v3",
        "drawer",
        Box((-0.1, 0.9, 0.0), (0.1, 0.9, 0.0)),
        (
            Errand("open the drawer", "drawer-open-v3", DRAWER, Span(high=-0.15)),
            Errand("close the drawer", "drawer-close-v3", DRAWER_FROM_ABOVE, Span(low=-0.02)),
        ),
        DRAWER,
        0,
        (-0.1, -0.07),
    ),
    Scene(
        "window",
        "window-open-v3",
        "window",
        Box((-0.1, 0.75, 0.16), (0.1, 0.9, 0.16)),
        (
            Errand("open the window", "window-open-v3", OPENING, Span(low=0.18)),
            Errand("close the window", "window-close-v3", CLOSING, Span(high=0.02)),
        ),
        OPENING,
        0,
        (0.08, 0.12),
    ),
    Scene(
        "faucet",
        "faucet-open-v3",
        "faucetBase",
        Box((-0.05, 0.8, 0.0), (0.05, 0.85, 0.0)),
        (
            Errand("turn the faucet on", "faucet-open-v3", TURNING_ON, Span(low=1.1)),
            Errand("turn the faucet off", "faucet-close-v3", TURNING_OFF, Span(high=-1.1)),
        ),
        TURNING_ON,
        0,
        (-0.3, 0.3),
    ),
    Scene(
        "lock",
        "door-lock-v3",
        "door",
        Box((-0.1, 0.8, 0.15), (0.1, 0.85, 0.15)),
        (
            Errand("lock the door", "door-lock-v3", LOCKING, Span(low=1.4)),
            Errand("unlock the door", "door-unlock-v3", UNLOCKING, Span(high=0.15)),
        ),
        LOCKING,
        0,
        (0.85, 1.1),
    ),
    Scene(
        "handle",
        "handle-press-v3",
        "box",
        Box((-0.1, 0.8, 0.0), (0.1, 0.9, 0.0)),
        (
            Errand("press the handle down", "handle-press-v3", PRESSING, Span(high=-0.09)),
            Errand("pull the handle up", "handle-pull-v3", PULLING, Span(low=-0.012)),
        ),
        PRESSING,
        0,
        (-0.045, -0.025),
    ),
    Scene(
        "plate",
        "plate-slide-v3",
        "puck_goal",
        Box((-0.1, 0.85, 0.0), (0.1, 0.9, 0.0)),
        (
            Errand("slide the plate into the net", "plate-slide-v3", PLATE, Span(low=0.21)),
            Errand("slide the plate away from the net", "plate-slide-back-v3", PLATE, Span(high=0.03)),
        ),
        PLATE,
        1,
        (0.1, 0.13),
    ),
    Scene(
        "plate beside",
        "plate-slide-side-v3",
        "puck_goal",
        Box((-0.3, 0.54, 0.0), (-0.25, 0.66, 0.0)),
        (
            Errand("slide the plate to the left", "plate-slide-side-v3", PLATE, Span(high=-0.18)),
            Errand("slide the plate to the right", "plate-slide-back-side-v3", PLATE, Span(low=0.0)),
        ),
        PLATE,
        0,
        (-0.12, -0.06),
    ),
    Scene(
        "puck",
        "push-v3",
        "obj",
        Box((-0.1, 0.6, 0.02), (0.1, 0.7, 0.02)),
        (
            Errand("reach for the mark", "reach-v3", PUCK, Delivery(TOOL, ABOVE_TABLE, 0.05)),
            Errand("push the puck to the mark", "push-v3", PUCK, Delivery(PUCK, ON_TABLE, 0.07)),
            Errand("lift the puck to the mark", "pick-place-v3", PUCK, Delivery(PUCK, ABOVE_TABLE, 0.07)),
        ),
        PUCK,
    ),
)
"""All there are."""
