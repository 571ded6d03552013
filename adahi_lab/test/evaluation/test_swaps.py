"""The goals of episodes change at a step; a notice makes robots request, or nothing does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adahi_lab.evaluation.loaded_policies import Policies
from adahi_lab.evaluation.rollout import Log, rollout
from adahi_lab.evaluation.swaps import OTHER_EPISODES, DriftingWorld, Swap, SwappedWorld
from adahi_lab.tasks import make
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.vqbet.code_policy import CodePolicy
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

SWAPPED = ("ball_instructed", "swarm_instructed")
EPISODES = range(4)
SEED = 2


def stepped(world: Any, steps: int) -> np.ndarray:
    """Return the last observation after steps with the action zero."""
    world.reset(SEED, EPISODES)
    for _ in range(steps):
        world.step(np.zeros((len(EPISODES), world.spec.action_dim)))
    observation: np.ndarray = world.observation
    return observation


@pytest.mark.parametrize("name", SWAPPED)
def test_only_the_goal_changes_and_to_that_of_another_episode(name: str) -> None:
    world, plain, other = SwappedWorld(name, Swap(3)), make(name), make(name)
    other.reset(SEED, [episode + OTHER_EPISODES for episode in EPISODES])
    for steps in (2, 3, 5):
        np.testing.assert_array_equal(stepped(world, steps), stepped(plain, steps))
        np.testing.assert_array_equal(world.goal, (plain if steps < 3 else other).goal)


@pytest.mark.parametrize("name", SWAPPED)
def test_only_what_is_done_after_the_change_is_a_success(name: str) -> None:
    world = SwappedWorld(name, Swap(3))
    stepped(world, 2)
    world._world._success[0] = True
    world._world._failed[1] = name == SWAPPED[0]
    assert not world.done[0]
    world.step(np.zeros((len(EPISODES), world.spec.action_dim)))
    assert not world.success.any()
    assert world.done[1] == (name == SWAPPED[0])


def test_goals_that_move_stay_at_their_distance_and_only_the_target_sees_it() -> None:
    world, plain = DriftingWorld(make("ball_instructed"), 0.1), make("ball_instructed")
    np.testing.assert_array_equal(stepped(world, 5), stepped(plain, 5))
    moved, distance = world.goal - plain.goal, np.linalg.norm(plain.goal, axis=1)
    np.testing.assert_allclose(np.linalg.norm(world.goal, axis=1), distance, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 0.025, rtol=5e-3)
    left = np.stack([-plain.goal[:, 1], plain.goal[:, 0]], axis=1)
    assert ((moved * left).sum(axis=1) > 0.0).all()


@pytest.mark.parametrize(
    ("task", "speed", "message"),
    [
        ("ball", 0.1, "drift: 0.1, must be 0 for ball"),
        ("ball_instructed", 2.0, "drift: 2.0, must be from 0 to 1"),
    ],
)
def test_goals_that_cannot_move_so_are_refused(task: str, speed: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DriftingWorld(make(task), speed)


@pytest.mark.parametrize(
    ("task", "step", "message"),
    [
        ("kitchen_instructed", 25, "swap: 25, must be left out for kitchen_instructed: its goal cannot"),
        ("ball", 25, "swap: 25, must be left out for ball"),
        ("ball_instructed", 112, "swap: 112, must be below 112"),
        ("ball_instructed", 0, "swap: 0, must be at least 1"),
    ],
)
def test_what_cannot_change_is_refused(task: str, step: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SwappedWorld(task, Swap(step))


def plan_rollout(policies: Policies, swap: Swap, executed: int, late: int = 0) -> Log:
    target = policies.plans
    assert isinstance(target, CodePolicy)
    controller = Controller(target, ControllerConfig(ThresholdedGate("age", executed - 1)), "plan")
    verifier = TargetVerifier(target, "replace", sendable=True)
    return rollout(SwappedWorld("ball_instructed", swap), controller, verifier, SEED, EPISODES, late=late)


def requests(log: Log, steps: int) -> list[int]:
    """Return the first steps at which all robots send a request; none sends one alone."""
    sent = log.transmitted[:steps]
    np.testing.assert_array_equal(sent.all(axis=1), sent.any(axis=1))
    return np.flatnonzero(sent.any(axis=1)).tolist()


def test_a_notice_makes_every_robot_request_at_the_step_after(policies: Policies) -> None:
    assert requests(plan_rollout(policies, Swap(3), 8), 13) == [0, 4, 12]
    assert requests(plan_rollout(policies, Swap(3, push=False), 8), 13) == [0, 8]


def test_a_notice_takes_half_a_round_trip_and_drops_replies_in_flight(policies: Policies) -> None:
    log = plan_rollout(policies, Swap(3), 2, late=4)
    assert requests(log, 6) == [0, 2, 5]
    np.testing.assert_array_equal(log.action[5:9], np.repeat(log.action[4:5], 4, axis=0))
    assert (log.action[9] != log.action[8]).any()
