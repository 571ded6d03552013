"""The world of FrankaKitchen-v1: what Gymnasium-Robotics says about it, loaded once per process."""

from __future__ import annotations

import ctypes.util
import functools
import os
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

if sys.platform.startswith("linux"):
    # Pictures without a display. MuJoCo reads this when it is imported, and that fails if EGL is missing.
    os.environ.setdefault("MUJOCO_GL", "egl" if ctypes.util.find_library("EGL") else "disable")

import mujoco

ARM_JOINTS = 7
ROBOT_JOINTS = 9  # the arm's and two fingers'; the robot's come first among all joints


@dataclass(frozen=True)
class KitchenWorld:
    """Model, limits, noise and goals, as Gymnasium-Robotics has them.

    Positions (Q = 30) and velocities (V = 29) are in the model's order: the robot, burners, light
    switch, slide cabinet, hinge cabinet, microwave, and the kettle's pose.

    Attributes:
        model: the physics; shared, so nobody may change it.
        substeps: physics steps per control step.
        period_s: a control step's length.
        start: (Q,) positions at the start.
        position_limits: (9, 2) that a commanded position of the robot's joints is clipped to, rad or m.
        velocity_limits: (9, 2) that a commanded velocity is clipped to, rad/s or m/s.
        action_limit: (9,) largest velocity that a normalised action of the library's stands for.
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
        """Return how far each sub-task is from its goal, (E, P), for positions (E, Q)."""
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # news about its other environments
        import gymnasium
        from gymnasium_robotics.envs.franka_kitchen import franka_env, kitchen_env

        gymnasium.register_envs(kitchen_env)
        max_steps = gymnasium.spec("FrankaKitchen-v1").max_episode_steps
    library = kitchen_env.KitchenEnv(tasks_to_complete=list(subtasks))
    robot = library.robot_env
    positions, robot_only = robot.model.nq, slice(0, ROBOT_JOINTS)
    # The library noises the objects' positions with its amplitudes from the eighth on, one too early.
    position_noise = np.empty(positions)
    position_noise[robot_only] = robot.robot_noise_ratio * robot.robot_pos_noise_amp[robot_only]
    position_noise[ROBOT_JOINTS:] = library.object_noise_ratio * robot.robot_pos_noise_amp[ROBOT_JOINTS - 1 :]
    velocity_noise = library.object_noise_ratio * robot.robot_vel_noise_amp
    velocity_noise[robot_only] = robot.robot_noise_ratio * robot.robot_vel_noise_amp[robot_only]
    return KitchenWorld(
        model=robot.model,
        substeps=robot.frame_skip,
        period_s=robot.dt,
        start=robot.init_qpos.copy(),
        position_limits=robot.robot_pos_bound[robot_only],
        velocity_limits=robot.robot_vel_bound[robot_only],
        action_limit=robot.act_mid + robot.act_rng,
        position_noise=position_noise,
        velocity_noise=velocity_noise,
        goal_indices={name: kitchen_env.OBS_ELEMENT_INDICES[name] for name in subtasks},
        goals={name: kitchen_env.OBS_ELEMENT_GOALS[name] for name in subtasks},
        tolerance=kitchen_env.BONUS_THRESH,
        max_steps=max_steps,
        camera=franka_env.DEFAULT_CAMERA_CONFIG,
    )
