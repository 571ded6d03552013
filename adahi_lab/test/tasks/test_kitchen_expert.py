from __future__ import annotations

import types

import numpy as np
import pytest

from adahi_lab.tasks.kitchen import SUBTASKS, Kitchen
from adahi_lab.tasks.kitchen_arm import KitchenArm
from adahi_lab.tasks.kitchen_expert import KitchenExpert


def drive(
    episodes: list[int], steps: int, noise: float = 0.0
) -> tuple[Kitchen, KitchenExpert, np.ndarray, np.ndarray]:
    """Return also the actions, (steps, E, 9), and when each sub-task was completed, (E, 4)."""
    task, expert = Kitchen(), KitchenExpert()
    task.reset(5, episodes)
    expert.reset(5, episodes)
    draws = [np.random.default_rng(episode) for episode in episodes]
    actions, when = [], np.full((len(episodes), len(SUBTASKS)), np.inf)
    for step in range(steps):
        actions.append(expert.act(task))
        task.step(actions[-1] + noise * np.stack([draw.normal(size=9) for draw in draws]))
        when = np.where(task.completed, np.minimum(when, step), when)
        if task.done.all():
            break
    return task, expert, np.stack(actions), when


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_expert_does_all_four_in_the_order_that_was_drawn(noise: float) -> None:
    task, expert, actions, when = drive([0, 1, 2, 3], 280, noise)
    assert task.success.all()
    np.testing.assert_array_equal(np.argsort(when, axis=1), expert.orders)
    assert np.abs(actions).max() <= 2.0
    assert len(actions) < 210  # of 280: time is left to recover


def test_it_needs_no_more_than_what_a_policy_sees() -> None:
    task, expert, again = Kitchen(), KitchenExpert(), KitchenExpert()
    for each in (task, expert, again):
        each.reset(0, range(8))
    seen = types.SimpleNamespace(joint_positions=task.joint_positions, state=task.state, spec=task.spec)
    np.testing.assert_array_equal(expert.act(task), again.act(seen))


def test_no_joint_is_sent_past_its_limit() -> None:
    positions = np.tile(Kitchen().true_positions, (6, 1))
    arm = KitchenArm(Kitchen().world)
    low, high = Kitchen().world.model.jnt_range[:7].T
    positions[:, :7] = np.clip(positions[:, :7], low + 0.02, high - 0.02)
    view = arm.view(positions)
    at = view.joints[:, :7]
    place = view.tool + 0.2 * np.vstack([np.eye(3), -np.eye(3)])
    step = arm.towards_place(view, place, view.rotation, at)
    assert np.all((at + step > low) & (at + step < high))
    moved = (view.jacobian[:, :3] @ step[:, :, None])[:, :, 0]
    assert np.all(np.linalg.norm(view.tool + moved - place, axis=1) < 0.19)
    view.joints[:, :7] = high - 0.02
    assert np.all(view.joints[:, :7] + arm.towards_posture(view, np.tile(high + 1.0, (6, 1))) < high)
