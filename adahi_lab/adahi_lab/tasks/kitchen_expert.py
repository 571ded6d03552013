# SPDX-License-Identifier: Apache-2.0
"""A scripted expert for the Franka kitchen: it sees a policy's observations and does the sub-tasks in turn.

The order of sub-tasks is drawn per episode; everything else follows from the observation, so a policy can
learn it. Every sub-task is a funnel: go to a stored posture from anywhere, then straight to contact, then
push or pull.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from adahi_lab.tasks.kitchen import SUBTASKS
from adahi_lab.tasks.kitchen_arm import ArmView, KitchenArm
from adahi_lab.tasks.kitchen_world import ROBOT_JOINTS, load_world
from adahi_lab.tasks.task_interface import Task
from adahi_ros.core.randomness import EpisodeStreams

ENOUGH = 0.25  # from the goal: the task requires 0.3; the margin is for imitators
OPEN, CLOSED = 1.0, -1.0  # m/s: the fingers arrive in one or two steps
NEAR_RAD, FAR_RAD = 0.1, 0.5  # the farther from a stored posture, the more the arm moves in joint space
CORRIDOR_M = (0.04, 0.10)  # so far from the corridor, the hand begins to be elsewhere, and is
ALIGNED_M = 0.03  # nearer to the corridor's axis than this, the hand goes ahead
AHEAD_M = 0.08  # the hand aims so far ahead
WALL_Y_M = (0.50, 0.54)  # beyond it are switch and cabinet, and the hand leaves the way it came
KETTLE_M = (0.25, 0.21)  # nearer to its middle than this, too
GRASPED_M, OPENED_M = 0.03, 0.036  # the fingers round the handle, and wide enough to let it go
SLIPPED_M = 0.05  # this far from the handle, it is not in the hand
MICROWAVE_APPROACH = np.array([0.233, 0.738, -0.633])  # where the fingers point there
FORWARD = np.array([0.0, 1.0, 0.0])

# The arm's postures before each sub-task, rad. Found by a search over inverse kinematics for some that
# are near each other and the start, in reach of what follows, and with nothing in between.
POSTURES = {
    "microwave": (-1.32, -1.56, 1.92, -1.08, 0.45, 0.57, 1.48),
    "kettle": (-0.29, -1.53, 2.32, -2.24, 0.72, 0.52, 1.67),
    "light switch": (-0.79, -0.96, 1.32, -2.38, 0.71, 1.55, 1.73),
    "slide cabinet": (-0.80, -0.90, 1.02, -2.31, 0.78, 1.84, 1.97),
}


@dataclass(frozen=True)
class Plan:
    """Commands of N hands in a sub-task.

    Attributes:
        point: (N, 3) next goal of the tool, m.
        away: (N,) from 0, in place for the sub-task, to 1, somewhere else.
        fingers: (N,) OPEN or CLOSED.
    """

    point: np.ndarray
    away: np.ndarray
    fingers: np.ndarray


class KitchenExpert:
    """Does the four sub-tasks in an order drawn per episode. Implements `Expert`.

    It remembers only the order and the progress in it. The arm moves by damped least squares
    where the hand's place matters, and straight in joint space where it does not.
    """

    def __init__(self) -> None:
        world = self._world = load_world(SUBTASKS)
        self._arm = KitchenArm(world)
        self._postures = np.array([POSTURES[name] for name in SUBTASKS])
        positions = np.tile(world.start, (len(SUBTASKS), 1))
        positions[:, : self._postures.shape[1]] = self._postures
        self._rotations = self._arm.view(positions).rotation
        self.reset(0, [0])

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Draw an order for each of the episodes with these numbers."""
        draws = EpisodeStreams(seed, "kitchen/expert", episodes, len(SUBTASKS)).next()
        self.orders = np.argsort(draws, axis=1)
        """(E, 4), indices into `SUBTASKS`, first to last."""
        self._stages = np.zeros(len(episodes), dtype=np.int64)  # places in the orders

    def act(self, task: Task) -> np.ndarray:
        """Return the commanded joint velocities, (E, 9) rad/s and m/s.

        Raises:
            ValueError: the task has another number of episodes than were reset here.
        """
        joints, state, count = task.joint_positions, task.state, len(self.orders)
        if len(joints) != count:
            raise ValueError(f"task: {len(joints)} episodes, the expert was reset for {count}")
        objects = state[:, ROBOT_JOINTS : ROBOT_JOINTS + self._arm.objects]
        positions = np.concatenate([joints, objects], axis=1)
        enough = self._world.distances(positions) < ENOUGH
        rows = np.arange(count)
        self._stages += enough[rows, self.orders[rows, self._stages]] & (
            self._stages < self.orders.shape[1] - 1
        )
        current = self.orders[rows, self._stages]
        view = self._arm.view(positions)
        point, away, fingers = np.empty((count, 3)), np.empty(count), np.empty(count)
        for index, name in enumerate(SUBTASKS):
            of_this = np.flatnonzero(current == index)
            if len(of_this):
                plan = PLANS[name](view[of_this])
                point[of_this], away[of_this], fingers[of_this] = plan.point, plan.away, plan.fingers
        out, exit_point, at_handle = _exit(view, current == SUBTASKS.index("kettle"))
        postures, arm_joints = self._postures[current], joints[:, : self._postures.shape[1]]
        far = _ramp(np.abs(postures - arm_joints).max(axis=1), NEAR_RAD, FAR_RAD)
        step = _mixed(
            self._arm.towards_place(view, point, self._rotations[current], postures),
            self._arm.towards_posture(view, postures),
            away * far,
        )
        leaving = self._arm.towards_place(view, exit_point, view.rotation, arm_joints)
        step = _mixed(step, leaving, away * out)
        fingers = np.where((away > 0.0) & at_handle, OPEN, fingers)
        command = self._arm.command(view, step, fingers)
        return np.clip(command, task.spec.action_low, task.spec.action_high)


