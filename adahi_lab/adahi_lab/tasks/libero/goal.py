# SPDX-License-Identifier: Apache-2.0
"""LIBERO-Goal as a task: ten instructions on one table, which nothing on the table shows.

Only the target receives the instruction, as fixed word vectors (`instructions.py`), not by a text encoder.
As in the benchmark, nothing that a robot does fails an episode; it only costs steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adahi_lab.tasks.instructions import INSTRUCTION_DIM, embedded
from adahi_lab.tasks.libero.hand_control import ARM, POSTURE_RAD
from adahi_lab.tasks.libero.scene_files import SUITE, Errand
from adahi_lab.tasks.libero.world import (
    OPEN_M,
    PERIOD_S,
    ROBOT,
    LiberoWorld,
    Placed,
    load_world,
    state_names,
)
from adahi_lab.tasks.portable import UNIFORMS_PER_DRAW, bell_noise
from adahi_lab.tasks.task_interface import SimulatedTask, TaskSpec, checked_action
from adahi_ros.core.randomness import EpisodeStreams

ARM_NOISE_RAD = 0.02  # standard deviation at the start, as in the library
SETTLING_STEPS = 10  # in which things fall onto the table, as evaluations of papers do it
STILL = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0])
LONGEST = 300  # steps, as in papers
ACTIONS = ("hand_x", "hand_y", "hand_z", "hand_turn_x", "hand_turn_y", "hand_turn_z", "gripper")


class LiberoGoal(SimulatedTask):
    """E tables side by side. Implements `adahi_lab.tasks.task_interface.Task`.

    Joints: the arm's seven (rad) and two fingers (m). State: place and direction of the hand and of four
    things, three drawers (m), the stove's knob (rad), where the furniture stands, and how near the hand is to
    where it grips (`grip_points.py`). Directions are x and z axes. Goal, for the target alone: the
    instruction as a vector. Action: the library's, from -1 to 1. It is how far the hand is to go (of 0.05 m)
    and to turn (of 0.5 rad), and the gripper, closing where positive. Episodes start within the benchmark's
    regions, never in its own 50 states per task. Episode n is of task n modulo 10.

    Raises:
        ValueError: the scene has not been converted; the message has the command.
    """

    suite = SUITE

    def __init__(self) -> None:
        self.world: LiberoWorld = load_world(self.suite)
        limit = np.ones(len(ACTIONS))
        joints = [self.world.model.joint(number).name for number in range(ROBOT)]
        self.spec = TaskSpec(
            name="libero_goal",
            joint_names=tuple(joints),
            state_names=state_names(self.world.scene),
            frame_id="world",
            goal_dim=INSTRUCTION_DIM,
            action_names=tuple(f"{name}_command" for name in ACTIONS),
            action_low=-limit,
            action_high=limit,
            control_rate_hz=1.0 / PERIOD_S,
            max_steps=LONGEST,
            success_text="the library's criterion of the instruction",
            subtask_names=("what was asked for",),
            command_field="velocities",
            command_names=ACTIONS,
            goal_for_target=True,
        )
        self.reset(0, [0])

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers; E is how many there are."""
        errands, scene = self.world.scene.errands, self.world.scene
        self._drawn = [errands[number % len(errands)] for number in episodes]
        positions = self._starts(seed, episodes)
        draws = EpisodeStreams(seed, "libero_goal/fixtures", episodes, 2 * len(scene.fixtures)).next()
        draws = draws.reshape(len(episodes), -1, 2)
        self._begin(len(episodes))
        self._kept: list[Placed] = []
        self._observed = np.zeros((len(episodes), self.spec.observation_dim))
        self._velocities = np.zeros((len(episodes), ROBOT))
        self._met = np.zeros(len(episodes), dtype=bool)
        for row in range(len(episodes)):
            low, high = _corners(self._drawn[row])
            kept = self.world.start(positions[row], low + draws[row] * (high - low))
            for _ in range(SETTLING_STEPS):
                kept = self.world.step(kept, STILL)
            self._kept.append(kept)
            self._store_observation(row)

    def _starts(self, seed: int, episodes: Sequence[int]) -> np.ndarray:
        """Draw the positions of all joints, (E, Q): the arm with noise, each thing within its region."""
        scene, count = self.world.scene, len(episodes)
        arm = bell_noise(EpisodeStreams(seed, "libero_goal/arm", episodes, ARM * UNIFORMS_PER_DRAW).next())
        draws = EpisodeStreams(seed, "libero_goal/things", episodes, 2 * len(scene.things)).next()
        positions = np.tile(self.world.model.qpos0, (count, 1))
        positions[:, :ARM] = POSTURE_RAD + ARM_NOISE_RAD * arm
        positions[:, ARM:ROBOT] = OPEN_M
        for number, (thing, at) in enumerate(
            zip(scene.things, draws.reshape(count, -1, 2).swapaxes(0, 1), strict=True)
        ):
            pose = np.tile(thing.pose, (count, 1))
            pose[:, :2] = thing.low + at * (thing.high - thing.low)
            first = ROBOT + len(thing.pose) * number
            positions[:, first : first + len(thing.pose)] = pose
        return positions

    def swap_goals(self, seed: int, episodes: Sequence[int]) -> None:
        """Replace each instruction by another one, drawn for other episodes with these numbers.

        Only what is done afterwards counts.
        """
        draws = EpisodeStreams(seed, "libero_goal/swap", episodes, 1).next()[:, 0]
        for row, errand in enumerate(self._drawn):
            others = [other for other in self.world.scene.errands if other is not errand]
            self._drawn[row] = others[int(draws[row] * len(others))]
        self._success[:] = False

    @property
    def joint_positions(self) -> np.ndarray:
        """(E, 9) float64, rad and m."""
        return self._observed[:, :ROBOT].copy()

    @property
    def joint_velocities(self) -> np.ndarray:
        """(E, 9) float64, rad/s and m/s."""
        return self._velocities.copy()

    @property
    def state(self) -> np.ndarray:
        """(E, S) float64; see the class."""
        return self._observed[:, ROBOT:].copy()

    @property
    def goal(self) -> np.ndarray:
        """(E, 32) float64, the instruction's vector."""
        return np.stack([embedded(errand.sentence) for errand in self._drawn])

    @property
    def errands(self) -> tuple[Errand, ...]:
        """The task of each of the E episodes."""
        return tuple(self._drawn)

    @property
    def fulfilled(self) -> np.ndarray:
        """(E, 1) bool: the criterion is met now."""
        return self._met[:, None].copy()

    def step(self, action: np.ndarray) -> None:
        """Advance every episode that is not done by one control period.

        Args:
            action: (E, 7), clipped to -1 to 1.

        Raises:
            ValueError: wrong shape, or not finite.
        """
        action = checked_action(self.spec, len(self._steps), action)
        for row in np.flatnonzero(~self.done).tolist():
            self._kept[row] = self.world.step(self._kept[row], action[row])
            self._steps[row] += 1
            self._store_observation(row)
            self._success[row] |= self._met[row]

    def _store_observation(self, row: int) -> None:
        """Store the observation of the episode that was stepped last."""
        self._observed[row, :ROBOT] = self.world.data.qpos[:ROBOT]
        self._velocities[row] = self.world.data.qvel[:ROBOT]
        self._observed[row, ROBOT:] = self.world.observed_state()
        self._met[row] = self.world.holds(self._drawn[row])


class LiberoGoalStates(LiberoGoal):
    """The same from the benchmark's own states, for evaluation alone.

    Episode n starts task n modulo 10 in its state n / 10 modulo 50, so that 500 episodes have each once.
    Where the furniture stands depends on the seed; the library draws it, too.
    """

    def _starts(self, seed: int, episodes: Sequence[int]) -> np.ndarray:
        starts = self.world.scene.starts
        tasks, states = len(starts), starts.shape[1]
        positions: np.ndarray = np.stack(
            [starts[number % tasks, number // tasks % states] for number in episodes]
        )
        return positions


def _corners(errand: Errand) -> tuple[np.ndarray, np.ndarray]:
    """Return where furniture may stand, (F, 2) m each: lowest and highest."""
    return np.stack([one.low for one in errand.fixtures]), np.stack([one.high for one in errand.fixtures])
