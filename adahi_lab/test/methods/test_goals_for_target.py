"""Worlds whose goal the target alone is told, or sees, with the shipped policies: who knows of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.loaded_policies import Bench, PolicyFiles
from adahi_lab.evaluation.method_needs import demands
from adahi_lab.evaluation.rollout import Log
from adahi_lab.methods.actors import ALONE
from adahi_lab.methods.methods import METHODS
from adahi_lab.methods.stored_intents import StoredIntents, stored_intents
from adahi_lab.tasks.camera import BallSeen
from adahi_lab.tasks.instructed import BallInstructed
from adahi_ros.core.assets import asset
from adahi_ros.core.signature import GOAL, OBSERVATION, Observations

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


@pytest.mark.parametrize("name", ["goal_once", "target_on_robot"])
def test_a_robot_that_is_given_the_goal_asks_no_server(name: str) -> None:
    bench = Comparison.shipped("ball_instructed", 1).bench()
    here, elsewhere = here_and_elsewhere(bench, name)
    assert not here.transmitted.any()
    assert np.abs(here.action[:STEPS] - elsewhere.action[:STEPS]).max() > 0.05
    assert demands(METHODS[name], bench).weights == getattr(bench.policies, ALONE[name]).signature.parameters


def test_stored_intents_need_few_goals_and_act_by_the_nearest() -> None:
    policies = Comparison.shipped("ball_instructed", 1).bench().policies
    intent, target = policies.intent, policies.plans
    assert intent is not None
    assert target is not None
    with pytest.raises(ValueError, match="stored: ball_instructed has 200 goals in 200 episodes"):
        stored_intents("ball_instructed", intent, target)
    goals, vectors = np.eye(2), np.array([[-127], [127]], np.int8).repeat(intent.size, axis=1)
    stored = StoredIntents(intent, goals, vectors)
    window = np.zeros((2, 2, intent.signature.observation_dim), np.float32)
    seen = Observations({OBSERVATION: window}, {GOAL: np.array([[0.1, 0.9], [0.8, 0.1]], np.float32)})
    acted = stored.propose(seen, np.zeros((2, 0))).actions[:, 0]
    np.testing.assert_array_equal(acted, intent.act(window[:, 1], window[:, 0], vectors[::-1]).actions)


@pytest.mark.parametrize("name", ["hybrid", "target", "plan_8", "corrector_8"])
def test_with_the_target_the_goal_makes_the_difference(bench: Bench, name: str) -> None:
    here, elsewhere = here_and_elsewhere(bench, name)
    assert np.abs(here.action[:STEPS] - elsewhere.action[:STEPS]).max() > 0.1


def test_the_oracle_knows_what_the_target_receives(bench: Bench) -> None:
    here, elsewhere = here_and_elsewhere(bench, "oracle")
    np.testing.assert_array_equal(here.draft_action[0], elsewhere.draft_action[0])
    assert not np.allclose(here.score[0], elsewhere.score[0])
