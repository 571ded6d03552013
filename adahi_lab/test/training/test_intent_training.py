"""Requests drawn for examples of intents, and both networks trained together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adahi_lab.evaluation.disturbances import DisturbedWorld
from adahi_lab.tasks import make
from adahi_lab.training.fitting import Course, FitConfig, Run
from adahi_lab.training.intent_data import FIRST_ALONE, NEVER, drawn_requests, lesson
from adahi_lab.training.intent_training import train_intent
from adahi_lab.training.recipes import GOAL_ONCE, INTENT, INTENT_OF_PLAN, IntentRecipe, recipe_of
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import GOAL, OBSERVATION, Observations
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.intent.intent import Intent, IntentEncoder, load_encoder, load_intent
from adahi_ros.policies.intent.intent_checkpoint import (
    encoder_path,
    load_encoder_checkpoint,
    load_intent_checkpoint,
)
from adahi_ros.policies.intent.intent_features import RepliesView

TASK = "ball_instructed"
CHECKPOINTS = Path(__file__).resolve().parents[3] / "checkpoints"


def test_a_share_of_the_episodes_has_one_request_and_the_others_any_period() -> None:
    period, second = drawn_requests(np.random.default_rng(1).random((4000, 3)))
    alone = period == NEVER
    assert abs(alone.mean() - FIRST_ALONE) < 0.03
    assert ((second[~alone] >= 1) & (second[~alone] <= period[~alone])).all()
    assert period[~alone].min() == 2
    assert period[~alone].max() == 63


def test_the_target_is_not_asked_for_episodes_that_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    target = load_policy(CHECKPOINTS / TASK / "plans/target", "onnxruntime")
    asked, propose = [], target.propose

    def counted(observations: Observations, draws: np.ndarray) -> Proposal:
        asked.append(len(draws))
        return propose(observations, draws)

    monkeypatch.setattr(target, "propose", counted)
    examples = lesson(make(TASK), target, 1, range(6), None, 1, 0.5)
    lengths = np.diff(np.flatnonzero(np.append(examples.step, 0) == 0))
    assert len(set(lengths.tolist())) > 1
    assert asked == [int((lengths > step).sum()) for step in range(lengths.max())]
    assert np.abs(examples.plan).max(axis=(1, 2)).min() > 0.0


def test_a_robot_with_a_noisy_sensor_learns_by_exact_replies() -> None:
    target = load_policy(CHECKPOINTS / TASK / "plans/target", "onnxruntime")
    read: list[np.ndarray] = []

    def act(observation: np.ndarray, previous: np.ndarray, replies: RepliesView) -> np.ndarray:
        read.append(replies.observation[:, 0])
        return replies.plan[:, 0, 0]

    world: Any = DisturbedWorld(make(TASK), sensor_noise_m=0.02)
    examples = lesson(world, target, 1, range(6), act, 1, 0.0)
    assert 0.018 < (examples.observation - examples.exact).std(axis=0).max() < 0.022
    np.testing.assert_array_equal(read[0], examples.exact[examples.step == 0])
    with pytest.raises(ValueError, match=r"^sensor_noise_m: 0.02, must be 0 for an encoder on the robot"):
        IntentRecipe(3, {"size": 4}, FitConfig(20, 16), reads_extra=False, sensor_noise_m=0.02)


@pytest.fixture(scope="module", params=[INTENT, INTENT_OF_PLAN])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Intents that were hardly trained."""
    folder, name = tmp_path_factory.mktemp("intents"), str(request.param)
    fit, beside = FitConfig(20, 16, warmup=0), name == INTENT
    how: Any = {"reads_extra": beside, "replies": 1 if beside else 2}
    recipe = IntentRecipe(3, {"size": 4, "hidden": 8}, fit, **how, hidden=8, rounds=2, episodes=2)
    target = load_policy(CHECKPOINTS / TASK / "plans/target", "onnxruntime")
    assert len(train_intent(TASK, target, recipe, Course(folder, name, Run(3)))) == 20
    return folder / name


