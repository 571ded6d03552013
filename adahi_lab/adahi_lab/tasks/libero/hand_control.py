# SPDX-License-Identifier: Apache-2.0
"""Operational space control of the arm's hand (Khatib, 1987), as LIBERO's robosuite 1.4 configures it."""

from __future__ import annotations

import numpy as np

from adahi_lab.tasks.mujoco_picture import mujoco

ARM = 7  # joints; they come first in the model, then two fingers
FINGERS = 2
FARTHEST_M = 0.05  # the hand's goal from where it is, of an action of 1
FARTHEST_RAD = 0.5
STIFFNESS = 150.0
DAMPING = 2.0 * np.sqrt(STIFFNESS)
POSTURE_STIFFNESS = 10.0  # of joint motions that do not move the hand
POSTURE_DAMPING = 2.0 * np.sqrt(POSTURE_STIFFNESS)
FINGER_SPEED = 0.01  # share of half the range, in a step of the physics
FINGER_SIGNS = np.array([-1.0, 1.0])
POSTURE_RAD = np.array([0.0, -0.161037389, 0.0, -2.44459747, 0.0, 2.2267522, np.pi / 4])
"""Where the arm starts, except for noise, and what it returns to where that does not move the hand."""


class HandControl:
    """Torques of the arm and positions of the fingers, for the state that is loaded.

    Args:
        model: the physics.
        data: its state; the caller has computed what depends on positions and velocities.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self._model, self._data = model, data
        self._site = model.site("gripper0_grip_site").id
        self._low, self._high = model.actuator_ctrlrange[:ARM].T.copy()
        fingers = model.actuator_ctrlrange[ARM : ARM + FINGERS]
        self._middle, self._half = fingers.mean(axis=1), (fingers[:, 1] - fingers[:, 0]) / 2.0
        self._jacobian = np.zeros((6, model.nv))
        self._masses = np.zeros((model.nv, model.nv))
        self._goal_m = np.zeros(3)
        self.direction = np.eye(3)
        self.fingers = np.zeros(FINGERS)

    def set_goal(self, action: np.ndarray, direction: np.ndarray, fingers: np.ndarray) -> None:
        """Begin a control step.

        Args:
            action: (7,) from -1 to 1: where the hand is to go, as shares of `FARTHEST_M` and `FARTHEST_RAD`
                (an axis times an angle), and the gripper, closing where it is positive.
            direction: (3, 3), the goal of the last step; it stays where the action does not turn the hand.
            fingers: (2,), what they were commanded, -1 to 1.
        """
        self._goal_m = self.hand_m + FARTHEST_M * action[:3]
        turned = FARTHEST_RAD * action[3:6]
        self.direction = _rotation(turned) @ self.hand_direction if np.any(turned) else direction
        self._closing = np.sign(action[6])
        self.fingers = fingers

    def apply(self) -> None:
        """Write the controls for the next step of the physics."""
        data, jacobian = self._data, self._jacobian
        mujoco.mj_jacSite(self._model, data, jacobian[:3], jacobian[3:], self._site)
        mujoco.mj_fullM(self._model, data, self._masses)
        hand, masses = jacobian[:, :ARM], self._masses[:ARM, :ARM]
        positions, velocities = data.qpos[:ARM], data.qvel[:ARM]
        moving = hand @ velocities
        wrench = np.empty(6)
        wrench[:3] = STIFFNESS * (self._goal_m - self.hand_m) - DAMPING * moving[:3]
        wrench[3:] = STIFFNESS * _between(self.hand_direction, self.direction) - DAMPING * moving[3:]
        freed = np.linalg.solve(masses, hand.T)  # (7, 6), accelerations of joints by a wrench
        mobility = hand @ freed
        wrench[:3] = np.linalg.solve(mobility[:3, :3], wrench[:3])
        wrench[3:] = np.linalg.solve(mobility[3:, 3:], wrench[3:])
        posture = masses @ (POSTURE_STIFFNESS * (POSTURE_RAD - positions) - POSTURE_DAMPING * velocities)
        unseen = posture - hand.T @ np.linalg.solve(mobility, freed.T @ posture)
        torques = hand.T @ wrench + unseen + data.qfrc_bias[:ARM]
        moved = self.fingers + FINGER_SIGNS * FINGER_SPEED * self._closing
        self.fingers = np.minimum(np.maximum(moved, -1.0), 1.0)
        data.ctrl[:ARM] = np.minimum(np.maximum(torques, self._low), self._high)
        data.ctrl[ARM : ARM + FINGERS] = self._middle + self._half * self.fingers

    @property
    def hand_m(self) -> np.ndarray:
        """(3,), the place between the fingertips, m."""
        place: np.ndarray = self._data.site_xpos[self._site]
        return place

    @property
    def hand_direction(self) -> np.ndarray:
        """(3, 3): its columns are the hand's axes; z is where the fingers point."""
        axes: np.ndarray = self._data.site_xmat[self._site].reshape(3, 3)
        return axes


def _between(current: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Return the axis from one direction to another, (3,), times the sine of the angle."""
    turn = goal @ current.T
    return 0.5 * np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])


def _rotation(turned: np.ndarray) -> np.ndarray:
    """Return the matrix (3, 3) of an axis times an angle (rad); in single precision, as robosuite has it."""
    angle = np.sqrt(turned @ turned)
    quaternion = np.append(np.cos(angle / 2.0), turned / angle * np.sin(angle / 2.0)).astype(np.float32)
    scale = np.sqrt(2.0 / np.float64(quaternion @ quaternion))
    quaternion = (scale * quaternion).astype(np.float32)
    (_, wx, wy, wz), (_, xx, xy, xz), (_, _, yy, yz), (_, _, _, zz) = np.outer(quaternion, quaternion)
    matrix = np.array([[0.0, xy - wz, xz + wy], [xy + wz, 0.0, yz - wx], [xz - wy, yz + wx, 0.0]])
    squares = np.array([[yy, zz], [xx, zz], [xx, yy]], dtype=np.float64)
    return matrix + np.diag(1.0 - squares[:, 0] - squares[:, 1])
