# SPDX-License-Identifier: Apache-2.0
"""Diagnostics of an active robot, and the changes that it logs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.core.health_level import Health, Level
from adahi_ros.protocol.records import Reason
from adahi_ros.robot.loop import ControlLoop
from adahi_ros.robot.outcomes import Fallback
from adahi_ros.robot.session import VerifierSession, VerifierState

NO_OBSERVATION_S = 1.0  # without an observation, an active robot is in error
QUIET_S = {  # least time between two log lines on this state
    VerifierState.ABSENT: 1.0,
    VerifierState.UNRESPONSIVE: 10.0,
}


@dataclass(frozen=True)
class News:
    """A line for the log.

    Attributes:
        level: severity.
        text: for people.
        refuses: the robot must not begin.
    """

    level: Level
    text: str
    refuses: bool = False


class _Counts(NamedTuple):
    """Counts of the last report."""

    at_s: float
    steps: int = 0
    undrafted: int = 0
    fallbacks: int = 0
    faults: int = 0


class Diagnosis:
    """Keeps the part of a robot's diagnostics that its loop and session do not have.

    Attributes:
        active: the robot makes steps.
        refusal: why it must not; empty if it may. Stays until `begin`, so that diagnostics show it.

    Args:
        now_s: the time.
        period_s: control period; infinite before a contract defines it.
    """

    def __init__(self, now_s: float, period_s: float = math.inf) -> None:
        self.active = False
        self.refusal = ""
        self._logged_s: dict[VerifierState, float] = {}
        self._rate = ObservationRate(period_s)
        self._misnamed_logged = False
        self._slow = self._unsaid = ""  # logged once, and still to be logged
        self.forget(now_s)

    def forget(self, now_s: float) -> None:
        """Reset all counts."""
        self._faults: Counter[str] = Counter()
        self._missed: Counter[str] = Counter()
        self._newest_ns = 0
        self._observed_s = now_s
        self._lacks = self._lacks_logged = ""  # at the last look, and as logged last
        self._rate.reset()
        self._reported = _Counts(now_s)

    def begin(self, now_s: float) -> None:
        """Reset all counts and the refusal: the robot becomes active."""
        self.forget(now_s)
        self.refusal = self._slow = self._unsaid = ""
        self._misnamed_logged = False

    def observed(self, stamp_ns: int, now_s: float) -> News | None:
        """Count an observation; return news where it ends a silence, or where it or replies are late."""
        first, silent_s = not self._newest_ns, now_s - self._observed_s
        self._newest_ns, self._observed_s = stamp_ns, now_s
        if silent_s <= NO_OBSERVATION_S:
            if self._rate.observed(now_s):
                return News(Level.WARN, self._rate.fault)
            text, self._unsaid = self._unsaid, ""
            return News(Level.WARN, text) if text else None
        self._rate.reset()
        if first:
            return News(Level.OK, f"the first observation arrived after {silent_s:.1f} s")
        return News(Level.OK, f"observations arrive again after {silent_s:.1f} s without one")

    def waits(self, now_s: float) -> bool:
        """Whether an active robot lacks observations for too long."""
        return self.active and now_s - self._observed_s > NO_OBSERVATION_S

    def lacks(self, text: str) -> News | None:
        """Take why observations do not arrive, '' if unknown or if they do; return news where that lasts.

        A reason must hold for two looks: DDS may not yet have found a publisher.
        """
        before, self._lacks = self._lacks, text
        if text not in (before, "") or text == self._lacks_logged:
            return None
        self._lacks_logged = text
        return News(Level.WARN, f"no observation: {text}") if text else None

    def ignored(self, field: str) -> None:
        """An input was ignored for a fault of this field."""
        self._faults[field] += 1

    def missed(self, topic: str) -> None:
        """A step was given up because it lacks a sample of this topic."""
        self._missed[topic] += 1

    def news(self, session: VerifierSession, loop: ControlLoop, now_s: float) -> News | None:
        """Return what to log of a link or a session that has changed; None where nothing is new.

        Where it `refuses`, the robot must not be active any longer, and `refusal` is its text.
        """
        if session.misnamed and not self._misnamed_logged:
            self._misnamed_logged = True
            return News(Level.WARN, f"the verifier refuses this robot: {session.misnamed}")
        link, trouble = session.link, session.trouble
        if link is VerifierState.READY:
            return None if session.on_trial else News(Level.OK, link.label)
        if link in QUIET_S:
            if now_s - self._logged_s.get(link, -math.inf) < QUIET_S[link]:
                return None
            self._logged_s[link] = now_s
            return News(Level.WARN, trouble)
        if loop.totals.steps:
            return News(Level.ERROR, f"{link.label}, {loop.fallback.label}: {trouble}")
        self.refusal = f"refused to start, {link.label}: {trouble}"
        return News(Level.ERROR, self.refusal, refuses=True)

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
        still: str = "",
    ) -> Health:
        """Return level, message and figures by name.

        Args:
            session: with the verifier.
            loop: of the robot's steps.
            enabled: the robot may move.
            stopped: the robot was stopped.
            interventions: counts of the safety envelope, by name.
            verifiers: requests and replies of each of several verifiers, by name.
            now_s: the time.
            now_ns: the time on the clock of the observations' stamps.
            still: why the arm does not move: a person has it, a joint is outside of its limits, or it needs a
                fresh press, and why; empty where nothing but the deadman is missing.
        """
        totals, fallbacks, estimate = loop.totals, loop.totals.fallbacks, session.estimate(now_s)
        if (slow := loop.plan_fault) and not self._slow:
            self._slow = self._unsaid = slow
        before = self._reported
        now = self._reported = _Counts(
            now_s, totals.steps, totals.undrafted, sum(fallbacks.values()), self._faults.total()
        )
        age_s = (now_ns - self._newest_ns) / NANOSECONDS if self._newest_ns else math.inf
        figures = {
            "active": self.active,
            "link": session.link.label,
            "trouble": session.trouble,
            "steps": totals.steps,
            "rate_hz": f"{(now.steps - before.steps) / (now.at_s - before.at_s):.1f}",
            "transmission_rate": _share(totals.transmitted, totals.steps),
            "acceptance": _share(totals.kept, totals.coded),
            "repeated": totals.repeated,
            "undrafted": totals.undrafted,
            "dropped": totals.dropped,
            "unattended": totals.unattended,
            **({"person": steps} if (steps := totals.reasons[Reason.PERSON]) else {}),
            "observation_age_s": f"{age_s:.3f}",
            **loop.controller.held.figures,
            **({} if loop.assignments is None else loop.assignments.figures),
            **{f"link.{name}": f"{getattr(estimate, name):.3f}" for name in ("rtt_ms", "loss", "misses")},
            "link.goodput_bytes_s": f"{estimate.goodput_bytes_s:.0f}",
            **{f"verifiers.{name}": value for name, value in verifiers.items()},
            **{f"fallbacks.{reason}": count for reason, count in fallbacks.items()},
            **{f"ignored.{name}": count for name, count in self._faults.items()},
            **{f"missed.{name}": count for name, count in self._missed.items()},
            **{
                f"gate.{name}": f"{value:.3f}"
                for name, value in loop.controller.config.trigger.gate.state.items()
            },
            "enabled": enabled,
            "stopped": stopped,
            **{f"safety.{name}": count for name, count in interventions.items()},
        }
        held = "stopped by the operator" if stopped else still or ("" if enabled else "not enabled")
        return Health(*self._verdict(session, held, loop.fallback, slow, before, now), figures)

    def _verdict(
        self,
        session: VerifierSession,
        held: str,
        fallback: Fallback,
        slow: str,
        before: _Counts,
        now: _Counts,
    ) -> tuple[Level, str]:
        """Return the worst condition since the last report."""
        if self.refusal or session.link is VerifierState.MISMATCHED:
            return Level.ERROR, self.refusal or session.trouble
        if not self.active:
            return Level.OK, "inactive"
        if now.undrafted > before.undrafted:
            return Level.ERROR, "no sound action for an observation, no command"
        ignored = now.faults > before.faults
        if self.waits(now.at_s):  # also while held: the driver may be dead
            why = ", input ignored" if ignored else f": {self._lacks}" if self._lacks else ""
            return Level.ERROR, f"no observation{why}"
        if ignored:
            return Level.WARN, "input ignored"
        if held:
            return Level.WARN, f"held: {held}"
        if fallback.withholds:
            return Level.ERROR, "held: no reply of the target"
        if now.fallbacks > before.fallbacks:
            does = "drafts executed" if fallback.drafts else "the plan is executed, then the robot is held,"
            return Level.WARN, f"{does} without the target's reply"
        fault = self._rate.fault or slow
        return (Level.WARN, fault) if fault else (Level.OK, "stepping")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "nan"


LATE = 1.1  # measured period over the contract's; above it observations are late
WINDOW_S = 1.0
WINDOW_PERIODS = 10
WINDOWS = 5  # in a row, so that jitter and single gaps do not count


class ObservationRate:
    """Compares the mean period of observations with the control period. It has no clock.

    Attributes:
        measured_s: mean period of the last window; 0 before the first one is full.

    Args:
        period_s: control period; infinite if unknown.
    """

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self.reset()

    def reset(self) -> None:
        """Start again, after an activation or a gap in the observations."""
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
        """Lateness of observations, for people; empty if they are in time."""
        if self._late < WINDOWS:
            return ""
        return (
            f"observations are late: every {self.measured_s:.3g} s, the contract's control period is "
            f"{self._period_s:.3g} s; the arm moves slower than the policy wants"
        )


def deadline_warnings(deadline_s: float, period_s: float, hold_after_s: float) -> list[str]:
    """Return warnings about a deadline that does not fit the control period or `safety.hold_after_s`."""
    warnings = []
    if deadline_s >= period_s:
        warnings.append(
            f"deadline_s: {deadline_s:g}, should be below the control period, {period_s:g} s: "
            "a step that waits longer is superseded by the next observation"
        )
    if deadline_s > hold_after_s:
        warnings.append(
            f"deadline_s: {deadline_s:g}, should be at most safety.hold_after_s, {hold_after_s:g} s: "
            "a reply that comes later is not executed"
        )
    return warnings


def calibration_warning(calibrated: str | None, draft: str) -> str | None:
    """Return a warning if the gate's threshold was measured for another draft policy."""
    if calibrated in (None, draft):
        return None
    return (
        f"calibration.draft: {calibrated}, but the draft policy is {draft or 'none'}: the threshold of "
        "the gate was measured for another; measure it for this one"
    )
