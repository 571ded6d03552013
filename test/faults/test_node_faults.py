"""Nodes that die, come back, come twice, or are of another kind."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from adahi_lab.link.emulator import unavailable
from adahi_ros.protocol.records import Reason

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))

STEPS = 45


def test_a_verifier_is_killed_and_started_again(scene: Any) -> None:
    start_s = time.monotonic()
    scene.kill(scene.verifier)
    log = scene.stage.log
    scene.stage.wait(lambda: log.since(start_s).reasons()[Reason.BREAKER_OPEN] > 0, "draft without asking")
    scene.verifier = scene.start_verifier()
    resumed = scene.resumed_since(time.monotonic())
    print(f"verifier killed: {scene.check(start_s)}; verified again after {resumed} more")


def test_two_verifiers_of_one_name_say_the_same(scene: Any) -> None:
    start_s = time.monotonic()
    second = scene.start_verifier()
    scene.steps_since(time.monotonic(), STEPS)
    scene.resumed_since(time.monotonic())
    scene.kill(scene.verifier)
    scene.verifier = second
    resumed = scene.resumed_since(time.monotonic())
    print(f"two verifiers: {scene.check(start_s)}; verified again after {resumed} more")


def test_a_verifier_of_another_tokenizer_moves_nothing(scene: Any, other_tokenizer: Path) -> None:
    start_s = time.monotonic()
    other = scene.start_verifier(other_tokenizer)
    beside_s = time.monotonic()
    part = scene.steps_since(beside_s, STEPS)
    verified = sum(record.verified for record in part.records)
    scene.kill(scene.verifier)
    alone_s, log = time.monotonic(), scene.stage.log
    scene.stage.wait(lambda: log.since(alone_s).reasons()[Reason.REFUSED] >= STEPS, "refusals")
    assert not any(record.verified for record in log.since(alone_s).records)
    scene.kill(other)
    scene.verifier = scene.start_verifier()
    resumed = scene.resumed_since(time.monotonic())
    print(f"another tokenizer: {verified} of {STEPS} verified beside it; {scene.check(start_s)}")
    print(f"verified again after {resumed} more")


def test_a_draft_policy_is_killed_and_started_again(scene: Any) -> None:
    start_s = time.monotonic()
    scene.kill(scene.draft)
    dead_s = time.monotonic()
    scene.draft = scene.start_draft()
    first = scene.steps_since(dead_s, STEPS).records[0]
    assert sum(first.reason_counts) == 1
    began_s = next(each.at_s for each in scene.stage.log.shown if each.stamp_ns == first.stamp_ns)
    resumed = scene.resumed_since(began_s)
    print(f"draft policy killed: {scene.check(start_s)}; verified {resumed} steps after its first")
