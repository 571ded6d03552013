# SPDX-License-Identifier: Apache-2.0
"""Meta-World: one arm, many tables, and a sentence with the instruction.

The goal, for the target only, is a sentence and the place of a mark. In the scenes of `metaworld_scenes.py` a
robot without it can only guess: each scene allows two or three of the library's tasks and shows none of
them. Doing the opposite fails the episode, so trying one after the other does not help. MT10 and MT50 are the
library's unmodified tasks; most reveal their goal.

The hand is disturbed at every step. Without disturbance only the start is random, and plans of any length
succeed without feedback.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from adahi_lab.tasks.instructions import INSTRUCTION_DIM, embedded
from adahi_lab.tasks.metaworld_original import load_original
from adahi_lab.tasks.metaworld_scenes import AXES, MT10, MT50, SHARED, Errand, Original, Scene, Suite
from adahi_lab.tasks.metaworld_world import LIBRARY_OBSERVATION_DIM, load_library, load_scene
from adahi_lab.tasks.portable import UNIFORMS_PER_DRAW, bell_noise
from adahi_lab.tasks.task_interface import SimulatedTask, Task, TaskSpec, checked_action
from adahi_ros.core.randomness import EpisodeStreams

DISTURBANCE = 0.6  # standard deviation, as a share of the fastest motion along an axis
GAIN = 2.0  # on the motions of scripted policies, which assume no disturbance
REQUESTED = "what was asked for"
MIDDLE_M = np.array([0.0, 0.85, 0.15])  # of the range of marks


class MetaWorld(SimulatedTask):
    """E tables side by side. Implements `adahi_lab.tasks.task_interface.Task`.

    Joints: none, for the hand is commanded. State: the hand's place (m), how open the gripper is (0 to 1),
    and what is on the table. In shared scenes that is where the moving part of the thing is and where the
    thing is (m), and which scene it is (one entry of each, 1 or 0); in the library's unmodified tasks, its
    own observation of up to two things, places (m) and quaternions, 0 where there is none. Goal, for the
    target alone: the sentence as a vector, and where the mark is (m), from the middle of where those of the
    shared scenes may be, 0 where there is none. Action: the hand's velocity (m/s) and the gripper, from -1,
    open, to 1, closed. A finished episode stands still; it has failed if something else was done.

    Args:
        suite: scenes of the episodes.
        disturbance: of the hand's motion at every step, standard deviation, as a share of the fastest.

    Raises:
        ValueError: Meta-World is not installed; the message has the command.
    """

    def __init__(self, suite: Suite = SHARED, disturbance: float = DISTURBANCE) -> None:
        self._disturbance = disturbance
        self._names = tuple(scene.name for scene in suite.scenes) if suite.shows_scene else ()
        self._errands: list[tuple[Scene | Original, Errand | Original]] = [
            (scene, errand) for scene in suite.scenes for errand in scene.errands
        ]
        world = _load(suite.scenes[0])
        fastest = round(world.reach_m / world.period_s, 9)
        limit = np.array([fastest, fastest, fastest, 1.0])
        self._period_s = world.period_s
        self.spec = TaskSpec(
            name=suite.name,
            joint_names=(),
            state_names=(
                *(f"hand_{axis}_m" for axis in AXES),
                "gripper_opening",
                *suite.things,
                *(f"scene_is_{name.replace(' ', '_')}" for name in self._names),
            ),
            frame_id="world",
            goal_dim=INSTRUCTION_DIM + len(AXES),
            action_names=(*(f"hand_v{axis}_command_m_s" for axis in AXES), "gripper_command"),
            action_low=-limit,
            action_high=limit,
            control_rate_hz=1.0 / world.period_s,
            max_steps=suite.max_steps,
            success_text=suite.success_text,
            subtask_names=(REQUESTED,),
            command_field="velocities",
            command_names=(*(f"hand_{axis}" for axis in AXES), "gripper"),
            goal_for_target=True,
        )
        self.reset(0, [0])

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers; E is how many there are.

        Scene and errand are drawn, all errands with equal probability; then the start and the mark.
        """
        count = len(episodes)
        draws = EpisodeStreams(seed, "metaworld/reset", episodes, 8).next()
        self._drawn = [self._errands[int(draw * len(self._errands))] for draw in draws[:, 0]]
        self._worlds = [_load(scene) for scene, _ in self._drawn]
        self._kept: list[Any] = []
        self._goal = np.zeros((count, self.spec.goal_dim))
        self._observed = np.zeros((count, self.spec.observation_dim))
        self._read = np.zeros((count, LIBRARY_OBSERVATION_DIM))
        self._met = np.zeros(count, dtype=bool)
        self._excused = np.zeros(count, dtype=bool)
        self._begin(count)
        self._disturbances = EpisodeStreams(
            seed, "metaworld/disturbance", episodes, len(AXES) * UNIFORMS_PER_DRAW
        )
        for row, (_, errand) in enumerate(self._drawn):
            self._kept.append(self._worlds[row].start(errand, draws[row, 1:]))
            self._instruct(row)

    def swap_goals(self, seed: int, episodes: Sequence[int]) -> None:
        """Replace each errand by another one of its scene, drawn for other episodes with these numbers.

        Only what is done afterwards counts. What the new errand forbids and was done before is excused until
        it is undone.

        Raises:
            ValueError: a scene has only one errand.
        """
        draws = EpisodeStreams(seed, "metaworld/reset", episodes, 8).next()
        for row, (scene, errand) in enumerate(self._drawn):
            others = [other for other in scene.errands if other is not errand]
            if not others:
                raise ValueError(f"swap: {scene.name!r}, must have another errand than {errand.sentence!r}")
            other = others[int(draws[row, 0] * len(others))]
            self._drawn[row] = scene, other
            self._kept[row] = self._worlds[row].instructed(other, self._kept[row], draws[row, 5:])
            self._worlds[row].load(self._kept[row])
            self._success[row], self._excused[row] = False, True
            self._instruct(row)

    def _instruct(self, row: int) -> None:
        """Store the goal and the observation of the episode that was loaded last."""
        self._goal[row, :INSTRUCTION_DIM] = embedded(self._said(*self._drawn[row]))
        self._goal[row, INSTRUCTION_DIM:] = np.nan_to_num(self._kept[row].mark - MIDDLE_M)
        self._store_observation(row)

    def _said(self, scene: Any, errand: Any) -> str:
        return str(errand.sentence)

    @property
    def state(self) -> np.ndarray:
        """(E, S) float64; see the class."""
        return self._observed.copy()

    @property
    def goal(self) -> np.ndarray:
        """(E, 35) float64: the sentence's vector, then x, y, z of the mark (m) from the middle of all."""
        return self._goal.copy()

    @property
    def sentences(self) -> tuple[str, ...]:
        """The errand of each of the E episodes."""
        return tuple(errand.sentence for _, errand in self._drawn)

    @property
    def errands(self) -> tuple[Errand | Original, ...]:
        """The errand with its scene and start."""
        return tuple(errand for _, errand in self._drawn)

    @property
    def library_observations(self) -> np.ndarray:
        """(E, 39) float64, what the library's scripted policies read."""
        return self._read.copy()

    @property
    def fulfilled(self) -> np.ndarray:
        """(E, 1) bool: the errand is done now."""
        return self._met[:, None].copy()

    def step(self, action: np.ndarray) -> None:
        """Advance every episode that is not done by one control period.

        Args:
            action: (E, 4), the hand's velocity (m/s) and the gripper, clipped to the action limits; so is the
                velocity with its disturbance.

        Raises:
            ValueError: wrong shape, or not finite.
        """
        action = checked_action(self.spec, len(self._steps), action)
        fastest = self.spec.action_high[:3]
        disturbed = action[:, :3] + self._disturbance * fastest * bell_noise(self._disturbances.next())
        moved = np.clip(disturbed, -fastest, fastest) * self._period_s
        for row in np.flatnonzero(~self.done).tolist():
            self._kept[row] = self._worlds[row].step(self._kept[row], moved[row], float(action[row, 3]))
            self._steps[row] += 1
            self._store_observation(row)

    def loaded(self, row: int) -> tuple[Any, str]:
        """Return the world of an episode, which is loaded with it, and the name of its scene."""
        self._worlds[row].load(self._kept[row])
        return self._worlds[row], self._drawn[row][0].name

    def _store_observation(self, row: int) -> None:
        """Store the observation of the episode that was started or stepped last."""
        scene, errand = self._drawn[row]
        look = self._worlds[row].observe(errand, self._kept[row])
        self._observed[row] = np.append(look.shown, [name == scene.name for name in self._names])
        self._read[row], self._met[row] = look.read, look.met
        self._success[row] |= look.met
        self._excused[row] &= look.failed
        self._failed[row] |= look.failed and not self._excused[row]


