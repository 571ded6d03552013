"""A scripted expert for the Franka kitchen: it sees what a policy sees and does one sub-task after another.

Which sub-task comes next is drawn per episode; all else follows from the observation, so that a
policy can learn it. Every sub-task is a funnel: from wherever the arm is, go to a stored pose, from
there straight to contact, then push or pull.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from adahi_ros.randomness import EpisodeStreams
from adahi_ros.tasks.base import Task
from adahi_ros.tasks.kitchen import SUBTASKS
from adahi_ros.tasks.kitchen_arm import ArmMotion, ArmView, KitchenArm
from adahi_ros.tasks.kitchen_world import ROBOT_JOINTS, load_world

ENOUGH = 0.25  # from the goal: the task asks for 0.3, and who imitates shall have something to spare
OPEN, CLOSED = 1.0, -1.0  # m/s: the fingers are there in a step or two
FAR_RAD = 0.3  # further from a stored posture than this, the arm moves in joint space
ALIGNED_M = 0.03  # as near to the line of approach as this, the hand goes ahead
AHEAD_M = 0.08  # the hand aims so far ahead
WALL_Y_M = 0.50  # beyond it are switch and cabinet, and the hand leaves the way it came
FORWARD = np.array([0.0, 1.0, 0.0])

# The arm's postures before each sub-task, rad. Found by a search over inverse kinematics for some that
# are near each other and the start, in reach of what follows, and with nothing in between.
POSTURES = {
    "microwave": (-0.98, -1.72, 1.91, -1.60, 1.01, 0.96, 1.02),
    "kettle": (-0.29, -1.53, 2.32, -2.24, 0.72, 0.52, 1.67),
    "light switch": (-0.79, -0.96, 1.32, -2.38, 0.71, 1.55, 1.73),
    "slide cabinet": (-0.80, -0.90, 1.02, -2.31, 0.78, 1.84, 1.97),
}


@dataclass(frozen=True)
class Plan:
    """How N hands go about a sub-task.

    Attributes:
        point: (N, 3) where the tool shall go next, m.
        to_entry: (N,) bool: it is not in place yet, the point is where the approach begins.
        fingers: (N,) OPEN or CLOSED.
    """

    point: np.ndarray
    to_entry: np.ndarray
    fingers: np.ndarray


class KitchenExpert:
    """Does the four sub-tasks in an order drawn per episode. Implements `adahi_ros.tasks.base.Expert`.

    The order is all it remembers. The arm moves by damped least squares (Wampler, IEEE SMC 1986) where
    the hand's place matters, else straight in joint space.
    """

    def __init__(self) -> None:
        world = self._world = load_world(SUBTASKS)
        self._arm = KitchenArm(world)
        self._postures = np.array([POSTURES[name] for name in SUBTASKS])
        positions = np.tile(world.start, (len(SUBTASKS), 1))
        positions[:, : self._postures.shape[1]] = self._postures
        self._rotations = self._arm.look(positions).rotation
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
        self._stages += enough[rows, self.orders[rows, self._stages]] & (self._stages < len(SUBTASKS) - 1)
        current = self.orders[rows, self._stages]
        view = self._arm.look(positions)
        motion = ArmMotion(
            point=np.empty((count, 3)),
            rotation=self._rotations[current],
            joints=self._postures[current],
            in_joint_space=np.zeros(count, dtype=bool),
            fingers=np.empty(count),
        )
        for index, name in enumerate(SUBTASKS):
            rows = np.flatnonzero(current == index)
            if len(rows):
                plan = PLANS[name](view[rows])
                motion.point[rows], motion.fingers[rows] = plan.point, plan.fingers
                far = np.abs(motion.joints[rows] - joints[rows, :7]).max(axis=1) > FAR_RAD
                motion.in_joint_space[rows] = plan.to_entry & far
                leave(view, motion, rows[plan.to_entry])
        return np.clip(self._arm.command(view, motion), task.spec.action_low, task.spec.action_high)


def leave(view: ArmView, motion: ArmMotion, rows: np.ndarray) -> None:
    """Have hands on their way elsewhere first get clear of what they were at."""
    tool = view.tool[rows]
    out, beside = _along(tool - view.handle[rows], view.door[rows])
    at_handle = (out < 0.10) & (out > -0.06) & (beside < 0.10)
    at_wall = (tool[:, 1] > WALL_Y_M) & (tool[:, 2] > 2.0)
    ahead = view.kettle[rows] - tool
    at_kettle = (np.abs(ahead[:, 0]) < 0.2) & (tool[:, 1] > 0.25) & (tool[:, 2] < 1.95) & (ahead[:, 1] > 0.0)
    way = np.where(at_handle[:, None], view.door[rows], -FORWARD)
    at_any = at_handle | at_wall | at_kettle
    leaving = rows[at_any]
    motion.point[leaving] = (tool + AHEAD_M * way)[at_any]
    motion.rotation[leaving], motion.joints[leaving] = view.rotation[leaving], view.joints[leaving, :7]
    motion.in_joint_space[leaving] = False
    motion.fingers[rows[at_handle]] = OPEN


def plan_microwave(view: ArmView) -> Plan:
    """Grasp the handle, then pull it along the arc that it moves on."""
    out, beside = _along(view.tool - view.handle, view.door)
    holding = (np.abs(out) < 0.05) & (beside < 0.04)
    aligned = (beside < ALIGNED_M) & (out > 0.0)
    around = view.joints[:, 7:9].mean(axis=1) < 0.03
    ahead = view.door * np.maximum(out - AHEAD_M, 0.0)[:, None]
    entry = view.handle + 0.12 * view.door
    pulled = view.handle + AHEAD_M * view.door
    return Plan(
        point=np.select(
            [(holding & around)[:, None], (holding | aligned)[:, None]],
            [pulled, view.handle + ahead],
            entry,
        ),
        to_entry=~(holding | aligned),
        fingers=np.where(holding & (np.abs(out) < 0.02), CLOSED, OPEN),
    )


def plan_kettle(view: ArmView) -> Plan:
    """Push it away by its side."""
    contact = view.kettle + np.array([0.0, -0.15, 0.085])
    along, beside = _along(view.tool - contact, FORWARD)
    aligned = (beside < ALIGNED_M) & (along > -0.10)
    ahead = contact + FORWARD * (along + AHEAD_M)[:, None]
    return _with_closed_fingers(np.where(aligned[:, None], ahead, contact - 0.06 * FORWARD), ~aligned)


def plan_light_switch(view: ArmView) -> Plan:
    """Push it from its right to the left."""
    return _reach_behind(view.tool, view.light, np.array([0.06, 0.0, 0.0]), -1.0)


def plan_slide_cabinet(view: ArmView) -> Plan:
    """Push its handle from its left to the right."""
    return _reach_behind(view.tool, view.slide, np.array([-0.075, 0.0, -0.10]), 1.0)


PLANS: dict[str, Callable[[ArmView], Plan]] = {
    "microwave": plan_microwave,
    "kettle": plan_kettle,
    "light switch": plan_light_switch,
    "slide cabinet": plan_slide_cabinet,
}


def _reach_behind(tool: np.ndarray, site: np.ndarray, offset: np.ndarray, side: float) -> Plan:
    """Go forward to a place beside a thing, then push it sideways, along x with this sign."""
    contact = site + offset
    error = tool - contact
    passed = side * error[:, 0]
    behind = (np.abs(error[:, 2]) < ALIGNED_M) & (error[:, 1] > -0.04) & (np.abs(passed) < 0.06)
    aligned = (np.hypot(error[:, 0], error[:, 2]) < ALIGNED_M) & (error[:, 1] > -0.14)
    ahead = contact + FORWARD * np.minimum(error[:, 1:2] + AHEAD_M, 0.0)
    push = contact + np.array([side, 0.0, 0.0]) * (passed + AHEAD_M)[:, None]
    point = np.select([behind[:, None], aligned[:, None]], [push, ahead], contact - 0.10 * FORWARD)
    return _with_closed_fingers(point, ~(behind | aligned))


def _with_closed_fingers(point: np.ndarray, to_entry: np.ndarray) -> Plan:
    return Plan(point, to_entry, np.full(len(point), CLOSED))


def _along(offset: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far (N, 3) offsets go along unit vectors, and how far beside them, (N,) each."""
    along = np.sum(offset * axis, axis=1)
    return along, np.linalg.norm(offset - along[:, None] * axis, axis=1)
