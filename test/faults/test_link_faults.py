"""A link that loses, cuts, duplicates and reorders: every observation gets its command, and the right one."""

from __future__ import annotations

import time
from typing import Any

import pytest

from adahi_lab.link.emulator import unavailable
from adahi_ros.protocol.records import Reason

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))

STEPS = 75
LATE_MS = 1000.0  # a round trip of many periods


@pytest.mark.parametrize(
    "fault", [{"loss": 0.01}, {"loss": 0.1}, {"duplicate": 0.3, "reorder": 0.3}], ids=["1 %", "10 %", "order"]
)
def test_packets_lost_doubled_or_out_of_order_make_no_step_late_or_wrong(
    scene: Any, fault: dict[str, float]
) -> None:
    start_s = time.monotonic()
    scene.stage.link.change(**fault)
    part = scene.steps_since(start_s, STEPS)
    assert any(record.verified for record in part.records)
    scene.stage.link.change(**dict.fromkeys(fault, 0.0))
    resumed = scene.resumed_since(time.monotonic())
    print(f"{fault}: {scene.check(start_s)}; verified again after {resumed} more")


@pytest.mark.parametrize("outage_s", [0.5, 7.0])  # the second is longer than the ends know each other, 5 s
def test_drafts_through_an_outage_then_verification_again(scene: Any, outage_s: float) -> None:
    start_s = time.monotonic()
    scene.stage.link.cut(outage_s)
    back_s = time.monotonic() + outage_s
    resumed = scene.resumed_since(back_s)
    reasons = scene.stage.log.since(start_s).reasons()
    assert reasons[Reason.BREAKER_OPEN] > 0  # it may have been open before, on a busy machine
    print(f"outage of {outage_s} s: {scene.check(start_s)}; verified again after {resumed} more")


def test_replies_that_come_when_no_one_waits_any_more_are_dropped(scene: Any) -> None:
    usual_ms = scene.profile.rtt_mean_ms
    scene.stage.link.change(rtt_mean_ms=LATE_MS)
    start_s = time.monotonic()
    scene.steps_since(start_s, STEPS)
    scene.stage.link.change(rtt_mean_ms=usual_ms)
    late = scene.stage.log.since(start_s)
    resumed = scene.resumed_since(time.monotonic())
    assert not any(record.verified for record in late.records)
    print(f"late replies: {scene.check(start_s)}; verified again after {resumed} more")
