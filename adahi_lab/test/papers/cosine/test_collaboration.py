"""CoSine's decisions, and many robots by a simulated clock."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.papers.cosine.collaboration import (
    Load,
    Opinion,
    Router,
    expected_tokens,
    fused,
    group_size,
    tokens_to_draft,
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


def test_routing_finds_the_drafter_of_a_task() -> None:
    router, rng = Router(4, 1), np.random.default_rng(0)
    chosen = []
    for _ in range(60):
        (drafter,) = router.drafters(7)
        right = int(rng.binomial(4, 0.9 if drafter == 2 else 0.2))
        router.verified(7, right / 4, {drafter: (right, 4)})
        chosen.append(drafter)
    assert chosen[30:].count(2) > 22
    assert router.scores(7).argmax() == 2
    assert router.scores(8).tolist() == [0.5] * 4  # another request's


def test_after_a_bad_draft_all_drafters_get_a_turn() -> None:
    router = Router(5, 2)
    tried = set()
    for _ in range(40):
        tried.update(router.drafters(1))
        router.verified(1, 0.0, {})
    assert tried == set(range(5))


def test_the_most_confident_token_counts() -> None:
    opinions = [Opinion(3, 0.5), Opinion(4, 0.6)]
    assert fused(opinions, [0.5, 0.5]) == 4
    assert fused(opinions, [0.9, 0.5]) == 3  # of a drafter that is right more often


def test_expected_tokens_are_those_of_a_simulation() -> None:
    right = np.random.default_rng(0).random((100_000, 5)) < 0.7
    counted = np.logical_and.accumulate(right, axis=1).sum(axis=1).mean() + 1.0
    assert expected_tokens(0.7, 5) == pytest.approx(counted, abs=0.02)
    assert expected_tokens(1.0, 5) == 6.0


def load(requests: int = 4, acceptance: float = 0.7, token_s: float = 0.1, more_s: float = 0.0) -> Load:
    return Load(
        requests, acceptance, lambda number: token_s, lambda number, each: 1.0 + more_s * number * each
    )


def test_a_busy_verifier_gets_longer_drafts() -> None:
    counts = [tokens_to_draft(load(), busy_s, 8)[0] for busy_s in (0.0, 0.5, 1.0)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1] == 8


def test_the_draft_is_as_long_as_it_is_good_and_cheap() -> None:
    assert tokens_to_draft(load(acceptance=0.1), 0.0, 8)[0] <= 1
    assert tokens_to_draft(load(acceptance=0.95), 0.0, 8)[0] == 8
    assert tokens_to_draft(load(token_s=1.0, acceptance=0.3), 0.0, 8)[0] == 0
    assert tokens_to_draft(load(requests=500, more_s=0.1), 0.0, 8)[0] == 0  # each token costs a pass


def test_groups_are_halved_where_drafting_takes_as_long_as_a_pass() -> None:
    assert group_size(load(8, token_s=0.02), 8) == 8  # a pass costs the same for half of them
    assert group_size(load(64, acceptance=0.9, token_s=0.4, more_s=0.005), 4) == 32
    assert group_size(load(1), 4) == 1


def test_wrong_numbers_of_drafters_are_refused() -> None:
    with pytest.raises(ValueError, match="selected: 3, must be from 1 to 2"):
        Router(2, 3)
