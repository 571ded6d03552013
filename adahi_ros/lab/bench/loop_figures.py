# SPDX-License-Identifier: Apache-2.0
"""What closed loops across a link come to, of the logs of their episodes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from adahi_ros.lab.evaluation.metrics import wilson_interval
from adahi_ros.lab.peers.closed_loop import EpisodeLog


def jerk(joints: Sequence[np.ndarray], rate_hz: float) -> float | None:
    """Return the root mean square of the jerk of all joints at all times, in units of the joints per s^3.

    It is the third difference of positions (Flash and Hogan, 1985, minimise its square).

    Args:
        joints: of each episode, positions (n, J), one a control period.
        rate_hz: of these.

    Returns:
        None where no episode has joints and four periods.
    """
    thirds = [np.diff(positions, 3, axis=0).ravel() for positions in joints if len(positions) > 3]
    together = np.concatenate(thirds) if thirds else np.zeros(0)
    return float(np.sqrt((together**2).mean()) * rate_hz**3) if together.size else None


def longest_gap(moved: Sequence[bool]) -> int:
    """Return of how many periods in a row none had a new command."""
    return max((len(list(run)) for fresh, run in groupby(moved) if not fresh), default=0)


def loop_figures(logs: Sequence[EpisodeLog], rate_hz: float) -> dict[str, Any]:
    """Return the figures of one client under one condition.

    Returns:
        `missed` is the share of control periods without a new command, `still` of those in which the robot
        was held still. `waiting_s` is how much of an episode, from its beginning, was without a new command,
        on average; `start_s` of that what went by before the first. `longest_gap_s` is the mean of the
        longest time in an episode, `longest_gap_most_s` the longest of all. `asked_speed` and
        `asked_acceleration` are the means of the largest that commands asked of a trajectory controller in an
        episode, with `_most` the largest of all.
    """
    steps = sum(len(log.moved) for log in logs)
    successes = sum(log.success for log in logs)
    missed = sum(not fresh for log in logs for fresh in log.moved)
    gaps = [longest_gap(log.moved) / rate_hz for log in logs]
    start_s = float(np.mean([log.start_s for log in logs]))
    return {
        "episodes": len(logs),
        "steps": steps,
        "success_rate": successes / len(logs),
        "success_ci95": list(wilson_interval(successes, len(logs))),
        "calls_per_step": sum(log.calls for log in logs) / steps,
        "calls_per_episode": sum(log.calls for log in logs) / len(logs),
        "missed": missed / steps,
        "still": sum(log.still for log in logs) / steps,
        "waiting_s": start_s + missed / rate_hz / len(logs),
        "start_s": start_s,
        "longest_gap_s": float(np.mean(gaps)),
        "longest_gap_most_s": max(gaps),
        "jerk": jerk([np.array(log.joints) for log in logs], rate_hz),
        "asked_speed": float(np.mean([log.asked_speed for log in logs])),
        "asked_speed_most": max(log.asked_speed for log in logs),
        "asked_acceleration": float(np.mean([log.asked_acceleration for log in logs])),
        "asked_acceleration_most": max(log.asked_acceleration for log in logs),
        "bytes_up_per_step": sum(log.bytes_up for log in logs) / steps,
        "bytes_down_per_step": sum(log.bytes_down for log in logs) / steps,
    }
