# SPDX-License-Identifier: Apache-2.0
"""A robot's run from a bag: the draft policy's status of each step, the link, and the safety envelope."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from adahi_lab.evaluation.loaded_policies import INTENTS
from adahi_lab.evaluation.metrics import wilson_interval
from adahi_lab.evaluation.run_metrics import fell_back, spread
from adahi_lab.evaluation.run_record import EpisodeRecord
from adahi_lab.figures import Figures
from adahi_ros.bags.bag_reader import OnLoss, read_bag
from adahi_ros.bags.definitions import BagError
from adahi_ros.bags.recorded_topics import ASSIGNMENTS, BESIDE_A_RUN, DRAFT_STATUS
from adahi_ros.contract.fields import NANOSECONDS, stamp_ns
from adahi_ros.protocol.notice import Notice
from adahi_ros.protocol.records import UNSAID, StepRecord
from adahi_ros.protocol.run_records import step_record_from_message
from adahi_ros.robot.assignments import AssignmentWatch
from adahi_ros.safety.intervention import Intervention

INTERVENTIONS = tuple(each.name.lower() for each in Intervention)


@dataclass(frozen=True)
class LinkSample:
    """State of the link at a time; fields as in `LinkState.msg`, `time_s` since the bag's first status."""

    time_s: float
    rtt_ms: float
    rtt_deviation_ms: float
    loss: float
    misses: float
    goodput_bytes_s: float


@dataclass(frozen=True)
class Push:
    """A notice of the verifier that changed the robot's assignment.

    Attributes:
        time_s: of its arrival, since the bag's first status.
        revision: of the assignment; 0 for none.
        requested: the robot sent a request at one of the next two steps, or again for a step that waited.
    """

    time_s: float
    revision: int
    requested: bool


@dataclass(frozen=True)
class BagRun:
    """A run as read from a bag.

    Attributes:
        steps: as in the draft policy's status.
        times_s: (T,) of their observations, since the first.
        episodes: how they ended, where that was recorded.
        link: samples of the link's state.
        interventions: of the safety envelope, by kind.
        loss: what was left out of a truncated bag; see `read_bag`.
        pushes: after the first step.
    """

    steps: tuple[StepRecord, ...]
    times_s: np.ndarray
    episodes: tuple[EpisodeRecord, ...]
    link: tuple[LinkSample, ...]
    interventions: dict[str, int]
    loss: str = ""
    pushes: tuple[Push, ...] = ()


def step_record(message: Any, path: Path, number: int) -> StepRecord:
    """Return the control step with this number from a DraftStatus message of a bag.

    Raises:
        BagError: the message is no valid step.
    """
    try:
        return step_record_from_message(message, stamp_ns(message.header.stamp))
    except ValueError as error:
        raise BagError(f"{path}: draft_status: step {number}, {error}") from None


def read_run(path: Path, namespace: str = "", on_loss: OnLoss | None = None) -> BagRun:
    """Read the run of one robot from a bag. For `on_loss` see `read_bag`.

    Raises:
        BagError: the bag cannot be used, or has no `draft_status`.
    """
    steps: list[StepRecord] = []
    episodes: list[EpisodeRecord] = []
    states: list[tuple[int, Any]] = []
    counts: list[Counter[str]] = []
    notices: list[tuple[int, Any]] = []
    losses: list[str] = []

    def lost(loss: str) -> None:
        losses.append(loss)
        if on_loss is not None:
            on_loss(loss)

    report = None if on_loss is None else lost
    for received in read_bag(path, DRAFT_STATUS, {**BESIDE_A_RUN, **ASSIGNMENTS}, namespace, report):
        message = received.message
        if received.topic == "draft_status":
            steps.append(step_record(message, path, len(steps)))
        elif received.topic == "link_state":
            states.append((stamp_ns(message.header.stamp), message))
        elif received.topic == "safety_state":
            counts.append(Counter(dict(zip(INTERVENTIONS, map(int, message.counts), strict=False))))
        elif received.topic == "assignments":
            notices.append((received.received_ns, message))
        else:
            episodes.append(EpisodeRecord(int(message.episode_id), int(message.steps), bool(message.success)))
    start_ns = steps[0].stamp_ns
    names = [each.name for each in fields(LinkSample)[1:]]
    link = [
        LinkSample((at - start_ns) / NANOSECONDS, *(float(getattr(each, name)) for name in names))
        for at, each in states
    ]
    times_s = (np.array([step.stamp_ns for step in steps]) - start_ns) / NANOSECONDS
    interventions = dict(_since_activations(counts))
    beside = tuple(episodes), tuple(link), interventions, "; ".join(losses)
    return BagRun(tuple(steps), times_s, *beside, _pushes(steps, notices))


