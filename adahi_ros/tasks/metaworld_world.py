"""The physics of Meta-World's scenes, one episode at a time."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from adahi_ros.tasks.metaworld_scenes import Delivery, Errand, Point, Scene
from adahi_ros.tasks.offscreen import choose_renderer

choose_renderer()

import mujoco  # noqa: E402

ROBOT_POSITIONS = 9  # of the arm's seven joints and two fingers; they come first
SETTLING_STEPS = 50  # in which the hand comes to its first place, as in the library
WIDEST_M = 0.1  # of the gripper, by which the library scales it
DOWN = np.array([1.0, 0.0, 1.0, 0.0])  # where the hand points: a quaternion, as in the library
OPEN = -1.0
STATE = (  # what a step depends on; with the solver's warm start, so that to the bit it is as if never left
    mujoco.mjtState.mjSTATE_FULLPHYSICS.value
    | mujoco.mjtState.mjSTATE_MOCAP_POS.value
    | mujoco.mjtState.mjSTATE_MOCAP_QUAT.value
    | mujoco.mjtState.mjSTATE_WARMSTART.value
)
INSTALL = "pip install --no-deps -r requirements/metaworld.txt"


@functools.lru_cache(maxsize=1)
def load_library() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return Meta-World's environments and scripted policies, classes by the names of its tasks.

    Raises:
        ValueError: it is not installed; the message says how to.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from metaworld.env_dict import ALL_V3_ENVIRONMENTS
            from metaworld.policies import ENV_POLICY_MAP
    except ImportError as error:
        raise ValueError(
            f"metaworld: must be installed ({error}): {INSTALL}. Without its dependencies: it asks for one "
            "version of MuJoCo, and runs with the one that is here"
        ) from None
    return dict(ALL_V3_ENVIRONMENTS), dict(ENV_POLICY_MAP)


class SceneWorld:
    """One scene's model, and one episode of it at a time.

    An episode is a state, (D,), and the place of the thing, (3,), which the model has and no state. Whatever
    is asked for is told of the episode that was loaded, started or stepped last.

    Args:
        scene: which.

    Attributes:
        scene: which.
        period_s: a control step's length.
        reach_m: how far the hand moves in a control step, at most, along an axis.
    """

    def __init__(self, scene: Scene) -> None:
        environment = load_library()[0][scene.model]()
        self.scene = scene
        self.model = environment.model
        self.data = environment.data
        self.period_s = environment.frame_skip * self.model.opt.timestep
        self.reach_m = environment.action_scale
        self._substeps = environment.frame_skip
        self._hand_low, self._hand_high = environment.mocap_low, environment.mocap_high
        self._thing = self.model.body(scene.thing).id
        for _ in range(SETTLING_STEPS):
            self._advance(environment.hand_init_pos, OPEN)
        self._settled = self._state()

    def start(self, place: np.ndarray, coordinate: float) -> np.ndarray:
        """Put the thing at a place, (3,) m, and its joint at a coordinate, at rest; return the state."""
        joint, positions = self.scene.joint, self.data.qpos[ROBOT_POSITIONS:]
        self.load(self._settled, place)
        if joint is None:
            positions[:3] = place
        else:
            positions[joint] = coordinate
        self.data.qvel[:] = 0.0
        mujoco.mj_kinematics(self.model, self.data)
        return self._state()

    def load(self, state: np.ndarray, place: np.ndarray) -> None:
        """Go on with an episode."""
        if self.scene.joint is not None:
            self.model.body_pos[self._thing] = place
        mujoco.mj_setState(self.model, self.data, state, STATE)
        mujoco.mj_kinematics(self.model, self.data)

    def step(self, moved: np.ndarray, grip: float) -> np.ndarray:
        """Simulate one control period; return the state after it.

        Args:
            moved: (3,) by which the hand is to move, m.
            grip: from -1, open, to 1, closed.
        """
        wanted = self.data.mocap_pos[0] + moved
        self._advance(np.clip(wanted, self._hand_low, self._hand_high), grip)
        mujoco.mj_kinematics(self.model, self.data)
        return self._state()

    def hand(self) -> np.ndarray:
        """Return the hand's x, y, z (m) and how open the gripper is, from 0 to 1; (4,)."""
        apart = self.data.body("rightclaw").xpos - self.data.body("leftclaw").xpos
        opening = np.clip(np.sqrt(apart @ apart) / WIDEST_M, 0.0, 1.0)
        return np.append(self.data.body("hand").xpos, opening)

    def thing(self) -> np.ndarray:
        """Return where the thing is, (3,) m."""
        return self.data.xpos[self._thing].copy()

    def point(self, point: Point) -> np.ndarray:
        """Return where a point is, (3,) m."""
        if point.kind == "tool":
            fingers = self.data.site("rightEndEffector").xpos, self.data.site("leftEndEffector").xpos
            tool: np.ndarray = (fingers[0] + fingers[1]) / 2.0
            return tool
        there: np.ndarray = getattr(self.data, point.kind)(point.name).xpos + point.offset
        return there

    def is_done(self, errand: Errand, mark: np.ndarray) -> bool:
        """Whether an errand is done; one that brings something to the mark, (3,) m, where it is there."""
        if isinstance(errand.done, Delivery):
            off = self.point(errand.done.point) - mark
            return bool(off @ off <= errand.done.within_m**2)
        assert self.scene.joint is not None
        coordinate = self.data.qpos[ROBOT_POSITIONS + self.scene.joint]
        return bool(errand.done.low <= coordinate <= errand.done.high)

    def _advance(self, hand: np.ndarray, grip: float) -> None:
        self.data.mocap_pos[0], self.data.mocap_quat[0] = hand, DOWN
        self.data.ctrl[:] = grip, -grip
        mujoco.mj_step(self.model, self.data, nstep=self._substeps)

    def _state(self) -> np.ndarray:
        state = np.empty(mujoco.mj_stateSize(self.model, STATE))
        mujoco.mj_getState(self.model, self.data, state, STATE)
        return state


@functools.cache
def load_scene(scene: Scene) -> SceneWorld:
    """Return the world of a scene; a process has one of each, for a model takes some 20 MB."""
    return SceneWorld(scene)
