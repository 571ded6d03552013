# SPDX-License-Identifier: Apache-2.0
"""Robots that go by plans, across links and targets that are as they should be, and as they should not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from adahi_ros.lab.bench.loop_latency import measure_latency

METHODS = ("best", "hybrid", "adahi", "plan_8")
CONDITIONS = {  # link's profile, and how much longer the target takes, s
    "the paper's link": ("wifi_ac", 0.0),
    "target 150 ms slower": ("wifi_ac", 0.15),
    "5 % of packets lost": ("wifi_ac_loss_5", 0.0),
    "no link for 1 s of 5": ("wifi_ac_outages", 0.0),
}


def measure_conditions(
    task: str,
    episodes: int,
    methods: Sequence[str] = METHODS,
    seed: int = 0,
    workers: int = 1,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, dict[str, Any]]:
    """Run methods over DDS by the clock under each of `CONDITIONS`; return the figures of each.

    Arguments and errors as `measure_latency`, whose figures these are.
    """
    found = {}
    for name, (profile, added_compute_s) in CONDITIONS.items():
        say(name)
        found[name] = measure_latency(
            profile,
            task,
            episodes,
            methods,
            rounds=1,
            seed=seed,
            workers=workers,
            added_compute_s=added_compute_s,
            on_run=lambda method, count: say(f"  {method}: {count} episodes"),
        ).figures
    return found
