"""CoSine's decisions, and many robots by a simulated clock."""

from __future__ import annotations

import numpy as np
import pytest

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
    assert made.accepted <= made.drafted
    assert 0.0 <= made.idle_s < made.time_s


def test_it_is_faster_than_plain_speculation_with_the_same_machines() -> None:
    plain, cosine = (serve(texts(), way, Service(DRAFTERS)) for way in (Way(), COSINE))
    assert plain.time_s > 1.325 * cosine.time_s  # the paper's throughput, at most
    assert np.mean(cosine.latencies_s) < (1 - 0.232) * np.mean(plain.latencies_s)


@pytest.mark.parametrize(
    ("changes", "best"),
    [
        ({"draft_s": 1.0, "draft_more_s": 0.0}, Way(tokens=None)),  # drafting takes as long as a pass
        ({"draft_more_s": 0.2}, Way(routed=True)),  # two opinions take twice as long
        ({"draft_s": 0.3, "pass_more_s": 0.1}, Way(routed=True, selected=2, pipelined=True, tokens=3)),
    ],
)
def test_it_finds_the_way_that_a_load_needs(changes: dict[str, float], best: Way) -> None:
    found, other = (serve(texts(), way, Service(DRAFTERS, **changes)).time_s for way in (COSINE, best))
    assert found < 1.2 * other


def test_wrong_numbers_of_drafters_are_refused() -> None:
    with pytest.raises(ValueError, match="selected: 3, must be from 1 to 2"):
        serve(texts(), Way(selected=3), Service(2))
