# SPDX-License-Identifier: Apache-2.0
"""Figures of runs over DDS, from the draft policy node's status of each step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike

from adahi_lab.evaluation.metrics import wilson_interval
from adahi_lab.evaluation.run_record import Crossed, RunRecord
from adahi_lab.evaluation.step_latency import throughput
from adahi_lab.figures import Figures
from adahi_ros.protocol.records import ON_COURSE, Reason, StepRecord


def spread(values: ArrayLike) -> dict[str, float] | None:
    """Return mean, p50, p95 and p99 of finite values, or None without any."""
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return None
    p50, p95, p99 = np.percentile(finite, (50, 95, 99))
    return {"mean": float(finite.mean()), "p50": float(p50), "p95": float(p95), "p99": float(p99)}


def fell_back(steps: Sequence[StepRecord]) -> list[bool]:
    """Return which steps fell back: they lacked the target's reply, or a plan.

    Before the first plan of an episode a robot that executes plans waits, and does not fall back.
    """
    found, planned = [], set[int]()
    for step in steps:
        if step.planned:
            planned.add(step.episode)
        waits = step.reason is Reason.NO_PLAN and step.episode not in planned
        found.append(step.reason not in ON_COURSE and not waits)
    return found


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _per_action(crossed: Crossed | None, name: str) -> float | None:
    """Return bytes per step that crossed a link; None without a link, or with only one step."""
    return getattr(crossed, name) / crossed.steps if crossed is not None and crossed.steps else None


def run_throughput(run: RunRecord, window: int) -> list[float]:
    """Return actions per second over windows of this many steps, episode by episode."""
    rates: list[float] = []
    for _, steps in groupby(run.steps, key=lambda step: step.episode):
        latency = np.array([[step.total_ms] for step in steps])
        rates += throughput(latency, np.ones(latency.shape, dtype=bool), window).tolist()
    return rates


def missed_periods(run: RunRecord, period_s: float) -> int:
    """Return the number of control periods without a command to their observation.

    This counts commands that were late, withheld, or missing because the robot processed another observation.
    Where the world waits for commands, it counts those that it waited for.
    """
    in_time = {
        (step.episode, step.step) for step in run.steps if step.action and step.total_ms <= 1e3 * period_s
    }
    return sum(episode.steps for episode in run.episodes) - len(in_time)


def run_figures(run: RunRecord, rate_hz: float) -> Figures:
    """Return the figures of one method's run, as `adahi demo --json` writes them.

    Args:
        run: what happened.
        rate_hz: of the control steps; throughput is measured over one second.
    """
    rows, outcomes = run.steps, run.episodes
    successes = sum(outcome.success for outcome in outcomes)
    verified = [row for row in rows if row.verified]
    return {
        "success_rate": successes / len(outcomes),
        "success_ci95": list(wilson_interval(successes, len(outcomes))),
        "transmission_rate": float(np.mean([row.transmitted for row in rows])),
        "acceptance_rate": _mean([all(row.accepted) for row in verified if row.accepted]),
        "per_action_latency_ms": spread([row.total_ms for row in rows]),
        "throughput_per_s": [round(rate, 2) for rate in run_throughput(run, round(rate_hz))],
        "draft_ms": spread([row.draft_ms for row in rows]),
        "verify_rtt_ms": spread([row.verify_ms for row in verified]),
        "target_compute_ms": spread([row.target_compute_ms for row in verified]),
        "request_bytes": _mean([row.request_bytes for row in rows if row.request_bytes]),
        "response_bytes": _mean([row.response_bytes for row in rows if row.response_bytes]),
        "bytes_up_per_action": _per_action(run.crossed, "bytes_up"),
        "bytes_down_per_action": _per_action(run.crossed, "bytes_down"),
        "steps": len(rows),
        "missed_periods": missed_periods(run, 1.0 / rate_hz),
        "transmitted": sum(row.transmitted for row in rows),
        "fallbacks": sum(fell_back(rows)),
    }
