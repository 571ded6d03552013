"""CoSine's decisions, and many robots by a simulated clock."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.papers.cosine.collaboration import (
    Load,
    Router,
    expected_tokens,
    group_size,
)
from adahi_lab.papers.cosine.serving import COSINE, DraftedText, Service, Way
from adahi_lab.papers.cosine.serving_clock import MadeUpDrafts, serve

ROBOTS, CHUNKS, LENGTH, DRAFTERS = 12, 3, 16, 4


def texts(inside: float = 0.9, outside: float = 0.3) -> list[list[DraftedText]]:
    """Chunks of robots, each at a task of one drafter's kind."""
    return [
        [
            MadeUpDrafts(LENGTH, [inside if robot % DRAFTERS == each else outside for each in range(4)], seed)
            for seed in range(CHUNKS * robot, CHUNKS * (robot + 1))
        ]
        for robot in range(ROBOTS)
    ]


@pytest.mark.parametrize("selected", [1, 2, 4])
@pytest.mark.parametrize("tokens", [None, 0, 1, 5])
@pytest.mark.parametrize("pipelined", [True, False])
@pytest.mark.parametrize("routed", [True, False])
def test_every_way_gives_the_targets_own_chunks(
    routed: bool, pipelined: bool, tokens: int | None, selected: int
) -> None:
    made = serve(texts(), Way(routed, selected, pipelined, tokens), Service(DRAFTERS))
    assert made.chunks == [list(range(LENGTH))] * (ROBOTS * CHUNKS)
    assert len(made.latencies_s) == ROBOTS * CHUNKS
    assert made.accepted <= made.drafted
    assert 0.0 <= made.idle_s < made.time_s


def test_it_is_faster_than_plain_speculation_with_the_same_machines() -> None:
    plain, cosine = (serve(texts(), way, Service(DRAFTERS)) for way in (Way(), COSINE))
    assert plain.time_s > 1.325 * cosine.time_s  # the paper's throughput, at most
    assert np.mean(cosine.latencies_s) < (1 - 0.232) * np.mean(plain.latencies_s)


def test_expected_tokens_are_those_of_a_simulation() -> None:
    right = np.random.default_rng(0).random((100_000, 5)) < 0.7
    counted = np.logical_and.accumulate(right, axis=1).sum(axis=1).mean() + 1.0
    assert expected_tokens(0.7, 5) == pytest.approx(counted, abs=0.02)
    assert expected_tokens(1.0, 5) == 6.0


def load(requests: int = 4, acceptance: float = 0.7, token_s: float = 0.1, more_s: float = 0.0) -> Load:
    return Load(
        requests, acceptance, lambda number: token_s, lambda number, each: 1.0 + more_s * number * each
    )


def test_groups_are_halved_where_drafting_takes_as_long_as_a_pass() -> None:
    assert group_size(load(8, token_s=0.02), 8) == 8  # a pass costs the same for half of them
    assert group_size(load(64, acceptance=0.9, token_s=0.4, more_s=0.005), 4) == 32
    assert group_size(load(1), 4) == 1


def test_wrong_numbers_of_drafters_are_refused() -> None:
    with pytest.raises(ValueError, match="selected: 3, must be from 1 to 2"):
        Router(2, 3)
