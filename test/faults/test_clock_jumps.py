"""A clock that jumps. It is that of `use_sim_time`: nobody can set a machine's own clock for a test."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest

from adahi_lab.bench.robot_log import Shown
from adahi_lab.link.emulator import unavailable

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))

HOUR_S = 3600.0
NOTICED = 12  # observations: until the draft policy has heard of the new time, it takes them for stale


def test_an_hour_ahead_and_back_costs_the_observations_of_a_moment(jumping: Any) -> None:
    start_s = time.monotonic()
    log = jumping.stage.log

    def jumps() -> list[int]:
        """Which observations were the first by another time."""
        ahead_s = [each.stamp_ns * 1e-9 - each.at_s for each in log.shown]
        return [
            number
            for number, (before_s, now_s) in enumerate(pairwise(ahead_s), 1)
            if abs(now_s - before_s) > HOUR_S / 2 and log.shown[number].at_s > start_s
        ]

    jumping.stage.wait(lambda: len(jumps()) >= 3, "third jump")
    for jump in jumps():
        jumping.resumed_since(log.shown[jump].at_s)
    costly = {
        each.stamp_ns for jump in jumps() for each in log.shown[max(0, jump - NOTICED + 1) : jump + NOTICED]
    }

    def close_to_a_jump(shown: Shown) -> bool:
        return shown.stamp_ns in costly

    print(f"clock jumps: {jumping.check(start_s, close_to_a_jump)}")
    part = log.since(start_s)
    print(f"{len(part.shown) - len(part.commands)} observations without a command")
