from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from adahi_ros.core.randomness import EpisodeStreams, step_uniforms


def test_draws_do_not_depend_on_how_many_other_steps_were_drawn() -> None:
    late = step_uniforms(3, "world", 1, 1_000_000, 5)
    step_uniforms(3, "world", 1, 0, 5)
    np.testing.assert_array_equal(late, step_uniforms(3, "world", 1, 1_000_000, 5))


def test_seeds_streams_episodes_and_steps_are_independent_and_uniform() -> None:
    addresses = [(seed, name, episode) for seed in (0, 1, 2**33) for name in "ab" for episode in (0, 1, 2)]
    length = 4000
    rows = []
    for seed, name, episode in addresses:
        streams = EpisodeStreams(seed, name, [episode], 3)
        rows.append(np.concatenate([streams.next()[0] for _ in range(length // 3 + 1)])[:length])
    draws = np.stack(rows)
    assert draws.min() >= 0.0
    assert draws.max() < 1.0
    apart = np.corrcoef(draws) - np.eye(len(addresses))
    assert np.abs(apart).max() < 5.0 / np.sqrt(length)
    later = np.corrcoef(draws[:, 3:].ravel(), draws[:, :-3].ravel())[0, 1]
    assert abs(later) < 5.0 / np.sqrt(draws.size)
    assert stats.kstest(draws.ravel(), "uniform").pvalue > 1e-3
    assert min(stats.kstest(row, "uniform").pvalue for row in draws) > 1e-4


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="non-negative"):
        step_uniforms(-1, "controller", 0, 0, 1)
