"""A clock that jumps. It is that of `use_sim_time`: nobody can set a machine's own clock for a test."""

from __future__ import annotations

import time
from typing import Any

import pytest

from adahi_ros.link.emulator import unavailable
from adahi_ros.wireless.robot_log import Shown

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))

HOUR_S = 3600.0
RESUME_S = 2.0
NOTICED_S = 0.4  # until the draft policy has heard of the new time, it takes observations for stale


def test_an_hour_ahead_and_back_costs_the_observations_of_a_moment(jumping: Any) -> None:
    start_s = time.monotonic()
    log = jumping.stage.log

    def jumps() -> list[float]:
        """When the first observations by another time were shown."""
        ahead_s = [each.stamp_ns * 1e-9 - each.at_s for each in log.shown]
        pairs = zip(log.shown[1:], ahead_s[1:], ahead_s[:-1], strict=True)
        return [each.at_s for each, now_s, before_s in pairs if abs(now_s - before_s) > HOUR_S / 2]

    jumping.stage.wait(lambda: sum(jump_s > start_s for jump_s in jumps()) >= 3, "third jump")
    for jump_s in [each for each in jumps() if each > start_s]:
        assert jumping.verified_since(jump_s) < RESUME_S
    jumped = jumps()

    def close_to_a_jump(shown: Shown) -> bool:
        return any(abs(shown.at_s - jump_s) < NOTICED_S for jump_s in jumped)

    print(f"clock jumps: {jumping.check(start_s, close_to_a_jump)}")
    part = log.since(start_s)
    print(f"{len(part.shown) - len(part.told)} observations without a command")
