from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy import stats
from test.toys import code_policy

from adahi_lab.calibration.recorded_world import RecordedWorld
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.loaded_policies import Policies
from adahi_lab.evaluation.rollout import Log, rollout
from adahi_lab.tasks.episodes import World
from adahi_ros.core.proposal import softmax
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.vqbet.code_policy import CodePolicy
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

EPISODES, STEPS, MANY = 5, 11, 6000


def recording(observations: np.ndarray) -> Trajectories:
    """Episodes (E, T, 6) with a goal of their own each."""
    episodes, steps = observations.shape[:2]
    return Trajectories(
        "ball",
        observations.reshape(-1, 6).astype(np.float32),
        np.zeros((episodes * steps, 2), np.float32),
        np.linspace(-0.5, 0.5, 2 * episodes).reshape(episodes, 2).astype(np.float32),
        np.arange(steps, episodes * steps + 1, steps),
    )


def plan_rollout(world: World, target: CodePolicy, executed: int, seed: int, episodes: Sequence[int]) -> Log:
    controller = Controller(target, ControllerConfig(ThresholdedGate("age", executed - 1)), "plan")
    verifier = TargetVerifier(target, "replace", sendable=True)
    return rollout(world, controller, verifier, seed, episodes)


@pytest.fixture
def planner(policies: Policies) -> CodePolicy:
    assert isinstance(policies.plans, CodePolicy)
    return policies.plans


@pytest.mark.parametrize("executed", [1, 3, 8])
def test_every_kth_step_requests_a_plan_that_is_followed_blindly(
    planner: CodePolicy, codes_of: Callable[..., np.ndarray], executed: int
) -> None:
    observations = np.random.default_rng(3).normal(scale=0.3, size=(EPISODES, STEPS, 6))
    recorded = recording(observations)
    log = plan_rollout(RecordedWorld(recorded), planner, executed, 1, range(EPISODES))
    requested = [step for step in range(STEPS) if step % executed == 0]
    assert [step for step in range(STEPS) if log.transmitted[step].any()] == requested
    assert log.transmitted[requested].all()
    for step in requested:
        history = np.clip(np.arange(step - planner.signature.history + 1, step + 1), 0, None)
        windows = observations[:, history].astype(np.float32)
        # One plan, made at the step that asked, is behind all the actions until the next.
        followed = log.action[step : step + executed].transpose(1, 0, 2)
        codes_of(planner, windows, recorded.goals, followed)
    np.testing.assert_array_equal(log.draft_action, log.action)
    assert log.accepted.shape == (STEPS, EPISODES, 0)


def test_single_actions_have_the_targets_distribution(
    policies: Policies, codes_of: Callable[..., np.ndarray]
) -> None:
    place = np.linspace(-0.2, 0.2, 6, dtype=np.float32)
    recorded = recording(np.tile(place, (MANY, 1, 1)))
    recorded.goals[:] = 0.1
    target = code_policy(policies.target)
    log = plan_rollout(RecordedWorld(recorded), target, 1, 2, range(MANY))
    windows = np.tile(place, (MANY, target.signature.history, 1))
    codes = codes_of(target, windows, recorded.goals, log.action[0][:, None])
    q = softmax(target.predict(windows[:1], recorded.goals[:1]).logits, 1.0)[0].astype(np.float64)
    size = target.decoder.codebook_size
    counts = np.bincount(size * codes[:, 0] + codes[:, 1], minlength=size**2)
    expected = np.outer(*(q / q.sum(axis=1, keepdims=True))).ravel() * MANY
    assert expected.min() > 5
    assert stats.chisquare(counts, expected).pvalue > 1e-4


@pytest.mark.parametrize(("value", "logits"), [(1e6, False), (np.nan, False), (np.nan, True)])
def test_a_plan_that_is_no_action_is_refused_and_the_one_before_goes_on(
    planner: CodePolicy, faulty: Callable[..., CodePolicy], value: float, logits: bool
) -> None:
    observations = np.random.default_rng(3).normal(scale=0.3, size=(EPISODES, STEPS, 6))
    observations[1, 0, 0] = observations[2, 4, 0] = 1e6  # where plans are made: before any action, and after
    observations[4, 5, 0] = 1e6  # where none is
    world = RecordedWorld(recording(observations))
    log = plan_rollout(world, faulty(planner, value, logits), 2, 1, range(EPISODES))
    plain = plan_rollout(world, faulty(planner, 0.0), 2, 1, range(EPISODES))
    refused = np.zeros((STEPS, EPISODES), dtype=bool)
    refused[0, 1] = refused[4, 2] = True
    np.testing.assert_array_equal(log.refused, refused)
    others = [0, 3, 4]
    np.testing.assert_allclose(log.action[:, others], plain.action[:, others], atol=1e-6)
    assert not log.action[0, 1].any()  # there is no plan yet
    assert log.transmitted[1, 1]  # so it asks again
    assert np.isfinite(log.action).all()
    assert not np.array_equal(log.action[4, 2], plain.action[4, 2])
    assert log.transmitted[5, 2]  # the plan before goes on, but is too old
    assert not plain.refused.any()
