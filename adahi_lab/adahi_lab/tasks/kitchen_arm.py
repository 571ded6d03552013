# SPDX-License-Identifier: Apache-2.0
"""The kitchen's arm: kinematics from observations, and commands to move the hand."""

from __future__ import annotations

from dataclasses import dataclass, fields

import mujoco
import numpy as np

from adahi_lab.tasks.kitchen_world import ARM_JOINTS, ROBOT_JOINTS, KitchenWorld

TOOL_M = 0.235  # along the last link's z, between the fingertips
DAMPING = 0.05  # of the least squares
ROTATION_WEIGHT_M = 0.3  # metres of error that a radian of error counts as
REST_GAIN = 0.08  # share of the way to the rest pose that the null space takes per step
REACH_M = 0.10  # the hand aims no further ahead than this
TURN_RAD = 0.5  # largest turn ahead
STEP_RAD = 0.08  # a joint's way per control step when it goes to a posture
SOLUTIONS = 3  # of the least squares, each with the joints locked that the last one took to a limit
MARGIN_RAD = 0.01  # kept from the joints' limits


@dataclass(frozen=True)
class ArmView:
    """Inputs of the arm's controller for E kitchens, all in the world's frame.

    Attributes:
        joints: (E, 9) positions of the robot's joints, rad and m.
        tool: (E, 3) the point between the fingertips, m.
        rotation: (E, 3, 3) of the last link.
        jacobian: (E, 6, 7) of the tool, translation and then rotation.
        gravity: (E, 9) torques and forces that hold the robot, N m and N.
        handle: (E, 3) the microwave's handle, m.
        door: (E, 3) unit vector out of the microwave's door.
        light: (E, 3) the light's switch, m.
        slide: (E, 3) the slide cabinet's handle, m.
        kettle: (E, 3) the middle of the kettle's base, m.
    """

    joints: np.ndarray
    tool: np.ndarray
    rotation: np.ndarray
    jacobian: np.ndarray
    gravity: np.ndarray
    handle: np.ndarray
    door: np.ndarray
    light: np.ndarray
    slide: np.ndarray
    kettle: np.ndarray

    def __getitem__(self, rows: np.ndarray) -> ArmView:
        return ArmView(*(getattr(self, field.name)[rows] for field in fields(self)))


