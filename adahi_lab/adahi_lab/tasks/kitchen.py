# SPDX-License-Identifier: Apache-2.0
"""The Franka kitchen: open a microwave, move a kettle, switch a light on and open a cabinet.

The world is FrankaKitchen-v1 of Gymnasium-Robotics (Gupta et al., Relay Policy Learning, CoRL 2019): its
model, control, limits, observation noise, goals and tolerance. It is stepped here in batches by
`mujoco.rollout`, five times as fast as the library does it, and starts from places drawn per episode, because
memorised actions would succeed from the library's single start.

Actions are joint velocities in SI units, twice the library's normalised actions. As in the library,
the position controllers' set point is the last *observed* position, including noise, plus the velocity times
the control period.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adahi_lab.tasks.kitchen_world import (
    ARM_JOINTS,
    ROBOT_JOINTS,
    KitchenPhysics,
    KitchenWorld,
    joint_names,
    load_world,
    position_names,
    velocity_names,
)
from adahi_lab.tasks.task_interface import SimulatedTask, TaskSpec, checked_action
from adahi_ros.core.randomness import EpisodeStreams

SUBTASKS = ("microwave", "kettle", "light switch", "slide cabinet")
ARM_START_NOISE_RAD = 0.1
KETTLE_START_NOISE_M = 0.02


class Kitchen(SimulatedTask):
    """E kitchens side by side. Implements `adahi_lab.tasks.task_interface.Task`.

    Joints: the arm's seven (rad) and two fingers (m). State: their velocities, then the positions of
    what is in the kitchen and their velocities. Action: joint velocities (rad/s, m/s). The light's
    positions are those of its switch and of its lamp, the kettle's a pose with the quaternion's scalar
    first. A finished episode stands still; it has failed if its physics diverge.

    Args:
        world: default: FrankaKitchen-v1's, with the sub-tasks `SUBTASKS`.
    """

    def __init__(self, world: KitchenWorld | None = None) -> None:
        self.world = world or load_world(SUBTASKS)
        self._physics = KitchenPhysics(self.world)
        model = self.world.model
        robot, positions, velocities = slice(0, ROBOT_JOINTS), position_names(model), velocity_names(model)
        self.spec = TaskSpec(
            name="kitchen",
            joint_names=joint_names(model)[robot],
            state_names=velocities[robot] + positions[ROBOT_JOINTS:] + velocities[ROBOT_JOINTS:],
            frame_id="world",
            goal_dim=0,
            action_names=tuple(
                name.replace("_velocity_", "_velocity_command_") for name in velocities[robot]
            ),
            action_low=-self.world.action_limit,
            action_high=self.world.action_limit,
            control_rate_hz=1.0 / self.world.period_s,
            max_steps=self.world.max_steps,
            success_text=f"{', '.join(SUBTASKS)}: each once within {self.world.tolerance:g} "
            "(L2 over its joints, rad and m) of its goal",
            subtask_names=SUBTASKS,
            command_field="velocities",
        )
        self.reset(0, [0])

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers; E is how many there are.

        The arm's joints start within 0.1 rad of the library's start, the kettle within 2 cm in x and y.
        """
        world, count = self.world, len(episodes)
        draws = 2.0 * EpisodeStreams(seed, "kitchen/reset", episodes, ARM_JOINTS + 2).next() - 1.0
        positions = np.tile(world.start, (count, 1))
        positions[:, :ARM_JOINTS] += ARM_START_NOISE_RAD * draws[:, :ARM_JOINTS]
        low, high = world.model.jnt_range[:ROBOT_JOINTS].T
        positions[:, :ROBOT_JOINTS] = np.clip(positions[:, :ROBOT_JOINTS], low, high)
        kettle = world.goal_indices["kettle"]
        positions[:, kettle[:2]] += KETTLE_START_NOISE_M * draws[:, ARM_JOINTS:]
        self._states = self._physics.at_rest(positions)
        self._begin(count)
        self._completed = np.zeros((count, len(SUBTASKS)), dtype=bool)
        width = world.model.nq + world.model.nv
        self._noise = EpisodeStreams(seed, "kitchen/observation", episodes, width)
        self._observed = np.zeros((count, width))
        self._observe(np.ones(count, dtype=bool))

    @property
    def joint_positions(self) -> np.ndarray:
        """(E, 9) float64, as observed, rad and m."""
        return self._observed[:, :ROBOT_JOINTS].copy()

    @property
    def joint_velocities(self) -> np.ndarray:
        """(E, 9) float64, as observed, rad/s and m/s."""
        return self._observed[:, ROBOT_JOINTS : 2 * ROBOT_JOINTS].copy()

    @property
    def state(self) -> np.ndarray:
        """(E, 50) float64, as observed: the robot's velocities, the objects' positions and velocities."""
        return self._observed[:, ROBOT_JOINTS:].copy()

    @property
    def goal(self) -> np.ndarray:
        """(E, 0) float64: every episode has the same goal."""
        return np.zeros((len(self._observed), 0))

    @property
    def true_positions(self) -> np.ndarray:
        """(E, 30) float64, all positions in the model's order, without noise."""
        return self._physics.positions(self._states).copy()

    @property
    def completed(self) -> np.ndarray:
        """(E, 4) bool, latched: which sub-tasks have been completed."""
        return self._completed.copy()

    @property
    def fulfilled(self) -> np.ndarray:
        """(E, 4) bool: which sub-tasks are within the tolerance of their goals now."""
        return self._in_place()

    @property
    def success(self) -> np.ndarray:
        """(E,) bool, latched."""
        success: np.ndarray = np.all(self._completed, axis=1)
        return success

    def step(self, action: np.ndarray) -> None:
        """Advance every episode that is not done by one control period.

        Args:
            action: (E, 9), joint velocities, rad/s and m/s, clipped to +-2.

        Raises:
            ValueError: wrong shape, or not finite.
        """
        world, velocity = self.world, checked_action(self.spec, len(self._observed), action)
        active = ~self.done
        command = np.clip(velocity, *world.velocity_limits.T) * world.period_s
        command = np.clip(self._observed[:, :ROBOT_JOINTS] + command, *world.position_limits.T)
        if active.any():
            self._states[active], diverged = self._physics.advance(self._states[active], command[active])
            self._failed[active] |= diverged
        self._steps += active
        self._observe(active)
        self._completed |= active[:, None] & self._in_place()

    def _in_place(self) -> np.ndarray:
        distances = self.world.distances(self._physics.positions(self._states))
        in_place: np.ndarray = distances < self.world.tolerance
        return in_place

    def _observe(self, active: np.ndarray) -> None:
        """Observe the active episodes, (E,) bool; the others keep their observations."""
        world, nq = self.world, self.world.model.nq
        noise = 2.0 * self._noise.next() - 1.0
        positions = self._physics.positions(self._states) + world.position_noise * noise[:, :nq]
        velocities = self._physics.velocities(self._states) + world.velocity_noise * noise[:, nq:]
        parts = [
            positions[:, :ROBOT_JOINTS],
            velocities[:, :ROBOT_JOINTS],
            positions[:, ROBOT_JOINTS:],
            velocities[:, ROBOT_JOINTS:],
        ]
        self._observed = np.where(active[:, None], np.concatenate(parts, axis=1), self._observed)
