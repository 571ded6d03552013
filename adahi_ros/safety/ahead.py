# SPDX-License-Identifier: Apache-2.0
"""A guard with commands that carry points of the next control periods, so that a late step is no stop.

A controller interpolates through the points. Each is within all limits, and the guard knows where on the way
the controller is. So an action that comes late, or a hold, starts there: what it asks for stays within the
limits, and the points that were sent before are replaced.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from adahi_ros.safety.governors import Governor, PositionGovernor
from adahi_ros.safety.guard import Guard
from adahi_ros.safety.intervention import Intervention


class AheadGuard(Guard):
    """A guard of commanded positions, with points after each command.

    Points count as commands that are sent one control period after the other. Arguments as `Guard`.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._points: list[tuple[np.ndarray, tuple[list[Governor], bool]]] = []  # with the envelope's state

    def extend(self, planned: np.ndarray, measured: np.ndarray | None) -> list[np.ndarray]:
        """Return the points (A,) to send with the command that `act` has just returned.

        They are the planned ones up to the first that is not finite, or that a limit would change. There is
        none after an intervention: the robot does not execute its plan then.

        Args:
            planned: (N, A), the actions of the next control steps.
            measured: as in `act`; no point is further from there than `max_step`.
        """
        self._points = []
        if self._commanded is None or self.interventions:
            return []
        envelope, before = self._envelope, self._commanded
        measured = None if measured is None else self._unwrapped(measured, before)
        of_command = envelope.state
        for each in planned:
            wanted = self._unwrapped(np.asarray(each, dtype=np.float64), before)
            admitted = envelope.admit(wanted, measured, self._config.period_s)
            action = admitted.action
            if action is None or admitted.interventions:
                break
            if self._refused(before, action, self._config.period_s):
                break
            self._points.append((action, envelope.state))
            before = action
        envelope.state = of_command
        return [action for action, _ in self._points]

    def _checked(self, measured: np.ndarray | None, now_s: float, stamp_s: float | None) -> np.ndarray | None:
        if self._fault(now_s) is None:  # else a hold follows, which starts where the controller is then
            self._catch_up(now_s)
        return super()._checked(measured, now_s, stamp_s)

    def repeat(self, now_s: float) -> np.ndarray | None:
        """See `Guard`; None while points are on their way: the command before them is outdated."""
        return None if self._points else super().repeat(now_s)

    def halt(self, now_s: float) -> np.ndarray | None:
        """See `Guard`."""
        self._catch_up(now_s)
        return super().halt(now_s)

    def _brake(self, why: Intervention, now_s: float) -> np.ndarray | None:
        self._catch_up(now_s)
        return super()._brake(why, now_s)

    def _catch_up(self, now_s: float) -> None:
        """Take the points that the controller has started as commanded, and forget the others.

        The command is reached one period after it was sent; then the first point begins.
        """
        points, self._points = self._points, []
        motion, period_s, sent_s = self._motion, self._config.period_s, self._motion.put_s
        periods = (now_s - sent_s) / period_s
        begun = min(int(periods), len(points))
        if begun < 1 or motion.at is None:
            return
        for number, (action, _) in enumerate(points[:begun], start=1):
            self._following.commanded(action, sent_s + number * period_s)
        before = points[begun - 2][0] if begun > 1 else motion.at
        action, state = points[begun - 1]
        share = min(1.0, periods - begun)
        place = action if share == 1.0 else before + share * (action - before)
        motion.speeds = (action - before) / period_s
        if share < 1.0:  # as if a command had ended there, at this speed
            for governor, position in zip(state[0], place.tolist(), strict=True):
                cast(PositionGovernor, governor).pass_through(position)
            motion.put_s = now_s - period_s
        else:
            motion.put_s = sent_s + begun * period_s
        motion.at, motion.moved_s = place, np.maximum(motion.moved_s, motion.put_s)
        self._envelope.state = state
