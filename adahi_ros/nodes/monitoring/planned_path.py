# SPDX-License-Identifier: Apache-2.0
"""Paths of a robot, and of its draft alone: points, colours and lines."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from adahi_ros.core.kinematics import Chain
from adahi_ros.protocol.records import Reason

if TYPE_CHECKING:
    from adahi_msgs.msg import DraftStatus

UNUSED = -1
Colour = tuple[float, float, float, float]
"""Red, green, blue and opacity, 0 to 1."""
# Okabe and Ito's colours, for colour-blind people, too.
VERIFIED: Colour = (0.0, 0.62, 0.45, 1.0)
SKIPPED: Colour = (0.34, 0.71, 0.91, 1.0)
FALLBACK: Colour = (0.84, 0.37, 0.0, 1.0)
DRAFTED: Colour = (0.94, 0.89, 0.26, 0.6)


class PointError(ValueError):
    """A step has no point; has the reason."""


class ArmPoints:
    """Places of an arm's tip: now, and after a drafted action.

    Args:
        chain: from the frame of the path to the tip.
        commanded: joint of each entry of an action of positions; empty to draw no drafted path.
    """

    def __init__(self, chain: Chain, commanded: Sequence[str]) -> None:
        self._chain = chain
        self._commanded = commanded
        self._positions: dict[str, float] = {}

    def add_joints(self, names: Iterable[str], positions: Iterable[float]) -> None:
        """Take in joint positions, rad or m; an arm's joints may be in several messages."""
        self._positions.update(zip(names, positions, strict=False))

    def executed(self, action: Sequence[float]) -> np.ndarray:
        """Return the measured position of the tip, (3,), m.

        Raises:
            PointError: a joint's position is unknown.
        """
        return self._tip(self._positions)

    def drafted(self, action: Sequence[float]) -> np.ndarray | None:
        """Return where the draft would put the tip, (3,); None if drafts are not drawn.

        Raises:
            PointError: the action does not have the size of `commanded`, or a joint's position is unknown.
        """
        if not self._commanded:
            return None
        if len(action) != len(self._commanded):
            raise PointError(
                f"command.joint_names: {len(self._commanded)} names, must be {len(action)}, "
                "the size of an action"
            )
        return self._tip({**self._positions, **dict(zip(self._commanded, action, strict=True))})

    def _tip(self, positions: dict[str, float]) -> np.ndarray:
        for name in self._chain.joint_names:
            if not math.isfinite(positions.get(name, math.nan)):
                raise PointError(f"joint_states: no position of {name} yet that is finite")
        point: np.ndarray = self._chain.pose(positions)[:3, 3]
        return point


class ActionPoints:
    """Points of actions that are positions.

    Args:
        indices: of x, y and z in an action; `UNUSED` for a coordinate that is 0.
    """

    def __init__(self, indices: Sequence[int]) -> None:
        self._indices = indices

    def executed(self, action: Sequence[float]) -> np.ndarray:
        """Return where an action is, (3,).

        Raises:
            PointError: it is too short.
        """
        if max(self._indices) >= len(action):
            raise PointError(
                f"point_of_action: {max(self._indices)}, must be below {len(action)}, the size of an action"
            )
        return np.array([0.0 if index == UNUSED else action[index] for index in self._indices])

    def drafted(self, action: Sequence[float]) -> np.ndarray | None:
        """Return where a drafted action is, (3,); raises as `executed` does."""
        return self.executed(action)


@dataclass(frozen=True)
class PlannedPlace:
    """The points (3,), m, and the colour of one step."""

    executed: np.ndarray
    drafted: np.ndarray | None
    colour: Colour


@dataclass(frozen=True)
class Lines:
    """The lines of a path.

    Attributes:
        executed: ends of the segments from step to step, two each.
        colours: of these ends: that of the segment's first step.
        drafted: points of the drafted line.
    """

    executed: tuple[np.ndarray, ...]
    colours: tuple[Colour, ...]
    drafted: tuple[np.ndarray, ...]


def lines(places: Sequence[PlannedPlace]) -> Lines:
    """Return the executed path, one coloured segment per step, and the drafted path.

    A line with too few points is empty.
    """
    steps = list(pairwise(places))
    drafted = tuple(place.drafted for place in places if place.drafted is not None)
    return Lines(
        executed=tuple(end for step in steps for end in (step[0].executed, step[1].executed)),
        colours=tuple(step[0].colour for step in steps for _ in range(2)),
        drafted=drafted if len(drafted) > 1 else (),
    )


def colour_of(status: DraftStatus) -> Colour:
    """Return the colour of a DraftStatus: verified, skipped by the gate, or a fallback."""
    if status.reason != Reason.NONE:
        return FALLBACK
    return VERIFIED if status.verified else SKIPPED


class EpisodePath:
    """The newest steps of the present episode.

    Args:
        points: of its actions.
        steps: how many are kept.
    """

    def __init__(self, points: ArmPoints | ActionPoints, steps: int) -> None:
        self._points = points
        self._places: deque[PlannedPlace] = deque(maxlen=steps)
        self._newest = (-1, -1)  # episode and step

    def add(self, status: DraftStatus) -> None:
        """Take in a DraftStatus; another episode or an earlier step begins a new path.

        Raises:
            PointError: the step has no point, and is ignored.
        """
        place = PlannedPlace(
            self._points.executed(status.action),
            self._points.drafted(status.draft_action),
            colour_of(status),
        )
        episode, step = status.episode_id, status.step_id
        if episode != self._newest[0] or step < self._newest[1]:
            self._places.clear()
        self._newest = episode, step
        self._places.append(place)

    def lines(self) -> Lines:
        """Return the current lines."""
        return lines(self._places)
