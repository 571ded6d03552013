# SPDX-License-Identifier: Apache-2.0
"""The physics of Meta-World's scenes, one episode at a time."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adahi_lab.tasks.metaworld_scenes import Delivery, Errand, Point, Scene
from adahi_lab.tasks.mujoco_picture import mujoco

ROBOT_POSITIONS = 9  # of the arm's seven joints and two fingers; they come first
SETTLING_STEPS = 50  # in which the hand moves to its first place, as in the library
WIDEST_M = 0.1  # of the gripper; the library's scale
DOWN = np.array([1.0, 0.0, 1.0, 0.0])  # direction of the hand: a quaternion, as in the library
OPEN = -1.0
LIBRARY_OBSERVATION_DIM = 39
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
        ValueError: it is not installed; the message has the command.
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


@dataclass(frozen=True)
class Look:
    """The observation of an episode.

    Attributes:
        shown: to the robot: the hand (m), how open the gripper is (0 to 1), and what is on the table.
        read: (39,), what the library's scripted policies read.
        met: the errand is done.
        failed: a forbidden errand is done.
    """

    shown: np.ndarray
    read: np.ndarray
    met: bool
    failed: bool


@dataclass(frozen=True)
class Placed:
    """An episode of a scene between two of its steps.

    Attributes:
        state: (D,), the simulator's.
        place: (3,) m, of the thing, which is in the model, not in the state.
        mark: (3,) m, NaN where there is none.
    """

    state: np.ndarray
    place: np.ndarray
    mark: np.ndarray


class SceneWorld:
    """One scene's model, shared by tasks, and many episodes of it in turns.

    The rest of an episode is returned and passed in again as `Placed`.

    Args:
        scene: of the model.

    Attributes:
        model, data: MuJoCo's; `data` is of the episode that was started, loaded or stepped last.
        period_s: a control step's length.
        reach_m: largest motion of the hand in a control step along an axis.
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

    def start(self, errand: Errand, draws: np.ndarray) -> Placed:
        """Begin an episode with an instruction, by seven uniform draws; leave it loaded.

        The thing is at a place and its joint at a coordinate, at rest; there may be a mark.
        """
        scene, mark = self.scene, _mark(errand, draws[4:7])
        place = _between(scene.place.low, scene.place.high, draws[:3])
        self.load(Placed(self._settled, place, mark))
        positions = self.data.qpos[ROBOT_POSITIONS:]
        if scene.joint is None:
            positions[:3] = place
        else:
            low, high = scene.start
            positions[scene.joint] = _between(low, high, draws[3])
        self.data.qvel[:] = 0.0
        mujoco.mj_kinematics(self.model, self.data)
        return Placed(self._state(), place, mark)

    def instructed(self, errand: Errand, kept: Placed, draws: np.ndarray) -> Placed:
        """Return an episode with another errand's mark, by three uniform draws."""
        return replace(kept, mark=_mark(errand, draws))

    def load(self, kept: Placed) -> None:
        """Load an episode."""
        if self.scene.joint is not None:
            self.model.body_pos[self._thing] = kept.place
        mujoco.mj_setState(self.model, self.data, kept.state, STATE)
        mujoco.mj_kinematics(self.model, self.data)

    def step(self, kept: Placed, moved: np.ndarray, grip: float) -> Placed:
        """Simulate one control period of an episode; leave it loaded.

        Args:
            kept: the episode.
            moved: (3,) by which the hand is to move, m.
            grip: from -1, open, to 1, closed.
        """
        self.load(kept)
        wanted = self.data.mocap_pos[0] + moved
        self._advance(np.clip(wanted, self._hand_low, self._hand_high), grip)
        mujoco.mj_kinematics(self.model, self.data)
        return Placed(self._state(), kept.place, kept.mark)

    def observe(self, errand: Errand, kept: Placed) -> Look:
        """Return the observation of the loaded episode.

        The scripted policies get the same values twice; the second half is of the step before, which none of
        them uses. Their goal is the mark, or without one the place of the thing.
        """
        hand, scene, read = self.hand(), self.scene, np.zeros(LIBRARY_OBSERVATION_DIM)
        read[:4], read[4:7] = hand, self.point(errand.seen)
        read[18:36] = read[:18]
        read[-3:] = kept.place if np.isnan(kept.mark).any() else kept.mark
        others = (other for other in scene.errands if other is not errand and _opposes(other, errand))
        return Look(
            np.concatenate([hand, self.point(scene.part), self.thing()]),
            read,
            self.is_done(errand, kept.mark),
            any(self.is_done(other, kept.mark) for other in others),
        )

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
        """Whether an errand is done; one with a mark, (3,) m, is done when the thing is there."""
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


def _opposes(one: Errand, other: Errand) -> bool:
    """Whether doing one errand fails the other: they move the same joint."""
    return not isinstance(one.done, Delivery) and not isinstance(other.done, Delivery)


def _mark(errand: Errand, draws: np.ndarray) -> np.ndarray:
    """Return an errand's mark, (3,) m, by three uniform draws; NaN where there is none."""
    if not isinstance(errand.done, Delivery):
        return np.full(3, np.nan)
    return _between(errand.done.mark.low, errand.done.mark.high, draws)


def _between(low: Sequence[float] | float, high: Sequence[float] | float, share: np.ndarray) -> np.ndarray:
    between: np.ndarray = np.asarray(low) + share * (np.asarray(high) - np.asarray(low))
    return between


@functools.cache
def load_scene(scene: Scene) -> SceneWorld:
    """Return the world of a scene, one of each per process, because a model takes about 20 MB."""
    return SceneWorld(scene)
