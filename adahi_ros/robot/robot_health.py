# SPDX-License-Identifier: Apache-2.0
"""What a robot says of itself: how it does, and what has become of its verifier."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from adahi_ros.core.health_level import Health, Level
from adahi_ros.gates.interface import LinkEstimate
from adahi_ros.robot.session import VerifierState
from adahi_ros.robot.steps import Totals

NO_OBSERVATION_S = 1.0  # then an active robot is in error
QUIET_S = {
    VerifierState.ABSENT: 1.0,
    VerifierState.UNRESPONSIVE: 10.0,
}  # after news of that kind; it may stay too slow


@dataclass(frozen=True)
class RobotState:
    """What a robot's health shows in.

    Attributes:
        active: it makes steps.
        refusal: why it was deactivated by itself; empty where it was not.
        link: whether there is a verifier.
        trouble: why not.
        totals: of its steps.
        estimate: of the way to the verifier.
        faults: inputs that were ignored, by field.
        missed: steps that were given up for want of a sample, by topic.
        heard_s: when there was an observation, or it became active.
        observation_age_s: of the newest one's stamp; infinite where there is none.
        enabled: it may move.
        stopped: it was stopped.
        withheld: it may not go on without the target.
        interventions: of the safety envelope, by name.
        verifiers: what each of several was asked and how it replies, by name.
        gate: what the gate has learned, by name.
        late: how late observations are, for people; empty where they are not.
    """

    active: bool
    refusal: str
    link: VerifierState
    trouble: str
    totals: Totals
    estimate: LinkEstimate
    faults: Counter[str]
    missed: Counter[str]
    heard_s: float
    observation_age_s: float
    enabled: bool
    stopped: bool
    withheld: bool
    interventions: Mapping[str, int]
    verifiers: Mapping[str, object]
    gate: Mapping[str, float]
    late: str = ""


@dataclass(frozen=True)
class _Counts:
    """What has been reported."""

    at_s: float
    steps: int = 0
    undrafted: int = 0
    fallbacks: int = 0
    faults: int = 0


class HealthWatch:
    """Tells from one report to the next how a robot does.

    Args:
        now_s: the time; all counts begin at 0.
    """

    def __init__(self, now_s: float) -> None:
        self._reported = _Counts(now_s)

    def report(self, vitals: RobotState, now_s: float) -> Health:
        """Return how bad it is, what it is, and figures by their names."""
        totals, fallbacks = vitals.totals, vitals.totals.fallbacks
        before = self._reported
        now = self._reported = _Counts(
            now_s, totals.steps, totals.undrafted, sum(fallbacks.values()), vitals.faults.total()
        )
        return Health(*_verdict(vitals, before, now), _figures(vitals, before, now))


def _verdict(vitals: RobotState, before: _Counts, now: _Counts) -> tuple[Level, str]:
    if vitals.refusal or vitals.link is VerifierState.MISMATCHED:
        return Level.ERROR, vitals.refusal or vitals.trouble
    if not vitals.active:
        return Level.OK, "inactive"
    if now.undrafted > before.undrafted:
        return Level.ERROR, "no sound action for an observation, no command"
    ignored = now.faults > before.faults
    if now.at_s - vitals.heard_s > NO_OBSERVATION_S:  # also while held: the driver may be dead
        return Level.ERROR, "no observation, input ignored" if ignored else "no observation"
    if ignored:
        return Level.WARN, "input ignored"
    if vitals.stopped:
        return Level.WARN, "held: stopped by the operator"
    if not vitals.enabled:
        return Level.WARN, "held: not enabled"
    if vitals.withheld:
        return Level.ERROR, "held: no reply of the target"
    if now.fallbacks > before.fallbacks:
        return Level.WARN, "drafts executed without the target's reply"
    if vitals.late:
        return Level.WARN, vitals.late
    return Level.OK, "stepping"


def _figures(vitals: RobotState, before: _Counts, now: _Counts) -> dict[str, object]:
    totals, estimate = vitals.totals, vitals.estimate
    return {
        "active": vitals.active,
        "link": vitals.link.label,
        "trouble": vitals.trouble,
        "steps": totals.steps,
        "rate_hz": f"{(now.steps - before.steps) / (now.at_s - before.at_s):.1f}",
        "transmission_rate": _share(totals.transmitted, totals.steps),
        "acceptance": _share(totals.kept, totals.coded),
        "repeated": totals.repeated,
        "undrafted": totals.undrafted,
        "dropped": totals.dropped,
        "unattended": totals.unattended,
        "observation_age_s": f"{vitals.observation_age_s:.3f}",
        "link.rtt_ms": f"{estimate.rtt_ms:.3f}",
        "link.loss": f"{estimate.loss:.3f}",
        "link.misses": f"{estimate.misses:.3f}",
        "link.goodput_bytes_s": f"{estimate.goodput_bytes_s:.0f}",
        **{f"verifiers.{name}": value for name, value in vitals.verifiers.items()},
        **{f"fallbacks.{reason}": count for reason, count in totals.fallbacks.items()},
        **{f"ignored.{name}": count for name, count in vitals.faults.items()},
        **{f"missed.{name}": count for name, count in vitals.missed.items()},
        **{f"gate.{name}": f"{value:.3f}" for name, value in vitals.gate.items()},
        "enabled": vitals.enabled,
        "stopped": vitals.stopped,
        **{f"safety.{name}": count for name, count in vitals.interventions.items()},
    }


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "nan"


@dataclass(frozen=True)
class News:
    """What has become of the verifier.

    Attributes:
        level: how bad it is.
        text: for people.
        refuses: the robot must not begin.
    """

    level: Level
    text: str
    refuses: bool = False


class LinkNews:
    """Tells what a change of the link means."""

    def __init__(self) -> None:
        self._told_s: dict[VerifierState, float] = {}

    def of(
        self, link: VerifierState, trouble: str, on_trial: bool, steps: int, fallback: str, now_s: float
    ) -> News | None:
        """Return what is worth a word; None where nothing is, or the same was said a moment ago.

        Args:
            link: as it is now.
            trouble: why it is not READY.
            on_trial: READY again after missed deadlines, but no reply has come in time since.
            steps: that the robot has made.
            fallback: what becomes of its drafts meanwhile, for people.
            now_s: the time.
        """
        if link is VerifierState.READY:
            return None if on_trial else News(Level.OK, link.label)
        if link in QUIET_S:
            if now_s - self._told_s.get(link, -math.inf) < QUIET_S[link]:
                return None
            self._told_s[link] = now_s
            return News(Level.WARN, trouble)
        if steps > 0:
            return News(Level.ERROR, f"{link.label}, {fallback}: {trouble}")
        return News(Level.ERROR, f"refused to start, {link.label}: {trouble}", refuses=True)


def deadline_warnings(deadline_s: float, period_s: float, hold_after_s: float) -> list[str]:
    """Return what is unwise about a deadline beside the control period and the time until a robot is held."""
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
    """Return what is wrong with a gate's threshold that was measured for another draft policy than this."""
    if calibrated in (None, draft):
        return None
    return (
        f"calibration.draft: {calibrated}, but the draft policy is {draft or 'none'}: the threshold of "
        "the gate was measured for another; run 'adahi calibrate' for this one"
    )
