"""Worlds whose goal the target alone is told, or sees, with the shipped policies: who knows of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.loaded_policies import Bench, PolicyFiles
from adahi_lab.evaluation.rollout import Log
from adahi_lab.methods.methods import METHODS
from adahi_lab.tasks.camera import BallSeen
from adahi_lab.tasks.instructed import BallInstructed
from adahi_ros.core.assets import asset

STEPS = 12
TOGETHER = range(4)


def turned(goal: np.ndarray) -> np.ndarray:
    """A quarter of a turn."""
    return goal[:, ::-1] * np.array([1.0, -1.0])


class GoalElsewhere(BallInstructed):
    """The same episodes, but for the goal."""

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        super().reset(seed, episodes)
        self._goal = turned(self._goal)


class SeenElsewhere(BallSeen):
    """The same episodes, but for the mark in the picture."""

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        super().reset(seed, episodes)
        self.watched._goal = turned(self.watched._goal)  # type: ignore[attr-defined]


WORLDS: dict[str, tuple[type, type]] = {
    "ball_instructed": (BallInstructed, GoalElsewhere),
    "ball_seen": (BallSeen, SeenElsewhere),
}


@pytest.fixture(scope="module", params=list(WORLDS))
def bench(request: pytest.FixtureRequest) -> Bench:
    task = str(request.param)
    files = PolicyFiles(asset(f"checkpoints/{task}"), "onnxruntime")
    return Comparison(task, files, load_calibration(asset(f"config/{task}.yaml")), 1).bench()


def here_and_elsewhere(bench: Bench, name: str) -> tuple[Log, Log]:
    here, elsewhere = (METHODS[name].run(bench, world(), 1, TOGETHER) for world in WORLDS[bench.task])
    assert here.active[:STEPS].all()
    assert elsewhere.active[:STEPS].all()
    return here, elsewhere


@pytest.mark.parametrize("name", ["draft", "distilled"])
def test_what_acts_on_the_robot_alone_does_the_same_whatever_the_goal(bench: Bench, name: str) -> None:
    here, elsewhere = here_and_elsewhere(bench, name)
    for field in ("action", "deviation", "score", "transmitted"):
        np.testing.assert_array_equal(getattr(here, field)[:STEPS], getattr(elsewhere, field)[:STEPS])


@pytest.mark.parametrize("name", ["hybrid", "target", "plan_8", "corrector_8"])
def test_with_the_target_the_goal_makes_the_difference(bench: Bench, name: str) -> None:
    here, elsewhere = here_and_elsewhere(bench, name)
    assert np.abs(here.action[:STEPS] - elsewhere.action[:STEPS]).max() > 0.1


def test_the_oracle_knows_what_the_target_receives(bench: Bench) -> None:
    here, elsewhere = here_and_elsewhere(bench, "oracle")
    np.testing.assert_array_equal(here.draft_action[0], elsewhere.draft_action[0])
    assert not np.allclose(here.score[0], elsewhere.score[0])
