# SPDX-License-Identifier: Apache-2.0
"""Images of Meta-World's tables by two small cameras: one in the hand, and one that stands.

Both are in one frame, the hand's at the left, so they are sent as one JPEG. Without a graphics card,
triangles determine the time of a frame. So the arm's links are not drawn, and of the hand only the gripper.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from adahi_lab.tasks.camera import CameraExpert, SeenTask
from adahi_lab.tasks.metaworld_scenes import AXES
from adahi_lab.tasks.mujoco_picture import camera_at, mujoco, photographed
from adahi_lab.tasks.offscreen import make_renderer
from adahi_ros.vision.encoder import Encoder

SIDE = 64  # px, of each camera's picture
OWN_STATE = 4  # entries of the robot itself: the hand's place and the gripper
IN_HAND = "gripperPOV"  # of the library
STANDING = {"azimuth": 145.0, "elevation": -35.0, "distance": 0.85, "lookat": (0.0, 0.74, 0.11)}
QUALITY = {"offsamples": 0, "shadowsize": 0, "numslices": 10, "numstacks": 5, "numquads": 1}
NOT_DRAWN = ("pedestal", "torso", "controller_box", "pedestal_feet", "head", "screen", "right_hand")
LINKS = "right_arm", "right_l"


class MetaWorldView:
    """Renders tables. Implements `adahi_lab.tasks.camera.View`."""

    image_size = (SIDE, 2 * SIDE)
    label_names = tuple(f"{thing}_{axis}_m" for thing in ("part", "thing") for axis in AXES)

    def __init__(self) -> None:
        self._renderers: dict[str, _SmallRenderer] = {}

    def labels(self, task: Any) -> np.ndarray:
        """(E, 6) float64, where the moving part and the thing are, m."""
        labels: np.ndarray = task.state[:, OWN_STATE : OWN_STATE + len(self.label_names)]
        return labels

    def photograph(self, task: Any, rows: np.ndarray) -> np.ndarray:
        """Return the cameras' images of the episodes in these rows (N,): (N, 64, 128, 3) uint8.

        Raises:
            RuntimeError: there is no OpenGL to draw with.
        """
        drawn = []
        for row in rows.tolist():
            world, scene = task.loaded(row)
            if scene not in self._renderers:
                self._renderers[scene] = _SmallRenderer(world)
            drawn.append(self._renderers[scene].draw())
        return np.stack(drawn)


LABELLED = MetaWorldView()


class _SmallRenderer:
    """Draws what the world of a scene was loaded with."""

    def __init__(self, world: Any) -> None:
        self._world, model = world, copy.copy(world.model)
        for name, value in QUALITY.items():
            setattr(model.vis.quality, name, value)
        for geom in range(model.ngeom):
            body = model.body(model.geom_bodyid[geom]).name
            if body in NOT_DRAWN or body.startswith(LINKS):
                model.geom_rgba[geom, 3], model.geom_matid[geom] = 0.0, -1
        self._model, self._data = model, mujoco.MjData(model)
        self._options = mujoco.MjvOption()
        self._options.sitegroup[:] = 0  # hides the models' own marks
        hand = mujoco.MjvCamera()
        hand.type, hand.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, model.camera(IN_HAND).id
        self._cameras = hand, camera_at(STANDING)
        self._renderer: mujoco.Renderer = make_renderer(model, SIDE, SIDE, "metaworld")

    def draw(self) -> np.ndarray:
        data, world = self._data, self._world
        self._model.body_pos[:] = world.model.body_pos  # a thing's place is in the model
        data.qpos[:], data.mocap_pos[:], data.mocap_quat[:] = (
            *(world.data.qpos, world.data.mocap_pos),
            world.data.mocap_quat,
        )
        mujoco.mj_kinematics(self._model, data)
        mujoco.mj_comPos(self._model, data)
        mujoco.mj_camlight(self._model, data)
        seen = [photographed(self._renderer, data, each, self._options) for each in self._cameras]
        return np.concatenate(seen, axis=1)


class MetaWorldSeen(SeenTask):
    """Meta-World's shared scenes, where things are seen by cameras only, and by the target only.

    State: the hand's place and the gripper. Goal, for the target alone: as in `MetaWorld`.

    Attributes:
        pixels_for_target: its image features are pixels, from 0 to 255.
    """

    pixels_for_target = True

    def __init__(self, encoder: Encoder | None = None) -> None:
        super().__init__("metaworld_seen", "metaworld", encoder)
        spec = self.watched.spec
        self.spec = replace(
            self.spec, state_names=spec.state_names[:OWN_STATE], goal_dim=spec.goal_dim, goal_for_target=True
        )

    @property
    def state(self) -> np.ndarray:
        """(E, 4) float64: the hand's x, y, z (m), and how open the gripper is, from 0 to 1."""
        return self.watched.state[:, :OWN_STATE]

    @property
    def goal(self) -> np.ndarray:
        """(E, 35) float64, as in `MetaWorld`."""
        return self.watched.goal

    @property
    def labels(self) -> np.ndarray:
        """(E, 6) float64, what the cameras see, see `MetaWorldView.labels`; to learn beside the actions."""
        return LABELLED.labels(self.watched)


class MetaWorldSeenExpert(CameraExpert):
    """The expert of `MetaWorld`; it gets that task's state."""

    def __init__(self) -> None:
        super().__init__("metaworld")
