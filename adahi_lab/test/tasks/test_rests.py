"""Robots are held for some steps, as before their first reply and after a stop."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.tasks.rests import LONGEST, Rests

STEPS = 400
EPISODES = range(20)


def executed(share: float, field: str) -> np.ndarray:
    """Return what is executed of the actions 1, 2, 3, ..., (steps, E)."""
    rests = Rests(share, field)
    rests.reset(3, EPISODES, 1)
    return np.stack([rests.applied(np.full((20, 1), step + 1.0))[:, 0] for step in range(STEPS)])


@pytest.mark.parametrize("field", ["velocities", "positions"])
def test_a_share_of_the_steps_is_held(field: str) -> None:
    of = executed(0.1, field)
    held = of != np.arange(1.0, STEPS + 1.0)[:, None]
    assert held.mean() == pytest.approx(0.1, abs=0.02)
    assert 0.2 < held[0].mean() < 0.8
    runs = [len(run) for row in held.T for run in "".join("01"[int(each)] for each in row).split("0") if run]
    assert set(runs) >= set(range(1, LONGEST + 1))
    if field == "velocities":
        assert set(of[held]) == {0.0}
    else:
        before = np.concatenate([np.zeros((1, 20)), of[:-1]])
        np.testing.assert_array_equal(of[held], before[held])


def test_episodes_do_not_depend_on_others_or_rest_without_a_share() -> None:
    assert (executed(0.0, "positions") == np.arange(1.0, STEPS + 1.0)[:, None]).all()
    rests = Rests(0.1, "velocities")
    rests.reset(3, [7], 1)
    alone = [rests.applied(np.ones((1, 1)))[0, 0] for _ in range(50)]
    np.testing.assert_array_equal(np.array(alone) != 0, executed(0.1, "velocities")[:50, 7] != 0)