def view_of(encoder: IntentEncoder, robots: int) -> RepliesView:
    sizes, draw = encoder.sizes, np.random.default_rng(2)
    return RepliesView(
        draw.normal(size=(robots, sizes.replies, sizes.observation_dim)),
        draw.normal(size=(robots, sizes.replies, sizes.horizon, sizes.action_dim)),
        np.tile(np.arange(sizes.replies)[::-1], (robots, 1)),
        draw.normal(size=(robots, sizes.extra_dim)),
    )


def test_an_intent_is_whole_numbers_and_moves_the_action(trained: Path) -> None:
    robot, encoder = load_intent(trained), load_encoder(trained)
    assert (robot.encoder is None) == (encoder.sizes.extra_dim > 0)
    assert robot.encoder_fingerprint == encoder.fingerprint
    intent = encoder.encode(view_of(encoder, 3))
    assert intent.dtype == np.int8
    assert intent.shape == (3, 4)
    observation = np.zeros((2, robot.signature.observation_dim), np.float32)
    far = robot.act(observation, observation, np.array([[-127] * 4, [127] * 4], np.int8))
    assert not np.allclose(far.actions[0], far.actions[1])
    assert (far.expected_error > 0.0).all()
    assert robot.sound(far.actions[:, None]).all()


def test_the_network_of_a_goal_learns_in_the_same_lessons(tmp_path: Path) -> None:
    recipe = IntentRecipe(3, {"size": 4}, FitConfig(20, 16, warmup=0), hidden=8, rounds=2, episodes=2)
    target, course = (
        load_policy(CHECKPOINTS / TASK / "plans/target", "onnxruntime"),
        Course(tmp_path, GOAL_ONCE, Run(3)),
    )
    assert len(train_intent(TASK, target, recipe, course)) == 20
    policy = load_policy(tmp_path / GOAL_ONCE, "onnxruntime")
    reads = policy.signature
    assert (reads.history, reads.horizon, reads.goal_dim) == (2, 1, make(TASK).spec.goal_dim)
    window = {OBSERVATION: np.zeros((2, reads.history, reads.observation_dim), np.float32)}
    seen = Observations(window, {GOAL: np.array([[0.1, 0.0], [-0.1, 0.0]], np.float32)})
    here, there = policy.propose(seen, np.zeros((2, 0))).actions
    assert not np.allclose(here, there)
    pictured = load_policy(CHECKPOINTS / "ball_seen/plans/target", "onnxruntime")
    with pytest.raises(ValueError, match="goal_once: must be left out"):
        train_intent("ball_seen", pictured, recipe, course)


def test_the_intents_of_another_encoder_are_refused(trained: Path, tmp_path: Path) -> None:
    checkpoint, encoder = load_intent_checkpoint(trained), load_encoder_checkpoint(encoder_path(trained))
    other = IntentEncoder(encoder)
    other.fingerprint = "f" * 16
    with pytest.raises(CheckpointError, match=r"encoder: f{16}, must be [0-9a-f]{16}"):
        Intent(checkpoint, other)


def test_recipes_say_where_the_encoder_runs() -> None:
    student = {"seed": 1, "size": {}, "fit": {"steps": 2}}
    values = {
        "demonstrations": {"episodes": 1, "seed": 0, "action_noise": 0.0},
        "window_length": 2,
        "policies": {"target": {"kind": "flow", "seed": 1, "size": {"horizon": 4}, "fit": {"steps": 2}}},
        "intent": student,
        "intent_of_plan": {**student, "reads_extra": False, "replies": 3},
    }
    assert list(recipe_of(values).taught) == [INTENT, INTENT_OF_PLAN]
    assert list(recipe_of({**values, "goal_once": student}).taught)[-1] == GOAL_ONCE
    for wrong, message in (
        ({"intent": {**student, "reads_extra": False}}, "intent.reads_extra: False, must be True"),
        ({"intent_of_plan": student}, "intent_of_plan.reads_extra: True, must be False"),
        ({"intent": {**student, "replies": 2}}, "replies: 2, must be 1"),
        ({"intent": {**student, "size": {"replies": 2}}}, "replies: unknown"),
    ):
        with pytest.raises(ValueError, match=message):
            recipe_of({**values, **wrong})
