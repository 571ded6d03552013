# SPDX-License-Identifier: Apache-2.0
"""The world of FrankaKitchen-v1 as Gymnasium-Robotics describes it, and its physics in batches."""

from __future__ import annotations

import contextlib
import functools
import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from adahi_lab.tasks.offscreen import choose_renderer

choose_renderer()

import mujoco  # noqa: E402
from mujoco import rollout  # noqa: E402

ARM_JOINTS = 7
ROBOT_JOINTS = 9  # the arm's and two fingers'; the robot's come first among all joints
FULL_PHYSICS = mujoco.mjtState.mjSTATE_FULLPHYSICS.value
CONTROL = mujoco.mjtState.mjSTATE_CTRL.value


@dataclass(frozen=True)
class KitchenWorld:
    """Model, limits, noise and goals, as Gymnasium-Robotics has them.

    Positions (Q = 30) and velocities (V = 29) are in the model's order: the robot, burners, light
    switch, slide cabinet, hinge cabinet, microwave, and the kettle's pose.

    Attributes:
        model: the physics; shared, so it must not be changed.
        substeps: physics steps per control step.
        period_s: a control step's length.
        start: (Q,) positions at the start.
        position_limits: (9, 2) that a commanded position of the robot's joints is clipped to, rad or m.
        velocity_limits: (9, 2) that a commanded velocity is clipped to, rad/s or m/s.
        action_limit: (9,) velocity that a normalised action of 1 stands for, rad/s or m/s.
        position_noise: (Q,) largest error of an observed position.
        velocity_noise: (V,) largest error of an observed velocity.
        goal_indices: sub-task to the positions it is about, in this order.
        goals: sub-task to what these positions should be.
        tolerance: a sub-task is fulfilled within this distance (L2) of its goal.
        max_steps: an episode's length at most.
        camera: attributes of the camera that looks at it.
    """

    model: mujoco.MjModel
    substeps: int
    period_s: float
    start: np.ndarray
    position_limits: np.ndarray
    velocity_limits: np.ndarray
    action_limit: np.ndarray
    position_noise: np.ndarray
    velocity_noise: np.ndarray
    goal_indices: dict[str, np.ndarray]
    goals: dict[str, np.ndarray]
    tolerance: float
    max_steps: int
    camera: dict[str, Any]

    def distances(self, positions: np.ndarray) -> np.ndarray:
        """Return the distance of each sub-task from its goal, (E, P), for positions (E, Q)."""
        return np.stack(
            [
                np.linalg.norm(positions[:, indices] - self.goals[name], axis=1)
                for name, indices in self.goal_indices.items()
            ],
            axis=1,
        )


@functools.lru_cache(maxsize=1)
def load_world(subtasks: tuple[str, ...]) -> KitchenWorld:
    """Read the world from the installed Gymnasium-Robotics, with these sub-tasks."""
    with contextlib.redirect_stderr(io.StringIO()):  # suppresses its announcements
        import gymnasium
        from gymnasium_robotics.envs.franka_kitchen import franka_env, kitchen_env
    library = kitchen_env.KitchenEnv(tasks_to_complete=list(subtasks))
    robot, robots = library.robot_env, slice(0, ROBOT_JOINTS)
    position_noise = np.empty(robot.model.nq)
    position_noise[robots] = robot.robot_noise_ratio * robot.robot_pos_noise_amp[robots]
    # For the objects' positions, of which there is one more than velocities, the library's amplitudes
    # begin with the last finger's.
    position_noise[ROBOT_JOINTS:] = library.object_noise_ratio * robot.robot_pos_noise_amp[ROBOT_JOINTS - 1 :]
    velocity_noise = library.object_noise_ratio * robot.robot_vel_noise_amp
    velocity_noise[robots] = robot.robot_noise_ratio * robot.robot_vel_noise_amp[robots]
    max_steps = gymnasium.spec("FrankaKitchen-v1").max_episode_steps
    assert max_steps is not None
    return KitchenWorld(
        model=robot.model,
        substeps=robot.frame_skip,
        period_s=robot.dt,
        start=robot.init_qpos.copy(),
        position_limits=robot.robot_pos_bound[robots],
        velocity_limits=robot.robot_vel_bound[robots],
        action_limit=robot.act_mid + robot.act_rng,
        position_noise=position_noise,
        velocity_noise=velocity_noise,
        goal_indices={name: kitchen_env.OBS_ELEMENT_INDICES[name] for name in subtasks},
        goals={name: kitchen_env.OBS_ELEMENT_GOALS[name] for name in subtasks},
        tolerance=kitchen_env.BONUS_THRESH,
        max_steps=max_steps,
        camera=franka_env.DEFAULT_CAMERA_CONFIG,
    )


