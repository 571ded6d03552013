# SPDX-License-Identifier: Apache-2.0
"""The physics of LIBERO's table, one episode at a time."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from adahi_lab.tasks.libero.conditions import Judge
from adahi_lab.tasks.libero.grip_points import GripPoints
from adahi_lab.tasks.libero.hand_control import ARM, FINGERS, POSTURE_RAD, HandControl
from adahi_lab.tasks.libero.scene_files import SUITE, Errand, LiberoScene, load_scene
from adahi_lab.tasks.mujoco_picture import mujoco

PERIOD_S = 0.05
ROBOT = ARM + FINGERS
OPEN_M = np.array([0.020833, -0.020833])  # fingers at the start
STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS.value | mujoco.mjtState.mjSTATE_WARMSTART.value
AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Placed:
    """An episode between two of its steps.

    Attributes:
        state: (D,), the simulator's.
        fixtures: (F, 2), where furniture stands, x and y in m; it is in the model, not in the state.
        direction: (3, 3), the goal of the hand's direction.
        fingers: (2,), what the fingers were commanded, -1 to 1.
    """

    state: np.ndarray
    fixtures: np.ndarray
    direction: np.ndarray
    fingers: np.ndarray


class LiberoWorld:
    """The scene's model, shared by episodes, which take turns.

    The rest of an episode is returned and passed in again as `Placed`.

    Args:
        scene: converted.

    Attributes:
        scene: the same.
        model, data: MuJoCo's; `data` is of the episode that was started, loaded or stepped last.
    """

    def __init__(self, scene: LiberoScene) -> None:
        self.scene, self.model = scene, scene.model
        self.data = mujoco.MjData(self.model)
        self._control = HandControl(self.model, self.data)
        self._substeps = round(PERIOD_S / self.model.opt.timestep)
        self._fixtures = [self.model.body(f"{name}_main").id for name in scene.fixtures]
        self._things = [self.model.body(f"{one.name}_main").id for one in scene.things]
        self._judges = {
            errand.name: [Judge(condition, self.model) for condition in errand.goal]
            for errand in scene.errands
        }
        self._points = GripPoints(_place_names(scene))
        positions = self.model.qpos0.copy()
        positions[:ARM] = POSTURE_RAD
        self.data.qpos[:] = positions
        mujoco.mj_kinematics(self.model, self.data)
        self._direction = self._control.hand_direction.copy()

    def start(self, positions: np.ndarray, fixtures: np.ndarray) -> Placed:
        """Begin an episode at rest; leave it loaded.

        Args:
            positions: (Q,) of all joints.
            fixtures: (F, 2), see `Placed`.
        """
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = positions
        return Placed(self._state(), fixtures, self._direction, np.zeros(FINGERS))

    def load(self, kept: Placed) -> None:
        """Load an episode, without what depends on its state."""
        self.model.body_pos[self._fixtures, :2] = kept.fixtures
        mujoco.mj_setState(self.model, self.data, kept.state, STATE)

    def step(self, kept: Placed, action: np.ndarray) -> Placed:
        """Simulate one control period of an episode; leave it loaded.

        Args:
            kept: the episode.
            action: (7,) from -1 to 1; see `HandControl.set_goal`.
        """
        self.load(kept)
        model, data, control = self.model, self.data, self._control
        for substep in range(self._substeps):
            mujoco.mj_step1(model, data)
            if not substep:
                control.set_goal(action, kept.direction, kept.fingers)
            control.apply()
            mujoco.mj_step2(model, data)
        return Placed(self._state(), kept.fixtures, control.direction.copy(), control.fingers)

    def holds(self, errand: Errand) -> bool:
        """Whether an errand's goal holds in the episode that was stepped last."""
        return all(judge.holds(self.data) for judge in self._judges[errand.name])

    def observed_state(self) -> np.ndarray:
        """Return the observed state of the episode that was stepped last, see `state_names`."""
        data, control = self.data, self._control
        parts = [control.hand_m, _two_axes(control.hand_direction)]
        for thing in self._things:
            parts += [data.xpos[thing], _two_axes(data.xmat[thing].reshape(3, 3))]
        joints = data.qpos[ROBOT + 7 * len(self._things) :]
        places = np.concatenate([*parts, joints, self.model.body_pos[self._fixtures, :2].ravel()])
        return np.concatenate([places, self._points.nearness(places)])

    def _state(self) -> np.ndarray:
        state = np.empty(mujoco.mj_stateSize(self.model, STATE))
        mujoco.mj_getState(self.model, self.data, state, STATE)
        return state


def state_names(scene: LiberoScene) -> tuple[str, ...]:
    """Return the names of what `LiberoWorld.look` returns.

    Places, and x and z axes of bodies as parts of directions; then joints of drawers (m) and the knob (rad),
    where furniture stands, and `GripPoints.nearness`.
    """
    places = _place_names(scene)
    return (*places, *GripPoints(places).names)


def _place_names(scene: LiberoScene) -> tuple[str, ...]:
    names = []
    for body in ("hand", *(one.name for one in scene.things)):
        names += [f"{body}_{axis}_m" for axis in AXES]
        names += [f"{body}_{which}_axis_{axis}" for which in ("x", "z") for axis in AXES]
    joints = scene.model.njnt - ROBOT - len(scene.things)
    for number in range(scene.model.njnt - joints, scene.model.njnt):
        unit = "rad" if scene.model.jnt_type[number] == mujoco.mjtJoint.mjJNT_HINGE else "m"
        names.append(f"{scene.model.joint(number).name}_{unit}")
    names += [f"{name}_{axis}_m" for name in scene.fixtures for axis in AXES[:2]]
    return tuple(names)


def _two_axes(axes: np.ndarray) -> np.ndarray:
    """Return the x and z axes of a direction (3, 3), (6,): no jumps, unlike angles and quaternions."""
    return np.concatenate([axes[:, 0], axes[:, 2]])


@functools.cache
def load_world(suite: str = SUITE) -> LiberoWorld:
    """Return the world of a suite, one per process.

    Raises:
        ValueError: see `load_scene`.
    """
    return LiberoWorld(load_scene(suite=suite))
