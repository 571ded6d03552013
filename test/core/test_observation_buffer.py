from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.core.observation_buffer import ObservationBuffer


def observed(step: int) -> dict[str, np.ndarray]:
    """What three robots observe at a step: every number tells robot and step."""
    values = 100.0 * np.arange(3, dtype=np.float32) + step
    return {"observation": values[:, None], "goal": -values[:, None]}


def kept(longest: int, *steps: int) -> ObservationBuffer:
    memory = ObservationBuffer(longest)
    for step in steps:
        memory.keep(step, observed(step))
    return memory


def at(memory: ObservationBuffer, *steps: int) -> list[float]:
    return memory.at("observation", np.array(steps))[:, 0].tolist()


def test_of_steps_that_are_not_kept_the_nearest_one_is_returned() -> None:
    memory = kept(3, 0, 1, 2, 5, 6)
    assert at(memory, -1, 0, 1) == [2.0, 102.0, 202.0]  # the oldest ones are gone
    assert at(memory, 3, 4, 9) == [2.0, 105.0, 206.0]


def test_the_newest_step_may_come_again() -> None:
    memory = kept(2, 0, 1)
    memory.keep(1, {name: values + 0.5 for name, values in observed(1).items()})
    assert at(memory, 0, 1, 1) == [0.0, 101.5, 201.5]


def test_what_is_kept_is_a_copy() -> None:
    memory, shown = ObservationBuffer(2), observed(0)
    memory.keep(0, shown)
    shown["observation"][:] = 7.0
    assert at(memory, 0, 0, 0) == [0.0, 100.0, 200.0]


def test_before_anything_was_observed_there_is_nothing_to_tell() -> None:
    with pytest.raises(LookupError, match="nothing was observed yet"):
        kept(3).at("observation", np.array([0]))
