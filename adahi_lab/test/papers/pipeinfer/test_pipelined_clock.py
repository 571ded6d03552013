"""Speculative decoding on several machines, by a simulated clock: exact, and by the laws of the papers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare
from test.papers.token_lines import LINES, MACHINES

from adahi_lab.papers.pipeinfer.pipelined_clock import pipelined, ways
from adahi_lab.papers.pipeinfer.token_runs import CUTOFF, NO_CUTOFF, Cutoff
from adahi_lab.papers.tokens.run_clock import Machines, alone, speculative
from adahi_lab.papers.tokens.texts import MadeUpText, SampledText, by_last, own_chunk
from adahi_lab.papers.tokens.token_pair import Chunks
from adahi_ros.core.proposal import softmax

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
            for cutoff in (NO_CUTOFF, CUTOFF, Cutoff(0.6, 0.1, 0.05)):
                assert pipelined(text, batch, machines, most, cutoff).tokens == own


def test_void_passes_that_go_on_to_their_end_cost_time() -> None:
    text = MadeUpText(60, 0.3, 1)
    stopped = pipelined(text, 4, CLUSTER, 100)
    read = pipelined(text, 4, replace(CLUSTER, cancels=False), 100)
    assert read.time_s > 1.3 * stopped.time_s
    assert stopped.void > 0
    assert 0 < stopped.saved < 28 * stopped.void
    assert read.saved == 0


@pytest.mark.parametrize("acceptance", [0.0, 0.4, 0.8])
def test_a_cutoff_saves_passes_and_no_time(acceptance: float) -> None:
    text = MadeUpText(100, acceptance, 2)
    drafts, stops = (pipelined(text, 4, CLUSTER, 100, cutoff) for cutoff in (NO_CUTOFF, CUTOFF))
    assert stops.passes < 0.95 * drafts.passes
    assert stops.time_s < 1.03 * drafts.time_s


def test_drafts_that_wait_for_no_reply_gain_more_over_a_link() -> None:
    text = MadeUpText(100, 0.95, 3)
    near, far = CLUSTER, replace(CLUSTER, link_s=0.1)
    assert alone(text, far).time_s == pytest.approx(alone(text, near).time_s + 0.1 * (7 * 100 + 1))
    gains = [speculative(text, 4, each).time_s / pipelined(text, 4, each, 100).time_s for each in (near, far)]
    assert gains[1] > 1.05 * gains[0]


@pytest.mark.parametrize("equal", [False, True])
def test_sampled_chunks_are_distributed_as_the_targets_and_no_stop_changes_them(equal: bool) -> None:
    rng, chunks = np.random.default_rng(5), 2000
    p, q = softmax(2.0 * rng.normal(size=(2, 3, 3, 3)), 1.0).astype(float)
    counts = np.zeros((3, 3, 3))
    for number in range(chunks):
        text = SampledText(by_last(p), by_last(q), rng.random((3, 3)), equal)
        machines = replace(CLUSTER, stages=1, lanes=2, shares=number % 2 == 0, cancels=number % 3 > 0)
        made = pipelined(text, 1 + number % 2, machines, 3).tokens
        assert made == own_chunk(text) == speculative(text, 2, machines).tokens
        counts[tuple(made)] += 1
    expected = q[0, 0][:, None, None] * q[1][:, :, None] * q[2][None]
    assert chisquare(counts.ravel(), expected.ravel() / expected.sum(dtype=float) * chunks).pvalue > 0.01


def test_speculative_sampling_keeps_what_the_distributions_share() -> None:
    rng = np.random.default_rng(6)
    p, q = softmax(2.0 * rng.normal(size=(2, 4)), 1.0)
    texts = [SampledText(lambda before: p, lambda before: q, each) for each in rng.random((4000, 1, 3))]
    kept = np.mean([text.own([]) == [text.drafted([])[0]] for text in texts])
    assert kept == pytest.approx(np.minimum(p, q).sum(), abs=0.03)


def test_a_stop_across_instances_saves_time() -> None:
    text = MadeUpText(200, 0.5, 4)
    both = replace(CLUSTER, stages=1, layers=28, lanes=2, draft_s=0.1)
    times = [pipelined(text, 5, replace(both, shares=each), 2).time_s for each in (True, False)]
    assert times[0] < times[1]


def test_each_way_is_faster_than_the_target_alone(chunks: Chunks) -> None:
    found = ways(chunks)
    assert found.keys() == {LINES[MACHINES, name].way for name in NAMES}
    assert all(each.time < 4.0 for each in found.values())  # a pass takes 1, an action has four tokens
