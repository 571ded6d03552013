from __future__ import annotations

import re

import numpy as np
import pytest

from adahi_lab.calibration.recorded_world import RecordedWorld
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.metrics import squared_error

LENGTHS = (3, 1, 4)
SCALE = np.array([0.5, 2.0])


@pytest.fixture
def recording() -> Trajectories:
    steps = sum(LENGTHS)
    rows = np.arange(steps, dtype=np.float32)
    return Trajectories(
        "toy",
        observations=np.stack([rows, -rows, 10 * rows], axis=1),
        actions=np.stack([rows, 100 + rows], axis=1),
        goals=np.arange(3, dtype=np.float32)[:, None],
        ends=np.cumsum(LENGTHS),
    )


def replay(world: RecordedWorld) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Do what was done: observations (T, E, O), actions (T, E, A), active (T, E)."""
    world.reset(0, range(len(LENGTHS)))
    rows = []
    while not world.done.all():
        rows.append((world.observation, world.action, ~world.done))
        world.step(np.full_like(world.action, 1e6))  # whatever is done
    observations, actions, active = (np.stack(column) for column in zip(*rows, strict=True))
    return observations, actions, active


def test_errors_are_in_action_scales_and_past_the_end_nothing_counts(recording: Trajectories) -> None:
    _, actions, active = replay(RecordedWorld(recording))
    actions[~active] = 1e6
    actions[2, 2] += np.array([1.0, 4.0])  # two scales in each dimension of one of eight steps
    assert squared_error(recording, actions, active, SCALE) == pytest.approx(4 / 8)


def test_another_number_of_episodes_is_refused(recording: Trajectories) -> None:
    with pytest.raises(ValueError, match=re.escape("episodes: 2, the recording has 3")):
        RecordedWorld(recording).reset(0, range(2))
