# SPDX-License-Identifier: Apache-2.0
"""What becomes of a robot while it is active: what came of its inputs, and whether it refused to begin."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.core.health_level import Health, Level
from adahi_ros.robot.loop import ControlLoop
from adahi_ros.robot.robot_health import NO_OBSERVATION_S, HealthWatch, LinkNews, News, RobotState
from adahi_ros.robot.session import VerifierSession


class Diagnosis:
    """Keeps what a robot's diagnostics tell of it beside what its loop and its session know.

    Attributes:
        active: the robot makes steps.
        refusal: why it must not; empty where it may. Stays until `begin`, so that diagnostics tell it.

    Args:
        now_s: the time.
        period_s: of the control; infinite before a contract gives it.
    """

    def __init__(self, now_s: float, period_s: float = math.inf) -> None:
        self.active = False
        self.refusal = ""
        self._news = LinkNews()
        self._rate = ObservationRate(period_s)
        self._misnamed_told = False
        self.forget(now_s)

    def forget(self, now_s: float) -> None:
        """Begin to count anew."""
        self._faults: Counter[str] = Counter()
        self._missed: Counter[str] = Counter()
        self._newest_ns = 0
        self._heard_s = now_s
        self._rate.reset()
        self._watch = HealthWatch(now_s)

    def begin(self, now_s: float) -> None:
        """Forget all, the refusal too: the robot is to be active."""
        self.forget(now_s)
        self.refusal = ""
        self._misnamed_told = False

    def observed(self, stamp_ns: int, now_s: float) -> News | None:
        """Count an observation; return news where it ends a silence, or where observations are late."""
        first, silent_s = not self._newest_ns, now_s - self._heard_s
        self._newest_ns, self._heard_s = stamp_ns, now_s
        if silent_s <= NO_OBSERVATION_S:
            return News(Level.WARN, self._rate.fault) if self._rate.observed(now_s) else None
        self._rate.reset()
        if first:
            return News(Level.OK, f"the first observation arrived after {silent_s:.1f} s")
        return News(Level.OK, f"observations arrive again after {silent_s:.1f} s without one")

    def ignored(self, field: str) -> None:
        """An input was ignored for a fault of this field."""
        self._faults[field] += 1

    def missed(self, topic: str) -> None:
        """A step was given up for want of a sample of this topic."""
        self._missed[topic] += 1

    def news(self, session: VerifierSession, loop: ControlLoop, now_s: float) -> News | None:
        """Return what is worth a word of a link or a session that has changed; None where nothing is.

        Where it `refuses`, the robot must not be active any longer, and `refusal` is its text.
        """
        if session.misnamed and not self._misnamed_told:
            self._misnamed_told = True
            return News(Level.WARN, f"the verifier refuses this robot: {session.misnamed}")
        news = self._news.of(
            session.link,
            session.trouble,
            session.on_trial,
            loop.totals.steps,
            loop.fallback.label,
            now_s,
        )
        if news is not None and news.refuses:
            self.refusal = news.text
        return news

    def report(
        self,
        session: VerifierSession,
        loop: ControlLoop,
        enabled: bool,
        stopped: bool,
        interventions: Mapping[str, int],
        verifiers: Mapping[str, object],
        now_s: float,
        now_ns: int,
    ) -> Health:
        """Return how bad it is, what it is, and figures by their names.

        Args:
            session: with the verifier.
            loop: of the robot's steps.
            enabled: it may move.
            stopped: it was stopped.
            interventions: of the safety envelope, by name.
            verifiers: what each of several was asked and how it replies, by name.
            now_s: the time.
            now_ns: the time on the clock of the observations' stamps.
        """
        age_s = (now_ns - self._newest_ns) / NANOSECONDS if self._newest_ns else math.inf
        vitals = RobotState(
            self.active,
            self.refusal,
            session.link,
            session.trouble,
            loop.totals,
            session.estimate(now_s),
            self._faults,
            self._missed,
            self._heard_s,
            age_s,
            enabled,
            stopped,
            loop.fallback.withholds,
            interventions,
            verifiers,
            loop.controller.config.trigger.gate.state,
            self._rate.fault,
        )
        return self._watch.report(vitals, now_s)


LATE = 1.1  # measured period over the contract's; later observations cost speed
WINDOW_S = 1.0
WINDOW_PERIODS = 10
WINDOWS = 5  # in a row, so that jitter and single gaps do not count


class ObservationRate:
    """Compares the mean period of observations with the control period. It knows no clock.

    Attributes:
        measured_s: mean period of the last window; 0 before the first one is full.

    Args:
        period_s: of the control; infinite where it is unknown.
    """

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self.reset()

    def reset(self) -> None:
        """Begin again: the robot becomes active, or there was a silence."""
        self.measured_s = 0.0
        self._since_s: float | None = None
        self._count = self._late = 0

    def observed(self, now_s: float) -> bool:
        """Take an observation; return whether observations are late from this one on."""
        if self._since_s is None:
            self._since_s = now_s
            return False
        self._count += 1
        passed_s = now_s - self._since_s
        if passed_s < max(WINDOW_S, WINDOW_PERIODS * self._period_s):
            return False
        self.measured_s = passed_s / self._count
        self._late = self._late + 1 if self.measured_s > LATE * self._period_s else 0
        self._since_s, self._count = now_s, 0
        return self._late == WINDOWS

    @property
    def fault(self) -> str:
        """How late observations are, for people; empty where they are not."""
        if self._late < WINDOWS:
            return ""
        return (
            f"observations are late: every {self.measured_s:.3g} s, the contract's control period is "
            f"{self._period_s:.3g} s; the arm moves slower than the policy wants"
        )
