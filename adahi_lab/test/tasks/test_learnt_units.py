"""No shipped task's robot looks as if it had another unit; one that has does."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.tasks.demonstrations import collect_parallel
from adahi_ros.contract.commanded import commanded
from adahi_ros.contract.parsing import load_contract
from adahi_ros.core.learnt_units import beyond, unlike
from adahi_ros.core.signature import ACTION, OBSERVATION, Ranges
from adahi_ros.robot.compatibility import offer_of
from adahi_ros.safety.named_limits import limits_of_task, named_limits

LARGER = (57.3, 100.0, 1000.0)


def ranges(values: np.ndarray) -> Ranges:
    return Ranges(tuple(values.min(axis=0).tolist()), tuple(values.max(axis=0).tolist()))


# The kitchen, Meta-World and the instructed tasks gave no alarm in 100 episodes either; they take minutes.
@pytest.mark.parametrize("task", ["ball", "swarm", "inverted_pendulum"])
@pytest.mark.filterwarnings("ignore:.*imports and runs the code:UserWarning")
def test_a_hundred_episodes_give_no_alarm_and_another_unit_does(task: str) -> None:
    contract = load_contract(task)
    what, name = commanded(contract.action), limits_of_task(task)
    limits = named_limits(name, False, what, contract.measured(what.names))
    robots = offer_of(contract, contract.number_dim, limits=limits).quantities
    learnt = collect_parallel(task, 60, 0, 0.1, workers=1).trajectories
    shown = collect_parallel(task, 105, 999, 0.1, workers=1).trajectories
    assert len(shown) >= 100
    seen, acted = ranges(learnt.observations), ranges(learnt.actions)
    numbers = robots[OBSERVATION]
    begins = np.concatenate([[0], shown.ends[:-1]])
    for begin, end in zip(begins, shown.ends, strict=True):
        episode = shown.observations[begin:end].astype(np.float64)
        middle = np.quantile(episode, (0.1, 0.5, 0.9), axis=0)
        found = [
            unlike(numbers, seen, rows) for rows in (episode[:1], episode[len(episode) // 2, None], middle)
        ]
        assert found == ["", "", ""]
        assert all(unlike(numbers, seen, factor * middle) for factor in LARGER)
    assert beyond(numbers, seen) == beyond(robots[ACTION], acted) == ""
