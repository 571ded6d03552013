"""Corrections, recorded episodes, and samples of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.methods.methods import METHODS
from adahi_lab.tasks import make
from adahi_lab.training.policy_corrections import Corrections, recorded_episodes
from adahi_lab.training.rows import sampled

EPISODES = [7, 8, 9]


def numbered(first: int, count: int) -> Corrections:
    """Corrections whose replies are their numbers."""
    values = np.arange(first, first + count, dtype=np.float32)[:, None]
    nothing = np.zeros((count, 0), dtype=np.float32)
    yes = np.ones((count, 1), dtype=bool)
    return Corrections(values[:, None], nothing, values, values, yes, ~yes[:, 0], {"ahead": 1})


def test_what_was_observed_and_executed_is_recorded_to_each_end(comparison: Comparison) -> None:
    recorded, outcome = recorded_episodes(comparison.bench(), METHODS["hybrid"], comparison.seed, EPISODES)
    lengths = np.diff(recorded.ends, prepend=0)
    np.testing.assert_array_equal(lengths, outcome.log.active.sum(axis=0))
    for number, (start, end) in enumerate(recorded.spans()):
        world = make("ball")
        world.reset(comparison.seed, [EPISODES[number]])
        np.testing.assert_array_equal(recorded.goals[number], world.goal[0].astype(np.float32))
        for step in range(start, end):
            assert not world.done[0]
            np.testing.assert_array_equal(recorded.observations[step], world.observation[0])
            world.step(recorded.actions[step : step + 1])
        assert world.done[0]


def test_a_sample_keeps_the_order_and_each_row_with_the_same_chance() -> None:
    kept = [sampled(numbered(0, 30), 5, seed).replied[:, 0] for seed in range(300)]
    assert all(len(each) == 5 and np.all(np.diff(each) > 0) for each in kept)
    counts = np.bincount(np.concatenate(kept).astype(int), minlength=30)
    assert counts.min() > 25  # of 50
    assert len(sampled(numbered(0, 3), 5, 2)) == 3


def test_arrays_that_do_not_belong_together_are_refused() -> None:
    some = numbered(0, 3)
    with pytest.raises(ValueError, match="replied: 2 rows, windows has 3"):
        Corrections(some.windows, some.goals, some.drafted, some.replied[:2], some.accepted, some.person)
    replied = some.replied * np.nan
    with pytest.raises(ValueError, match="replied: holds values that are not finite"):
        Corrections(some.windows, some.goals, some.drafted, replied, some.accepted, some.person)
    with pytest.raises(ValueError, match="most: 0, must be at least 1"):
        sampled(some, 0, 0)


def test_a_persons_actions_count_several_times() -> None:
    some = replace(numbered(0, 4), person=np.array([False, True, False, True]))
    assert some.weighted(3).replied[:, 0].tolist() == [0.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0]
    assert len(some.weighted(1)) == 4
    assert some.acceptance == 1.0
    with pytest.raises(ValueError, match="person_weight: 0, must be at least 1"):
        some.weighted(0)
