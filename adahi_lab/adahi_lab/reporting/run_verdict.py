# SPDX-License-Identifier: Apache-2.0
"""Judges the health of a run, by the table in the page on watching a robot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from adahi_lab.calibration.bag_run import BagRun
from adahi_lab.evaluation.loaded_policies import INTENTS
from adahi_lab.figures import Figures
from adahi_lab.reporting.run_timeline import IN_WORDS, Request, requests_of

FEW = 0.005  # share of steps that may fall back
UNANSWERED = 0.05  # share of requests that may get no reply
OUTAGE_S = 0.5  # without a reply to any request; less is a lost packet
LATE_PERIODS = 1.5  # between two steps of an episode: a command is missing


@dataclass(frozen=True)
class Check:
    """One line of the verdict; `healthy` is None where no bound is known."""

    what: str
    value: str
    healthy: bool | None = None


def period_of(run: BagRun) -> float:
    """Return the control period, s: the median between observations of an episode."""
    gaps = [
        b - a
        for (a, first), (b, second) in pairwise(zip(run.times_s.tolist(), run.steps, strict=True))
        if first.episode == second.episode
    ]
    return max(float(np.median(gaps)), 1e-3) if gaps else 1.0


def without_command(run: BagRun, period_s: float) -> float:
    """Return the share of control periods without a command: empty actions and missing steps."""
    missing = sum(not step.action and not step.by_person for step in run.steps)
    periods = len(run.steps)
    for (a, first), (b, second) in pairwise(zip(run.times_s.tolist(), run.steps, strict=True)):
        if first.episode == second.episode and b - a > LATE_PERIODS * period_s:
            lost = round((b - a) / period_s) - 1
            missing, periods = missing + lost, periods + lost
    return missing / periods


def outages(requests: Sequence[Request]) -> list[tuple[float, float]]:
    """Return from when to when no reply came to any request, s of the run, where that lasted long."""
    found: list[tuple[float, float]] = []
    since_s: float | None = None
    for each in requests:
        if not each.replied:
            since_s = each.sent_s if since_s is None else since_s
        elif since_s is not None:
            found.append((since_s, each.end_s))
            since_s = None
    return [(from_s, to_s) for from_s, to_s in found if to_s - from_s >= OUTAGE_S]


def verdict(run: BagRun, figures: Figures, marks: int, period_s: float) -> Iterator[Check]:
    """Yield the lines of a run's verdict.

    Args:
        run: its steps.
        figures: `bag_run_figures` of it.
        marks: number of safety interventions.
        period_s: of the control loop.
    """
    if figures["judged_episodes"]:
        yield Check("episodes that succeeded", f"{figures['successes']} of {figures['judged_episodes']}")
    yield Check("steps", f"{figures['steps']} in {figures['duration_s']:.1f} s, {1 / period_of(run):.1f} Hz")
    yield Check("gate", f"{figures['gate']}, threshold {figures['threshold']:.3g}")
    yield Check("steps with a request", f"{figures['transmission_rate']:.3f}")
    plan = figures["plan"]
    if plan and plan["kind"] == "intent":
        steps = plan["age"]["p95"]
        yield Check("age of the intent, p95", f"{steps:.0f} control steps, {steps * period_s:.1f} s")
    if run.pushes:
        count, requested = figures["pushes"], figures["pushes_with_request"]
        text = f"{count}, with a request within two steps {requested}"
        yield Check("pushes: changed assignments", text, requested == count)
    if count := figures["person_steps"]:
        share = f"{100 * count / figures['steps']:.1f} %, in {figures['takeovers']} takeovers"
        yield Check("steps that a person drove", share)
    silent = without_command(run, period_s)
    yield Check("control periods without a command", f"{100 * silent:.1f} %", silent <= FEW)
    reasons = Counter[str](figures["fallbacks"])
    share = sum(reasons.values()) / figures["steps"]
    named = ", ".join(f"{count} {IN_WORDS.get(name, name)}" for name, count in reasons.most_common(3))
    named = f": {named}" if named else ""
    count = f"{reasons.total()} of {figures['steps']}, {100 * share:.1f} %"
    yield Check("steps that fell back", f"{count}{named}", share <= FEW)
    total = figures["total_ms"]
    if total:
        fast = total["p95"] < 1000 * period_s
        yield Check("latency of a step, p95", f"{total['p95']:.1f} ms of {1000 * period_s:.0f} ms", fast)
    if figures["verify_ms"]:
        yield Check("request to reply, p95", f"{figures['verify_ms']['p95']:.1f} ms")
    if requests := requests_of(run):
        lost = sum(not each.replied for each in requests)
        text = f"{lost} of {len(requests)}, {100 * lost / len(requests):.1f} %"
        yield Check("requests without a reply", text, lost <= max(1, UNANSWERED * len(requests)))
    yield Check("safety interventions", str(marks), marks == 0)


def in_a_sentence(run: BagRun, checks: Sequence[Check], period_s: float) -> str:
    """Return what matters most in a run, for people: a server that is too slow, else what is not healthy.

    Args:
        run: its steps.
        checks: `verdict` of it.
        period_s: of the control loop.
    """
    plans = [step for step in run.steps if step.planned and step.proposer not in INTENTS]
    took_ms = [step.verify_ms for step in run.steps if step.verified]
    if plans and took_ms:
        took_s = float(np.median(took_ms)) / 1000
        half_s = 0.5 * period_s * max(step.plan_age + step.plan_left for step in plans)
        if took_s > half_s:
            return (
                f"The server is too slow for this plan: a reply takes {took_s:.2g} s, and half of a plan is "
                f"{half_s:.2g} s. Execute more of a plan (execution_horizon), or make the target faster."
            )
    bad = [f"{check.what} ({check.value})" for check in checks if check.healthy is False]
    look = f"Look at: {'; '.join(bad)}." if bad else "All is well: every figure with a bound is within it."
    if away := outages(requests_of(run)):
        (first_s, _), times = away[0], "once" if len(away) == 1 else f"{len(away)} times"
        longest_s = max(to_s - from_s for from_s, to_s in away)
        return (
            f"The server did not reply {times}, for up to {longest_s:.1f} s, first at {first_s:.1f} s: "
            f"the link was cut, or the server was busy or gone. {look}"
        )
    return look