def _pushes(steps: Sequence[StepRecord], notices: Sequence[tuple[int, Any]]) -> tuple[Push, ...]:
    """Return the notices, with their times of arrival in ns, that changed the assignment during the run."""
    watch, found = AssignmentWatch(), []
    for at_ns, message in notices:
        try:
            notice = Notice.from_message(message, steps[0].robot_id)
        except ValueError:  # the robot ignores it, too
            continue
        changes = watch.noticed(notice)
        watch.replied(notice.own)
        if changes and at_ns > steps[0].stamp_ns:
            at_s = (at_ns - steps[0].stamp_ns) / NANOSECONDS
            found.append(Push(at_s, notice.own, _requested(steps, at_ns)))
    return tuple(found)


def _requested(steps: Sequence[StepRecord], at_ns: int) -> bool:
    """Whether a push at this time was followed by a request; see `Push`."""
    after = bisect_right(steps, at_ns, key=lambda step: step.stamp_ns)
    waited = steps[after - 1]
    waits = waited.stamp_ns + waited.total_ms * 1e6 > at_ns
    return (waits and waited.transmitted) or any(step.transmitted for step in steps[after : after + 2])


def _since_activations(counts: Sequence[Counter[str]]) -> Counter[str]:
    """Add up counters that restart at zero whenever the node is activated."""
    total: Counter[str] = Counter()
    for before, now in zip([Counter[str](), *counts], counts, strict=False):
        restarted = any(now[name] < before[name] for name in INTERVENTIONS)
        total.update(now if restarted else now - before)
    return +total


def bag_run_figures(run: BagRun) -> Figures:
    """Return the figures of a run, as `adahi report BAG --json` writes them."""
    steps = run.steps
    verified = [step for step in steps if step.verified]
    coded = [step for step in verified if step.accepted]
    fallen = zip(steps, fell_back(steps), strict=True)
    reasons = Counter(step.reason.name.lower().replace("_", " ") for step, fell in fallen if fell)
    duration_s = float(run.times_s[-1])
    successes = sum(each.success for each in run.episodes)
    known = [sample for sample in run.link if np.isfinite(sample.rtt_ms)]
    return {
        "robot_id": steps[0].robot_id,
        "gate": steps[-1].gate,
        "threshold": steps[-1].threshold,
        "steps": len(steps),
        "duration_s": round(duration_s, 3),
        "episodes": len({step.episode for step in steps}),
        "judged_episodes": len(run.episodes),
        "successes": successes if run.episodes else None,
        "success_ci95": list(wilson_interval(successes, len(run.episodes))) if run.episodes else None,
        "transmission_rate": float(np.mean([step.transmitted for step in steps])),
        "reply_rate": len(verified) / max(1, sum(step.transmitted for step in steps)),
        "acceptance_rate": float(np.mean([all(step.accepted) for step in coded])) if coded else None,
        "fallbacks": dict(reasons),
        "person_steps": sum(step.by_person for step in steps),
        "takeovers": len(takeovers(run)),
        "total_ms": spread([step.total_ms for step in steps]),
        "draft_ms": spread([step.draft_ms for step in steps]),
        "verify_ms": spread([step.verify_ms for step in verified]),
        "target_compute_ms": spread([step.target_compute_ms for step in verified]),
        "request_bytes": spread([step.request_bytes for step in steps if step.request_bytes]),
        "response_bytes": spread([step.response_bytes for step in steps if step.response_bytes]),
        "deviation": spread([step.deviation for step in steps]),
        "link_rtt_ms": spread([sample.rtt_ms for sample in known]),
        "link_loss": (spread([sample.loss for sample in known]) or {}).get("mean"),
        "interventions": run.interventions,
        "cut_off": run.loss or None,
        "plan": _plan_figures(steps),
        "pushes": len(run.pushes),
        "pushes_with_request": sum(push.requested for push in run.pushes),
    }


def takeovers(run: BagRun) -> list[tuple[float, float]]:
    """Return from when to when a person drove, s: first and last step of each takeover."""
    times = [(step.by_person, at_s) for at_s, step in zip(run.times_s.tolist(), run.steps, strict=True)]
    parts = [(person, [at_s for _, at_s in part]) for person, part in groupby(times, key=itemgetter(0))]
    return [(part[0], part[-1]) for person, part in parts if person]


def held_name(steps: Sequence[StepRecord]) -> str:
    """Return what the robot acts by between requests: `intent` or `plan`."""
    planned = [step.proposer for step in steps if step.planned]
    return "intent" if planned and planned[-1] in INTENTS else "plan"


def _plan_figures(steps: Sequence[StepRecord]) -> dict[str, object] | None:
    """Return the figures of the executed plan, or of the intent; None if there never was one.

    `age` is in control steps, `correction` in action units (see `StepRecord`), `expected_error` in action
    scales.
    """
    planned = [step for step in steps if step.planned]
    if not planned:
        return None
    corrections = [step.correction for step in planned]
    return {
        "proposer": planned[-1].proposer,
        "kind": held_name(steps),
        "share": len(planned) / len(steps),
        "without_plan": len(steps) - len(planned),
        "age": spread([step.plan_age for step in planned]),
        "correction": spread([each for each in corrections if each is not None]),
        "expected_error": spread([step.expected_error for step in planned if step.expected_error != UNSAID]),
        "requests_pending": spread([step.requests_pending for step in planned]),
    }
