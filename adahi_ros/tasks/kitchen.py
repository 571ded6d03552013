"""The Franka kitchen: open a microwave, move a kettle, switch a light on and open a cabinet.

The world is FrankaKitchen-v1 of Gymnasium-Robotics (Gupta et al., Relay Policy Learning, CoRL 2019):
its model, control, limits, observation noise, goals and tolerance. It is stepped here in batches by
`mujoco.rollout`, five times as fast as the library does it, and starts from places drawn per episode:
from the library's one start, memorised actions would do.

Actions are joint velocities in SI units, twice the library's normalised actions. As in the library,
the robot's position controllers are told the position *observed* last, noise and all, plus the
velocity times the control period.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from adahi_ros.randomness import EpisodeStreams
from adahi_ros.tasks.base import TaskSpec
from adahi_ros.tasks.kitchen_world import ARM_JOINTS, ROBOT_JOINTS, KitchenWorld, load_world

import mujoco  # isort: skip (kitchen_world says first what draws pictures)
from mujoco import rollout  # isort: skip

if TYPE_CHECKING:
    from adahi_ros.tasks.kitchen_render import KitchenPainter

SUBTASKS = ("microwave", "kettle", "light switch", "slide cabinet")
ARM_START_NOISE_RAD = 0.1
KETTLE_START_NOISE_M = 0.02
FULL_PHYSICS = mujoco.mjtState.mjSTATE_FULLPHYSICS.value
CONTROL = mujoco.mjtState.mjSTATE_CTRL.value


class Kitchen:
    """E kitchens side by side. Implements `adahi_ros.tasks.base.Task`.

    Joints: the arm's seven (rad) and two fingers (m). State: their velocities, then the positions of
    what is in the kitchen and their velocities. Action: joint velocities (rad/s, m/s). The light's
    positions are those of its switch and of its lamp, the kettle's a pose with the quaternion's scalar
    first. An episode that is done stands still from then on; one whose physics diverge has failed.

    Args:
        world: default: FrankaKitchen-v1's, with the sub-tasks `SUBTASKS`.
    """

    def __init__(self, world: KitchenWorld | None = None) -> None:
        self.world = world or load_world(SUBTASKS)
        model = self.world.model
        self._positions = slice(1, 1 + model.nq)  # in the full physics state, which begins with the time
        self._velocities = slice(1 + model.nq, 1 + model.nq + model.nv)
        self._data = mujoco.MjData(model)
        self._rollout = rollout.Rollout(nthread=0)
        self._painter: KitchenPainter | None = None
        position_names, velocity_names = _names(model)
        joints = tuple(name.rpartition("_")[0] for name in position_names[:ROBOT_JOINTS])
        self.spec = TaskSpec(
            name="kitchen",
            joint_names=joints,
            state_names=(
                *velocity_names[:ROBOT_JOINTS],
                *position_names[ROBOT_JOINTS:],
                *velocity_names[ROBOT_JOINTS:],
            ),
            frame_id="world",
            goal_dim=0,
            action_names=tuple(
                f"{joint}_velocity_command_{'rad' if index < ARM_JOINTS else 'm'}_s"
                for index, joint in enumerate(joints)
            ),
            action_low=-self.world.action_limit,
            action_high=self.world.action_limit,
            control_rate_hz=1.0 / self.world.period_s,
            max_steps=self.world.max_steps,
            success_text=f"{', '.join(SUBTASKS)}: each once within {self.world.tolerance:g} "
            "(L2 over its joints, rad and m) of its goal",
            subtask_names=SUBTASKS,
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
        self._physics = np.zeros((count, mujoco.mj_stateSize(world.model, FULL_PHYSICS)))
        self._physics[:, self._positions] = positions
        self._steps = np.zeros(count, dtype=np.int64)
        self._failed = np.zeros(count, dtype=bool)
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
        """(E, 0) float64: every episode wants the same."""
        return np.zeros((len(self._observed), 0))

    @property
    def observation(self) -> np.ndarray:
        """(E, 59) float32, in the library's order: joint positions, then state."""
        return self._observed.astype(np.float32)

    @property
    def true_positions(self) -> np.ndarray:
        """(E, 30) float64, all positions in the model's order, without noise."""
        return self._physics[:, self._positions].copy()

    @property
    def completed(self) -> np.ndarray:
        """(E, 4) bool, latched: which sub-tasks have been completed."""
        return self._completed.copy()

    @property
    def fulfilled(self) -> np.ndarray:
        """(E, 4) bool: which sub-tasks are within the tolerance of their goals now."""
        distances = self.world.distances(self._physics[:, self._positions])
        fulfilled: np.ndarray = distances < self.world.tolerance
        return fulfilled

    @property
    def success(self) -> np.ndarray:
        """(E,) bool, latched."""
        success: np.ndarray = self._completed.all(axis=1)
        return success

    @property
    def failed(self) -> np.ndarray:
        """(E,) bool, latched: the physics diverged."""
        return self._failed.copy()

    @property
    def done(self) -> np.ndarray:
        """(E,) bool: succeeded, diverged, or out of steps."""
        done: np.ndarray = self.success | self._failed | (self._steps >= self.spec.max_steps)
        return done

    def step(self, action: np.ndarray) -> None:
        """Advance every episode that is not done by one control period.

        Args:
            action: (E, 9), joint velocities, rad/s and m/s, clipped to +-2.

        Raises:
            ValueError: wrong shape, or not finite.
        """
        world, velocity = self.world, self._checked(action)
        active = ~self.done
        command = np.clip(velocity, *world.velocity_limits.T) * world.period_s
        command = np.clip(self._observed[:, :ROBOT_JOINTS] + command, *world.position_limits.T)
        if active.any():
            self._advance(command, active)
        self._steps += active
        self._observe(active)
        self._completed |= active[:, None] & self.fulfilled

    def render(self, index: int = 0) -> np.ndarray:
        """Return a picture of one episode for people, (480, 640, 3) uint8.

        Raises:
            IndexError: no such episode.
            RuntimeError: there is no OpenGL to draw with.
        """
        from adahi_ros.tasks import kitchen_render  # most kitchens are never drawn

        scene = kitchen_render.KitchenScene(
            positions=self._physics[index, self._positions],
            step=int(self._steps[index]),
            completed={name: bool(self._completed[index, i]) for i, name in enumerate(SUBTASKS)},
            failed=bool(self._failed[index]),
        )
        if self._painter is None:
            self._painter = kitchen_render.KitchenPainter(self.world)
        return self._painter.draw(scene)

    def _checked(self, action: np.ndarray) -> np.ndarray:
        action = np.asarray(action, dtype=np.float64)
        expected = (len(self._observed), ROBOT_JOINTS)
        if action.shape != expected:
            raise ValueError(f"action: shape {action.shape}, expected {expected}")
        if not np.all(np.isfinite(action)):
            row, column = np.argwhere(~np.isfinite(action))[0]
            name = self.spec.action_names[column]
            raise ValueError(f"action: {name} is {action[row, column]} at row {row}, expected finite numbers")
        return np.clip(action, self.spec.action_low, self.spec.action_high)

    def _advance(self, command: np.ndarray, active: np.ndarray) -> None:
        """Simulate one control period of the active episodes, (E,) bool.

        The solver starts anew in every control period: what warm starts remember of one episode
        would otherwise have to be kept apart from what they remember of the others.
        """
        world, before = self.world, self._physics[active]
        control = np.repeat(command[active, None], world.substeps, axis=1)
        trace = np.empty((len(before), world.substeps, before.shape[1]))
        self._rollout.rollout(
            [world.model] * len(before),
            [self._data],
            before,
            control,
            control_spec=CONTROL,
            skip_checks=True,
            nstep=world.substeps,
            state=trace,
        )
        after = trace[:, -1]
        # MuJoCo resets an episode that diverges, its time too, and rolls it out no further.
        late = np.abs(after[:, 0] - before[:, 0] - world.period_s) > 0.5 * world.model.opt.timestep
        diverged = late | ~np.isfinite(after).all(axis=1)
        self._physics[active] = np.where(diverged[:, None], before, after)
        self._failed[active] |= diverged

    def _observe(self, active: np.ndarray) -> None:
        """Look at the active episodes, (E,) bool; the others still look as they did."""
        world, nq = self.world, self.world.model.nq
        noise = 2.0 * self._noise.next() - 1.0
        positions = self._physics[:, self._positions] + world.position_noise * noise[:, :nq]
        velocities = self._physics[:, self._velocities] + world.velocity_noise * noise[:, nq:]
        parts = [
            positions[:, :ROBOT_JOINTS],
            velocities[:, :ROBOT_JOINTS],
            positions[:, ROBOT_JOINTS:],
            velocities[:, ROBOT_JOINTS:],
        ]
        self._observed = np.where(active[:, None], np.concatenate(parts, axis=1), self._observed)


def _names(model: mujoco.MjModel) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name every position and every velocity of a model, with units."""
    positions: list[str] = []
    velocities: list[str] = []
    for index in range(model.njnt):
        joint, kind = model.joint(index).name.removeprefix("robot:"), model.jnt_type[index]
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            positions += [f"{joint}_{axis}_m" for axis in "xyz"] + [f"{joint}_q{part}" for part in "wxyz"]
            velocities += [f"{joint}_v{axis}_m_s" for axis in "xyz"]
            velocities += [f"{joint}_w{axis}_rad_s" for axis in "xyz"]
        else:
            unit = "rad" if kind == mujoco.mjtJoint.mjJNT_HINGE else "m"
            positions.append(f"{joint}_{unit}")
            velocities.append(f"{joint}_velocity_{unit}_s")
    return tuple(positions), tuple(velocities)
