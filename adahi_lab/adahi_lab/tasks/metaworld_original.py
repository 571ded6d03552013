# SPDX-License-Identifier: Apache-2.0
"""The library's own environments, many episodes of one in turns."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from adahi_lab.tasks.metaworld_scenes import Original
from adahi_lab.tasks.metaworld_world import LIBRARY_OBSERVATION_DIM, STATE, Look, load_library
from adahi_lab.tasks.offscreen import choose_renderer

choose_renderer()

import mujoco  # noqa: E402

SEEN = 18  # entries of the library's observation: hand, gripper and things; the rest is older or the goal
PLACED = ("body_pos", "site_pos")  # the library changes these at the start of an episode
SEEDS = 2**53


@dataclass(frozen=True)
class Kept:
    """An episode between two of its steps.

    Attributes:
        state: (D,), the simulator's.
        placed: its values in the model.
        notes: attributes of the environment, such as start positions.
        read: (39,), the library's observation.
        met: whether it succeeds by the library.
    """

    state: np.ndarray
    placed: tuple[np.ndarray, ...]
    notes: dict[str, Any]
    read: np.ndarray
    met: bool

    @property
    def mark(self) -> np.ndarray:
        """(3,) m: the library's goal."""
        goal: np.ndarray = self.read[-3:]
        return goal


class OriginalWorld:
    """One of the library's environments, unmodified.

    Only the hand's motion to its first place, the same in all episodes, is simulated once. It is used as
    `adahi_lab.tasks.metaworld_world.SceneWorld`.

    Args:
        task: which.
    """

    def __init__(self, task: Original) -> None:
        environment = load_library()[0][task.name]()
        self.model, self.data = environment.model, environment.data
        self.period_s = environment.frame_skip * self.model.opt.timestep
        self.reach_m = environment.action_scale
        self._environment = environment
        environment._set_task_called = True
        environment._partially_observable = False
        del environment.sawyer_observation_space  # created again, with the goal
        environment._freeze_rand_vec, environment.seeded_rand_vec = False, True
        mujoco.mj_resetData(self.model, self.data)
        environment._reset_hand()
        self._settled = self._keep(np.zeros(LIBRARY_OBSERVATION_DIM), False)
        environment._reset_hand = lambda: None

    def start(self, errand: Original, draws: np.ndarray) -> Kept:
        """Begin an episode, by the first of some uniform draws; leave it loaded."""
        self.load(self._settled)
        mujoco.mj_forward(self.model, self.data)
        environment = self._environment
        environment.np_random = np.random.default_rng(int(draws[0] * SEEDS))
        environment.reset_model()
        mujoco.mj_forward(self.model, self.data)  # so that placed objects are visible
        environment._prev_obs = environment._get_curr_obs_combined_no_goal()
        return self._keep(environment._get_obs(), False)

    def load(self, kept: Kept) -> None:
        """Go on with an episode."""
        for name, values in zip(PLACED, kept.placed, strict=True):
            getattr(self.model, name)[:] = values
        mujoco.mj_setState(self.model, self.data, kept.state, STATE)
        vars(self._environment).update(kept.notes)  # replaces arrays without writing into them

    def step(self, kept: Kept, moved: np.ndarray, grip: float) -> Kept:
        """Simulate one control period of an episode; leave it loaded.

        Args:
            kept: the episode.
            moved: (3,) by which the hand is to move, m.
            grip: from -1, open, to 1, closed.
        """
        self.load(kept)
        observed, _, _, _, info = self._environment.step(np.append(moved / self.reach_m, grip))
        return self._keep(observed, info["success"] >= 1.0)

    def observe(self, errand: Original, kept: Kept) -> Look:
        """Return the observation of an episode."""
        return Look(kept.read[:SEEN], kept.read, kept.met, False)

    def _keep(self, observed: np.ndarray, met: bool) -> Kept:
        state = np.empty(mujoco.mj_stateSize(self.model, STATE))
        mujoco.mj_getState(self.model, self.data, state, STATE)
        placed = tuple(getattr(self.model, name).copy() for name in PLACED)
        return Kept(state, placed, _copied(vars(self._environment)), observed, met)


def _copied(notes: dict[str, object]) -> dict[str, object]:
    """Copy all arrays, also views of the simulator's."""
    return {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in notes.items()
        if isinstance(value, bool | int | float | np.number | np.ndarray)
    }


@functools.cache
def load_original(task: Original) -> OriginalWorld:
    """Return the world of a task, one of each per process, because a model takes about 20 MB."""
    return OriginalWorld(task)
