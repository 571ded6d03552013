"""Which runs of drafted tokens a target reads at the same time."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.papers.pipeinfer.token_runs import CUTOFF, NO_CUTOFF, Cutoff, TokenRuns
from adahi_lab.papers.tokens.texts import agreed


def own(tokens: tuple[int, ...]) -> list[int]:
    """A target's choice after any tokens, of a vocabulary of three: n + 1 for n tokens."""
    return [sum(tokens[:index]) * 7 % 3 for index in range(len(tokens) + 1)]


def chunk(length: int) -> list[int]:
    tokens: list[int] = []
    while len(tokens) < length:
        tokens.append(own(tuple(tokens))[-1])
    return tokens


@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("cutoff", [NO_CUTOFF, CUTOFF, Cutoff(0.9, 0.1, 0.2)])
def test_any_draft_in_any_order_gives_the_targets_chunk(batch: int, most: int, cutoff: Cutoff) -> None:
    for seed in range(50):
        rng = np.random.default_rng(seed)
        runs = TokenRuns(12, batch, most, int(rng.integers(2)), cutoff)
        while not runs.done:
            runs.next_run()
            assert len(runs.in_flight) <= most
            if runs.wants_draft and rng.random() < 0.6:
                runs.draft(int(rng.integers(3)), rng.random())
            elif runs.in_flight:
                run = runs.in_flight[rng.integers(len(runs.in_flight))]
                if rng.random() < 0.2:
                    runs.lost(run)
                else:
                    runs.returned(run, *agreed(run.tokens, own(run.tokens)))
        assert runs.verified == chunk(12)


def test_an_unsure_draft_waits_until_a_token_is_verified() -> None:
    runs = TokenRuns(20, 4, 9, cutoff=Cutoff(0.3, recovery=0.2))
    alone = runs.next_run()
    for token, confidence in ((0, 0.6), (1, 0.4)):  # the first run raises the cutoff to 0.5
        runs.draft(token, confidence)
    short = runs.next_run()
    assert alone is not None
    assert short is not None
    assert short.tokens == (0,)  # it does not wait for more
    assert not runs.wants_draft
    assert runs.next_run() is None
    runs.returned(alone, 0, 0)
    assert runs.wants_draft
    runs.draft(1, 0.4)
    assert runs.drafted == [0, 1]


def test_a_decay_lets_an_unsure_draft_try_again() -> None:
    runs = TokenRuns(20, 4, 9, cutoff=Cutoff(0.5, decay=0.1))
    tries = 0
    while not runs.drafted:
        assert runs.wants_draft
        runs.draft(0, 0.25)
        tries += 1
    assert tries == 4


def test_a_refused_token_makes_the_runs_after_it_void() -> None:
    runs = TokenRuns(10, 2, 9)
    first = runs.next_run()
    for token in (0, 1, 2, 3):
        runs.draft(token)
        runs.next_run()
    assert first is not None
    longer = runs.in_flight[1:]
    assert [len(run.tokens) for run in longer] == [2, 4]
    assert runs.returned(longer[0], 1, 5) == [first, longer[1]]  # one says nothing new, one is void
    assert runs.verified == runs.drafted == [0, 5]
    again = runs.next_run()
    assert again is not None
    assert again.tokens == (0, 5)  # at once, without a drafted token
    assert runs.returned(first, 0, 9) == []  # the result of a void run changes nothing
    assert runs.verified == [0, 5]