def plan_microwave(view: ArmView) -> Plan:
    """Grasp the handle, then pull it along the arc that it moves on."""
    point, away = _funnel(view.tool, view.handle, MICROWAVE_APPROACH, 0.11)
    distance = np.linalg.norm(view.tool - view.handle, axis=1)
    gap = view.joints[:, 7:9].mean(axis=1)
    pulling = (distance < SLIPPED_M) & (gap < GRASPED_M)
    slipped = (distance >= SLIPPED_M) & (distance < 0.10) & (gap < OPENED_M)
    point = np.where(pulling[:, None], view.handle + AHEAD_M * view.door, point)
    point = np.where(slipped[:, None], view.handle - 0.08 * MICROWAVE_APPROACH, point)
    closing = (distance < 0.02) | (distance < SLIPPED_M) & (gap < OPENED_M)
    return Plan(point, np.where(pulling, 0.0, away), np.where(closing, CLOSED, OPEN))


def plan_kettle(view: ArmView) -> Plan:
    """Push it away by its side."""
    side = view.kettle + np.array([0.0, -0.15, 0.085])
    point, away = _funnel(view.tool, side + AHEAD_M * FORWARD, FORWARD, 0.06 + AHEAD_M)
    return Plan(point, away, np.full(len(point), CLOSED))


def plan_light_switch(view: ArmView) -> Plan:
    """Push it from its right to the left."""
    return _push_sideways(view.tool, view.light, np.array([0.06, 0.01, -0.012]), -1.0)


def plan_slide_cabinet(view: ArmView) -> Plan:
    """Push its handle from its left to the right."""
    return _push_sideways(view.tool, view.slide, np.array([-0.075, 0.0, -0.10]), 1.0)


PLANS: dict[str, Callable[[ArmView], Plan]] = {
    "microwave": plan_microwave,
    "kettle": plan_kettle,
    "light switch": plan_light_switch,
    "slide cabinet": plan_slide_cabinet,
}


def _push_sideways(tool: np.ndarray, site: np.ndarray, offset: np.ndarray, side: float) -> Plan:
    """Go forward to a place beside a thing, then push it sideways, along x with this sign."""
    contact = site + offset
    point, away = _funnel(tool, contact, FORWARD, 0.11)
    error = tool - contact
    passed = side * error[:, 0]
    behind = (np.abs(error[:, 2]) < 0.04) & (error[:, 1] > -0.04) & (passed > -0.06)
    behind &= passed < 0.06 + 1.5 * np.minimum(error[:, 1], 0.0)  # narrower in front: out there, go round
    push = contact + np.array([side, 0.0, 0.0]) * (passed + AHEAD_M)[:, None]
    return Plan(
        point=np.where(behind[:, None], push, point),
        away=np.where(behind, 0.0, away),
        fingers=np.full(len(tool), CLOSED),
    )


def _funnel(
    tool: np.ndarray, end: np.ndarray, axis: np.ndarray, length: float
) -> tuple[np.ndarray, np.ndarray]:
    """Lead tools into a corridor that ends there, and along it; the less aligned, the slower.

    Returns:
        the point to go to, (N, 3), and how far outside the corridor the tools are, (N,) from 0 to 1.
    """
    along, beside = _along(tool - end, axis)
    advance = AHEAD_M * np.maximum(1.0 - beside / ALIGNED_M, -1.0)
    point = end + axis * np.clip(along + advance, -length, 0.0)[:, None]
    nearest = end + axis * np.clip(along, -length, 0.0)[:, None]
    return point, _ramp(np.linalg.norm(tool - nearest, axis=1), *CORRIDOR_M)


def _exit(view: ArmView, to_the_kettle: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how hands retreat from their last object.

    Returns:
        how much they must, (E,) from 0 to 1; the point to go to, (E, 3); and whether they are at
        the microwave's handle, (E,) bool.
    """
    tool = view.tool
    fingers = view.rotation[:, :, 2]
    deep, beside = _along(tool - view.handle, fingers)
    at_handle = _ramp(deep, -0.09, -0.06) * _ramp(deep, 0.08, 0.06) * _ramp(beside, 0.12, 0.08)
    at_wall = _ramp(tool[:, 1], *WALL_Y_M) * (tool[:, 2] > 2.0)
    to_kettle = view.kettle - tool
    at_kettle = _ramp(to_kettle[:, 1], *KETTLE_M) * (to_kettle[:, 1] > 0.0)
    at_kettle *= (np.abs(to_kettle[:, 0]) < 0.2) & (tool[:, 2] < 1.8) & ~to_the_kettle
    way = np.where(at_handle[:, None] > 0.0, -fingers, -FORWARD)
    return np.maximum(np.maximum(at_handle, at_wall), at_kettle), tool + AHEAD_M * way, at_handle > 0.0


def _along(offset: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Components of (N, 3) offsets along unit vectors, and distances from them, (N,) each."""
    along = np.sum(offset * axis, axis=1)
    return along, np.linalg.norm(offset - along[:, None] * axis, axis=1)


def _ramp(value: np.ndarray, zero: float, one: float) -> np.ndarray:
    """A ramp from 0 at one value to 1 at another, so that small noise has a small effect."""
    return np.clip((value - zero) / (one - zero), 0.0, 1.0)


def _mixed(first: np.ndarray, second: np.ndarray, share: np.ndarray) -> np.ndarray:
    """(E, 7) and (E, 7), with this share of the second, (E,)."""
    return first + share[:, None] * (second - first)