class MetaWorldGiven(MetaWorld):
    """The shared scenes where the robot gets the goal, too, as where draft and target run on one machine.

    Starts, errands and draws are those of `MetaWorld`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.spec = replace(self.spec, goal_for_target=False)


class MetaWorldReworded(MetaWorld):
    """The shared scenes, where the target gets new sentences of words that its training had.

    A robot that is given the goal gets the scene's nearest sentence of training instead. For three of the 17
    errands that is the sentence of another one: the words decide nothing there.
    """

    @property
    def true_goal(self) -> np.ndarray:
        """(E, 35), what the target reads; see `for_target`."""
        goal = self.goal
        goal[:, :INSTRUCTION_DIM] = [embedded(errand.reworded) for _, errand in self._drawn]  # type: ignore[union-attr]
        return goal

    def _said(self, scene: Any, errand: Any) -> str:
        return max((e.sentence for e in scene.errands), key=lambda s: embedded(s) @ embedded(errand.reworded))


MetaWorld10 = partial(MetaWorld, MT10)
MetaWorld50 = partial(MetaWorld, MT50)


class MetaWorldExpert:
    """Does the errand of each episode. Implements `Expert`; remembers nothing.

    Raises:
        ValueError: Meta-World is not installed; the message has the command.
    """

    def __init__(self) -> None:
        self._kinds = load_library()[1]
        self._policies: dict[str, Any] = {}

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Remembers nothing."""

    def act(self, task: Task) -> np.ndarray:
        """Return the hand's velocities and the grippers, (E, 4).

        Raises:
            ValueError: the task is another one.
        """
        if not isinstance(task, MetaWorld):
            raise ValueError(f"task: {task.spec.name!r}, must be one of Meta-World's")
        read = task.library_observations
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about clipped actions
            acts = [
                self._policy(errand.policy).get_action(row)
                for errand, row in zip(task.errands, read, strict=True)
            ]
        wanted = np.array(acts, dtype=np.float64) * (GAIN, GAIN, GAIN, 1.0)
        return np.clip(wanted, -1.0, 1.0) * task.spec.action_high

    def _policy(self, name: str) -> Any:
        if name not in self._policies:
            self._policies[name] = self._kinds[name]()
        return self._policies[name]


def _load(scene: Scene | Original) -> Any:
    return load_original(scene) if isinstance(scene, Original) else load_scene(scene)
