"""Speculative decoding on several machines, by a simulated clock: exact, and by the laws of the papers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from test.papers.token_lines import LINES, MACHINES

from adahi_lab.papers.pipeinfer.pipelined_clock import pipelined, ways
from adahi_lab.papers.tokens.run_clock import Machines, alone, speculative
from adahi_lab.papers.tokens.texts import MadeUpText, own_chunk
from adahi_lab.papers.tokens.token_pair import Chunks

NAMES = "PipeInfer, 7 stages", "DSI, 2 instances", "DSI, 7 instances"
CLUSTER = Machines(stages=7, layers=4, layer_s=1 / 28, draft_s=0.02)


@pytest.mark.parametrize("acceptance", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("batch", [1, 3, 8])
def test_every_way_gives_the_targets_own_chunk(acceptance: float, batch: int) -> None:
    text = MadeUpText(20, acceptance, seed=batch)
    own = own_chunk(text)
    assert alone(text, CLUSTER).tokens == own
    assert speculative(text, batch, CLUSTER).tokens == own
    for machines in (CLUSTER, Machines(lanes=3), replace(CLUSTER, cancels=False, link_s=0.1)):
        for most in (1, 2, 50):
            assert pipelined(text, batch, machines, most).tokens == own


@pytest.mark.parametrize("draft_s", [0.02, 0.1, 0.4, 1.0, 1.5])
@pytest.mark.parametrize("acceptance", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_several_targets_are_never_slower_than_one(draft_s: float, acceptance: float) -> None:
    for batch in (1, 4, 10):
        lanes = math.ceil(1.0 / (batch * draft_s))
        machines = Machines(lanes=max(lanes, 2), draft_s=draft_s)
        for seed in range(3):
            text = MadeUpText(40, acceptance, seed)
            took_s = pipelined(text, batch, machines, most=machines.lanes).time_s
            others = alone(text, machines).time_s, speculative(text, batch, machines).time_s
            assert took_s <= min(others) + 1e-9


def test_a_slow_or_wrong_draft_slows_plain_speculation_down() -> None:
    text, machines = MadeUpText(40, 0.1, 0), Machines(draft_s=0.5)
    assert speculative(text, 4, machines).time_s > 2.0 * alone(text, machines).time_s


def test_void_passes_that_go_on_to_their_end_cost_time() -> None:
    text = MadeUpText(60, 0.3, 1)
    stopped = pipelined(text, 4, CLUSTER, 100)
    read = pipelined(text, 4, replace(CLUSTER, cancels=False), 100)
    assert read.time_s > 1.3 * stopped.time_s
    assert stopped.void > 0
    assert 0 < stopped.saved < 28 * stopped.void
    assert read.saved == 0


def test_a_pipeline_is_faster_than_plain_speculation_and_bears_bad_drafts() -> None:
    good, bad = MadeUpText(120, 0.9, 2), MadeUpText(120, 0.0, 2)
    assert speculative(good, 4, CLUSTER).time_s > 1.5 * pipelined(good, 4, CLUSTER, 100).time_s
    assert pipelined(bad, 4, CLUSTER, 100).time_s == pytest.approx(alone(bad, CLUSTER).time_s, rel=0.01)


def test_each_way_is_faster_than_the_target_alone(chunks: Chunks) -> None:
    found = ways(chunks)
    assert found.keys() == {LINES[MACHINES, name].way for name in NAMES}
    assert all(each.time < 4.0 for each in found.values())  # a pass takes 1, an action has four tokens