class KitchenArm:
    """Kinematics of the arm, and velocity commands for a motion.

    Args:
        world: the kitchen.
    """

    def __init__(self, world: KitchenWorld) -> None:
        self._world = world
        self.objects = world.model.nq - ROBOT_JOINTS
        model = self._model = world.model
        self._data = mujoco.MjData(model)
        self._link = model.body("panda0_link7").id
        self._door = model.body("microdoorroot").id
        self._kettle = model.body("kettle").id
        self._sites = [model.site(name).id for name in ("microhandle_site", "light_site", "slide_site")]
        self._low, self._high = model.jnt_range[:ARM_JOINTS].T + np.array([[MARGIN_RAD], [-MARGIN_RAD]])
        stiffness = model.actuator_gainprm[:ARM_JOINTS, 0]
        self._stiffness = stiffness
        # The joints' damping outweighs their inertia: a position controller closes this share of
        # what it is off within a control period.
        self._share = 1.0 - np.exp(-world.period_s * stiffness / model.dof_damping[:ARM_JOINTS])

    def view(self, positions: np.ndarray) -> ArmView:
        """Compute the view from all positions, (E, 30) in the model's order."""
        seen = (np.stack(column) for column in zip(*map(self._view_of_one, positions), strict=True))
        return ArmView(positions[:, :ROBOT_JOINTS], *seen)

    def _view_of_one(self, position: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the fields of an `ArmView` except joints for one kitchen, from all positions (30,)."""
        model, data = self._model, self._data
        jacobian, forces = np.empty((6, model.nv)), np.empty(model.nv)
        data.qpos[:] = position
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_rne(model, data, 0, forces)
        rotation = data.xmat[self._link].reshape(3, 3).copy()
        tool = data.xpos[self._link] + TOOL_M * rotation[:, 2]
        mujoco.mj_jac(model, data, jacobian[:3], jacobian[3:], tool, self._link)
        handle, light, slide = data.site_xpos[self._sites]
        door = -data.xmat[self._door].reshape(3, 3)[:, 1]
        kettle = data.xpos[self._kettle].copy()
        arm = tool, rotation, jacobian[:, :ARM_JOINTS], forces[:ROBOT_JOINTS]
        return (*arm, handle, door, light, slide, kettle)

    def towards_posture(self, view: ArmView, posture: np.ndarray) -> np.ndarray:
        """Return steps of the joints, (E, 7) rad, straight to a posture, (E, 7) rad."""
        step = np.clip(posture, self._low, self._high) - view.joints[:, :ARM_JOINTS]
        return _shortened(step, STEP_RAD, np.abs(step).max(axis=1))

    def towards_place(
        self, view: ArmView, point: np.ndarray, rotation: np.ndarray, posture: np.ndarray
    ) -> np.ndarray:
        """Return steps of the joints, (E, 7) rad, that take the tool to a place.

        Damped least squares (Wampler, IEEE Trans. SMC 1986). Joints that would pass a limit are locked, and
        the others solved for again.

        Args:
            view: of the kitchens.
            point: (E, 3) goal of the tool, m.
            rotation: (E, 3, 3) goal of the last link.
            posture: (E, 7) posture of the arm in the null space, rad.
        """
        ahead = _shortened(point - view.tool, REACH_M)
        turn = 0.5 * np.cross(view.rotation, rotation, axis=1).sum(axis=2)
        error = np.concatenate([ahead, ROTATION_WEIGHT_M * _shortened(turn, TURN_RAD)], axis=1)
        at = view.joints[:, :ARM_JOINTS]
        jacobian = view.jacobian.copy()
        jacobian[:, 3:] *= ROTATION_WEIGHT_M
        rest = REST_GAIN * (posture - at)
        free = np.ones_like(at, dtype=bool)
        for _ in range(SOLUTIONS):
            movable = jacobian * free[:, None]
            square = movable @ movable.transpose(0, 2, 1) + DAMPING**2 * np.eye(6)
            pull = free * rest
            left = error - (movable @ pull[:, :, None])[:, :, 0]
            solved = np.linalg.solve(square, left[:, :, None])
            step: np.ndarray = pull + (movable.transpose(0, 2, 1) @ solved)[:, :, 0]
            beyond = (at + step < self._low) & (step < 0.0) | (at + step > self._high) & (step > 0.0)
            free &= ~beyond
        return np.where(free, step, 0.0)

    def command(self, view: ArmView, step: np.ndarray, fingers: np.ndarray) -> np.ndarray:
        """Return the velocities to command, (E, 9) rad/s and m/s.

        The arm's are such that its joints make the steps under gravity; where the largest action
        does not do, all joints slow down together.

        Args:
            view: of the kitchens.
            step: (E, 7) steps of the joints, rad.
            fingers: (E,) velocity of both fingers, m/s, positive to open.
        """
        lead = step / self._share
        hold = view.gravity[:, :ARM_JOINTS] / self._stiffness
        most = self._world.action_limit[:ARM_JOINTS] * self._world.period_s
        room = np.maximum(most - np.sign(lead) * hold, 0.0)
        slower = np.min(room / np.maximum(np.abs(lead), room + 1e-9), axis=1, keepdims=True)
        arm = (slower * lead + hold) / self._world.period_s
        return np.concatenate([arm, fingers[:, None], fingers[:, None]], axis=1)


def _shortened(vectors: np.ndarray, longest: float, lengths: np.ndarray | None = None) -> np.ndarray:
    """(E, K) vectors, none longer than that; lengths are Euclidean unless given, (E,)."""
    lengths = np.linalg.norm(vectors, axis=1) if lengths is None else lengths
    return vectors * np.minimum(1.0, longest / np.maximum(lengths, 1e-9))[:, None]
