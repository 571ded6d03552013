"""Corrections of rollouts are the replies that were executed; a reservoir keeps each with the same chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_lab.evaluation.evaluate import Comparison, Run, play
from adahi_lab.methods.methods import METHODS, gated
from adahi_lab.tasks import make
from adahi_lab.training.policy_corrections import Corrections, corrected_episodes, recorded_episodes
from adahi_lab.training.reservoir import Reservoir

EPISODES = [7, 8, 9]


def numbered(first: int, count: int) -> Corrections:
    """Corrections whose replies are their numbers."""
    values = np.arange(first, first + count, dtype=np.float32)[:, None]
    nothing = np.zeros((count, 0), dtype=np.float32)
    yes = np.ones((count, 1), dtype=bool)
    return Corrections(values[:, None], nothing, values, values, yes, ~yes[:, 0], {"ahead": 1})


def test_they_are_what_was_requested_and_came_back(comparison: Comparison) -> None:
    bench = comparison.bench()
    found, outcome = corrected_episodes(bench, gated("adahi"), comparison.seed, EPISODES)
    log = outcome.log
    same = play(Run(METHODS["adahi"], comparison, EPISODES)).log
    for name in vars(log):
        np.testing.assert_array_equal(getattr(log, name), getattr(same, name))
    requested = log.transmitted & log.active
    assert 0 < len(found) == requested.sum() < log.active.sum()

    def by_episode(values: np.ndarray) -> np.ndarray:
        return np.concatenate([values[requested[:, number], number] for number in range(len(EPISODES))])

    np.testing.assert_array_equal(found.replied, by_episode(log.action))
    np.testing.assert_array_equal(found.drafted, by_episode(log.draft_action))
    np.testing.assert_array_equal(found.accepted, by_episode(log.accepted))
    assert not found.left_out


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


def test_the_windows_are_those_that_the_draft_read(comparison: Comparison) -> None:
    """The draft, asked again with what is kept, gives its drafts the probabilities that it drew by."""
    bench = comparison.bench()
    found, _ = corrected_episodes(bench, gated("hybrid"), comparison.seed, EPISODES)
    policy = bench.policies.draft
    codes = np.array(list(np.ndindex((8, 8))))
    prediction = policy.predict(found.windows, found.goals)  # type: ignore[attr-defined]
    could = np.stack(
        [
            policy.decoder.decode(np.tile(each, (len(found), 1)))[:, 0]  # type: ignore[attr-defined]
            + prediction.offset_at(np.tile(each, (len(found), 1)))[:, 0]
            for each in codes
        ]
    )
    nearest = np.abs(could - found.drafted).max(axis=2).min(axis=0)
    assert nearest.max() < 1e-5


def test_what_is_kept_does_not_depend_on_how_many_come_at_once() -> None:
    whole = Reservoir[Corrections](5, 2).add(numbered(0, 30))
    parts: Reservoir[Corrections] = Reservoir(5, 2)
    for first in range(0, 30, 6):
        if first == 12:  # it goes on in another process
            state = parts.state()
            parts = Reservoir(5, 2)
            parts.restore(state, Corrections)
        kept = parts.add(numbered(first, 6))
    np.testing.assert_array_equal(whole.replied, kept.replied)


def test_arrays_that_do_not_belong_together_are_refused() -> None:
    some = numbered(0, 3)
    with pytest.raises(ValueError, match="replied: 2 rows, windows has 3"):
        Corrections(some.windows, some.goals, some.drafted, some.replied[:2], some.accepted, some.person)
    replied = some.replied * np.nan
    with pytest.raises(ValueError, match="replied: holds values that are not finite"):
        Corrections(some.windows, some.goals, some.drafted, replied, some.accepted, some.person)
    with pytest.raises(ValueError, match="most: 0, must be at least 1"):
        Reservoir[Corrections](0, 0)


def test_a_persons_actions_count_several_times() -> None:
    some = replace(numbered(0, 4), person=np.array([False, True, False, True]))
    assert some.weighted(3).replied[:, 0].tolist() == [0.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0]
    assert len(some.weighted(1)) == 4
    assert some.acceptance == 1.0
    with pytest.raises(ValueError, match="person_weight: 0, must be at least 1"):
        some.weighted(0)
