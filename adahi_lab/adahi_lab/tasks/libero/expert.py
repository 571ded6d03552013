# SPDX-License-Identifier: Apache-2.0
"""An expert of LIBERO-Goal: the next action from poses alone, without memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from adahi_lab.tasks.libero import grip_points
from adahi_lab.tasks.libero.goal import LiberoGoal
from adahi_lab.tasks.libero.grip_points import CABINET, STOVE, THINGS_M
from adahi_lab.tasks.libero.hand_control import FARTHEST_M, FARTHEST_RAD
from adahi_lab.tasks.libero.skills import (
    CLOSED,
    DOWN,
    OPEN,
    Grip,
    Scene,
    Wish,
    approached,
    carried,
    rotation_to,
    turned,
)
from adahi_lab.tasks.task_interface import Task

GAIN = 2.0  # of the hand's goal: the controller covers about a third of the way in a control period
BOWL = Grip(THINGS_M["akita_black_bowl_1"], 0.006, direction=(-0.257, 0.0, 0.0))
CHEESE = Grip(THINGS_M["cream_cheese_1"], 0.044)
BOTTLE = Grip(THINGS_M["wine_bottle_1"], 0.016)
HANDLE_WIDTH_M = 0.0225
SIDEWAYS = turned((-1.37, 0.0, 0.0))  # fingers towards the cabinet; at a right angle the arm meets its limits
KNOB_TILT = (0.0, 0.5, 0.0)  # fingers towards the robot, because the knob is near it
KNOB_WIDTH_M = 0.034
AWAY_M, INSIDE_M = np.array([0.0, 0.06, 0.0]), np.array([0.0, 0.0, 0.01])
FRONT_M = np.array([-0.05, 0.21])  # middle of the region in front of the stove


def _handle(scene: Scene, drawer: str) -> np.ndarray:
    joint = scene.joint(f"{CABINET}_{drawer}_level_m")
    return grip_points.handle(scene.fixture(CABINET), drawer, joint)


def pulled(scene: Scene, drawer: str) -> Wish:
    """Open a drawer by its handle."""
    handle = _handle(scene, drawer)
    off = scene.hand - handle
    if np.linalg.norm(off) > 0.014:
        return Wish(approached(scene, handle, SIDEWAYS, 0.10), OPEN, SIDEWAYS)
    pull = np.array([0.0, 0.06 if scene.opening < HANDLE_WIDTH_M else 0.0, 0.0])
    return Wish(handle + pull, CLOSED, SIDEWAYS)


def _cabinet(scene: Scene) -> np.ndarray:
    x, y = scene.fixture(CABINET)
    return np.array([x - 0.04, y - 0.016, 1.09])


def _stove(scene: Scene) -> np.ndarray:
    x, y = scene.fixture(STOVE)
    return np.array([x + 0.15, y, 0.92])


def _rack(scene: Scene) -> np.ndarray:
    x, y = scene.fixture("wine_rack_1")
    return np.array([x, y + 0.075, 1.13])


def in_drawer(scene: Scene) -> Wish:
    """Open the top drawer, then put the bowl inside."""
    joint = scene.joint(f"{CABINET}_top_level_m")
    x, y = scene.fixture(CABINET)
    off = scene.hand - _handle(scene, "top")
    holding = np.linalg.norm(off) < 0.03 and scene.opening < HANDLE_WIDTH_M
    if joint > (-0.12 if holding else -0.07):
        return pulled(scene, "top")
    if np.hypot(off[0], off[2]) < 0.05 and off[1] < 0.07:
        return Wish(scene.hand + AWAY_M, OPEN, SIDEWAYS)
    return carried(scene, "akita_black_bowl_1", BOWL, np.array([x, y + 0.13, 1.115]), 0.05)


def knob(scene: Scene) -> Wish:
    """Turn the stove on: grip its knob and turn the hand."""
    at = grip_points.knob(scene.fixture(STOVE))
    direction = turned((0.0, 0.0, scene.joint(f"{STOVE}_button_rad")), turned(KNOB_TILT))
    if np.linalg.norm(scene.hand - at) > 0.02:
        return Wish(approached(scene, at, direction, 0.1), OPEN, direction)
    if scene.opening > KNOB_WIDTH_M:
        return Wish(at, CLOSED, direction)
    return Wish(at, CLOSED, turned((0.0, 0.0, 0.5), direction))


def dragged(scene: Scene) -> Wish:
    """Drag the plate to the front of the stove with fingers that press onto it."""
    plate = scene.place("plate_1")
    way = FRONT_M - plate[:2]
    far = float(np.hypot(way[0], way[1]))
    at = plate + THINGS_M["plate_1"] + np.append(0.03 * way / max(far, 0.01), 0.0)
    off = scene.hand - at
    if np.hypot(off[0], off[1]) < 0.025 and off[2] < 0.012:
        return Wish(np.append(scene.hand[:2] + way, plate[2] + 0.005), CLOSED, DOWN)
    return Wish(approached(scene, at, DOWN, 0.08), CLOSED, DOWN)


def on(thing: str, grip: Grip, goal: Callable[[Scene], np.ndarray], lift: float) -> Callable[[Scene], Wish]:
    """Return the rule that puts a thing somewhere."""
    return lambda scene: carried(scene, thing, grip, goal(scene), lift)


RULES: dict[str, Callable[[Scene], Wish]] = {
    "open_the_middle_drawer_of_the_cabinet": lambda scene: pulled(scene, "middle"),
    "put_the_bowl_on_the_stove": on("akita_black_bowl_1", BOWL, _stove, 0.08),
    "put_the_wine_bottle_on_top_of_the_cabinet": on("wine_bottle_1", BOTTLE, _cabinet, 0.1),
    "open_the_top_drawer_and_put_the_bowl_inside": in_drawer,
    "put_the_bowl_on_top_of_the_cabinet": on("akita_black_bowl_1", BOWL, _cabinet, 0.09),
    "push_the_plate_to_the_front_of_the_stove": dragged,
    "put_the_cream_cheese_in_the_bowl": on(
        "cream_cheese_1", CHEESE, lambda scene: scene.place("akita_black_bowl_1") + INSIDE_M, 0.08
    ),
    "turn_on_the_stove": knob,
    "put_the_bowl_on_the_plate": on("akita_black_bowl_1", BOWL, lambda scene: scene.place("plate_1"), 0.05),
    "put_the_wine_bottle_on_the_rack": on("wine_bottle_1", BOTTLE, _rack, 0.06),
}


class LiberoGoalExpert:
    """Does the task of each episode. Implements `Expert`; remembers nothing."""

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Remembers nothing."""

    def rule(self, errand: str, scene: Scene) -> Wish:
        """Return what the hand is to do next for a task of this name."""
        return RULES[errand](scene)

    def act(self, task: Task) -> np.ndarray:
        """Return where the hands are to go and to turn, and the grippers, (E, 7).

        Raises:
            ValueError: the task is another one.
        """
        if not isinstance(task, LiberoGoal):
            raise ValueError(f"task: {task.spec.name!r}, must be libero_goal")
        names = task.spec.state_names
        actions = np.zeros((len(task.errands), task.spec.action_dim))
        rows = zip(task.errands, task.joint_positions, task.state, strict=True)
        for row, (errand, joints, state) in enumerate(rows):
            actions[row] = self.action(errand.name, Scene(names, joints, state))
        return actions

    def action(self, errand: str, scene: Scene) -> np.ndarray:
        """Return the action (7,) for a task of this name."""
        wish = self.rule(errand, scene)
        place = GAIN * (wish.place - scene.hand) / FARTHEST_M
        turn = GAIN * rotation_to(scene.direction, wish.direction) / FARTHEST_RAD
        return np.clip(np.concatenate([place, turn, [wish.gripper]]), -1.0, 1.0)