class KitchenPhysics:
    """Steps many kitchens' full physics states, (E, D), with one model.

    Args:
        world: the kitchen.
    """

    def __init__(self, world: KitchenWorld) -> None:
        self._world = world
        model = world.model
        # The state begins with the time; the model has neither activations nor plugins.
        self._positions = slice(1, 1 + model.nq)
        self._velocities = slice(1 + model.nq, 1 + model.nq + model.nv)
        self._data = mujoco.MjData(model)
        self._rollout = rollout.Rollout(nthread=0)

    def at_rest(self, positions: np.ndarray) -> np.ndarray:
        """Return the states of kitchens at rest, (E, D), with these positions, (E, Q)."""
        states = np.zeros((len(positions), mujoco.mj_stateSize(self._world.model, FULL_PHYSICS)))
        states[:, self._positions] = positions
        return states

    def positions(self, states: np.ndarray) -> np.ndarray:
        """Return a view of the states' positions, (E, Q)."""
        return states[:, self._positions]

    def velocities(self, states: np.ndarray) -> np.ndarray:
        """Return a view of the states' velocities, (E, V)."""
        return states[:, self._velocities]

    def advance(self, before: np.ndarray, command: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Simulate one control period with (E, 9) commanded positions of the robot's joints.

        The solver has no warm start across control periods; otherwise an episode's state would have to
        include it.

        Returns:
            the states after it, (E, D), and which of them diverged, (E,) bool; these are as before.
        """
        world = self._world
        trace = np.empty((len(before), world.substeps, before.shape[1]))
        self._rollout.rollout(
            [world.model] * len(before),
            [self._data],
            np.ascontiguousarray(before),
            np.repeat(command[:, None], world.substeps, axis=1),
            control_spec=CONTROL,
            skip_checks=True,
            nstep=world.substeps,
            state=trace,
        )
        after = trace[:, -1]
        # MuJoCo resets a kitchen that diverges, its time too, and rolls it out no further.
        late = np.abs(after[:, 0] - before[:, 0] - world.period_s) > 0.5 * world.model.opt.timestep
        diverged: np.ndarray = late | ~np.isfinite(after).all(axis=1)
        return np.where(diverged[:, None], before, after), diverged


def position_names(model: mujoco.MjModel) -> tuple[str, ...]:
    """Name every position of a model, with units."""
    pose = [*(f"{axis}_m" for axis in "xyz"), *(f"q{part}" for part in "wxyz")]
    return _entry_names(model, pose, "{unit}")


def velocity_names(model: mujoco.MjModel) -> tuple[str, ...]:
    """Name every velocity of a model, with units."""
    twist = [*(f"v{axis}_m_s" for axis in "xyz"), *(f"w{axis}_rad_s" for axis in "xyz")]
    return _entry_names(model, twist, "velocity_{unit}_s")


def _entry_names(model: mujoco.MjModel, free: list[str], other: str) -> tuple[str, ...]:
    """Name the entries of every joint: free, hinge or slide joints."""
    names: list[str] = []
    for joint, kind in zip(joint_names(model), model.jnt_type, strict=True):
        unit = "rad" if kind == mujoco.mjtJoint.mjJNT_HINGE else "m"
        entries = free if kind == mujoco.mjtJoint.mjJNT_FREE else [other.format(unit=unit)]
        names += [f"{joint}_{entry}" for entry in entries]
    return tuple(names)


def joint_names(model: mujoco.MjModel) -> tuple[str, ...]:
    """Name every joint of a model; the arm's as a real Panda's driver does."""
    names = (model.joint(index).name.removeprefix("robot:") for index in range(model.njnt))
    return tuple(name.replace("panda0_", "panda_", 1) for name in names)
