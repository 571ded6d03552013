# SPDX-License-Identifier: Apache-2.0
"""OGBench's puzzle: an arm presses buttons until the lights are as wanted (Park et al., ICLR 2025).

Its environment, observation, success and scripted presses are used unmodified. Starts are drawn as for its
data sets: the arm's pose, and every light. Wanted lights are those after random presses.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adahi_lab.tasks.lights_out import ARM, COLUMNS, ROWS, board, hand_of
from adahi_lab.tasks.mujoco_picture import mujoco
from adahi_lab.tasks.task_interface import SimulatedTask, Task, TaskSpec, checked_action
from adahi_ros.core.randomness import EpisodeStreams

INSTALL = "pip install --no-deps -r requirements/ogbench.txt"
MIDDLE_M = (0.425, 0.0)
LONGEST = 150  # steps, three times as many as the script needs; the library allows 500
SEEDS = 2**31  # an episode's seed for the library is below
ACTIONS = ("hand_x", "hand_y", "hand_z", "hand_yaw", "gripper")
PRESSED_M, ALIGNED_M = 0.16, 0.04  # of the library's scripted press: below it presses, within it is above
SEEN = ("hand_x", "hand_y", "hand_z", "hand_yaw_cos", "hand_yaw_sin", "gripper_opening", "gripper_contact")
STATE = (  # what a step depends on
    mujoco.mjtState.mjSTATE_FULLPHYSICS.value
    | mujoco.mjtState.mjSTATE_CTRL.value
    | mujoco.mjtState.mjSTATE_WARMSTART.value
)


@functools.lru_cache(maxsize=1)
def load_library() -> tuple[Any, Any]:
    """Return OGBench's environment of the puzzle and its scripted press.

    Raises:
        ValueError: it is not installed; the message has the command.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of GLFW, without a screen
            from ogbench.manipspace.envs.puzzle_env import PuzzleEnv
            from ogbench.manipspace.oracles.markov.button_markov import ButtonMarkovOracle
    except ImportError as error:
        raise ValueError(f"ogbench: must be installed ({error}): {INSTALL}") from None

    class QuickPuzzleEnv(PuzzleEnv):
        """The same without colours, and without reading everything three times in a step."""

        def pre_step(self) -> None:
            self._prev_qpos, self._prev_qvel = self._data.qpos.copy(), self._data.qvel.copy()
            self._prev_button_states = self._cur_button_states.copy()
            depths = self._data.qpos[self._depths]
            self._prev_ob_info = {f"privileged/button_{n}_pos": [at] for n, at in enumerate(depths)}

        def compute_ob_info(self) -> dict[str, Any]:
            self._read: dict[str, Any] = super().compute_ob_info()
            return self._read

        def get_step_info(self) -> dict[str, Any]:
            return self._read

        def post_compilation_objects(self) -> None:
            super().post_compilation_objects()
            joints = [f"buttonbox_joint_{number}" for number in range(ROWS * COLUMNS)]
            self._depths = [self._model.joint(name).qposadr[0] for name in joints]

        def _apply_button_states(self) -> None:
            mujoco.mj_forward(self._model, self._data)

    environment = QuickPuzzleEnv(f"{ROWS}x{COLUMNS}")
    environment.reset(seed=0)
    return environment, ButtonMarkovOracle(env=environment, gripper_always_closed=True)


@dataclass
class _Episode:
    """An episode between two of its steps: the simulator's state, lights, and what the library says."""

    state: np.ndarray
    lights: np.ndarray
    wanted: np.ndarray
    observed: np.ndarray
    info: dict[str, Any]
    success: bool = False


class OGBenchPuzzle(SimulatedTask):
    """E tables side by side. Implements `adahi_lab.tasks.task_interface.Task`.

    The observation is the library's: positions of the arm's joints (rad), their velocities, place of the hand
    (0.1 m, from above the board's middle), yaw, gripper, and of each button the light (two entries), its
    depth and velocity. Goal, for the target alone: 1 for each light that is not as wanted, else 0. So a
    robot that is given the wanted lights need not even compare them. Action: the library's, from -1 to 1. It
    is how far the hand is to go (of 0.05 m), to turn (of 0.3 rad) and to close. Nothing fails an episode.

    Raises:
        ValueError: OGBench is not installed; the message has the command.
    """

    def __init__(self) -> None:
        self._environment = load_library()[0]
        limit, lights = np.ones(len(ACTIONS)), range(ROWS * COLUMNS)
        self.spec = TaskSpec(
            name="ogbench_puzzle",
            joint_names=tuple(f"arm_joint_{number}" for number in range(ARM)),
            state_names=(
                *(f"arm_joint_{number}_rad_s" for number in range(ARM)),
                *SEEN,
                *(
                    f"button_{number}_{name}"
                    for number in lights
                    for name in ("off", "on", "depth", "velocity")
                ),
            ),
            frame_id="world",
            goal_dim=ROWS * COLUMNS,
            action_names=tuple(f"{name}_command" for name in ACTIONS),
            action_low=-limit,
            action_high=limit,
            control_rate_hz=20.0,
            max_steps=LONGEST,
            success_text="every light is as wanted",
            subtask_names=("every light",),
            command_field="velocities",
            command_names=ACTIONS,
            goal_for_target=True,
        )
        self.reset(0, [0])

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers; E is how many there are."""
        count = ROWS * COLUMNS
        draws = EpisodeStreams(seed, "ogbench_puzzle/reset", episodes, 1 + 2 * count).next()
        lights, presses = ((draws[:, 1:] < 0.5).astype(int)[:, at:][:, :count] for at in (0, count))
        wanted = lights ^ (presses @ board().changes.T % 2)
        self._begin(len(episodes))
        self._kept = [self._started(*each) for each in zip(draws[:, 0], lights, wanted, strict=True)]

    def _started(self, draw: float, lights: np.ndarray, wanted: np.ndarray) -> _Episode:
        world = self._environment
        puzzle = {"init_button_states": lights, "goal_button_states": wanted}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numpy, in the library
            world.reset(seed=int(draw * SEEDS), options={"task_info": puzzle})
        # The library has moved the arm by actions without a seed, to make a picture of the goal.
        for traces in (world.data.qvel, world.data.ctrl, world.data.qacc_warmstart):
            traces[:] = 0.0
        mujoco.mj_forward(world.model, world.data)
        world.pre_step()
        return self._stored(wanted, world.compute_observation(), world.compute_ob_info(), False)

    def _stored(self, wanted: np.ndarray, observed: np.ndarray, info: dict[str, Any], met: bool) -> _Episode:
        world = self._environment
        state = np.empty(mujoco.mj_stateSize(world.model, STATE))
        mujoco.mj_getState(world.model, world.data, state, STATE)
        return _Episode(state, world._cur_button_states.copy(), wanted, observed, info, met)

    @property
    def joint_positions(self) -> np.ndarray:
        """(E, 6) float64, rad."""
        return self._observed[:, :ARM]

    @property
    def joint_velocities(self) -> np.ndarray:
        """(E, 6) float64, rad/s."""
        return self._observed[:, ARM : 2 * ARM]

    @property
    def state(self) -> np.ndarray:
        """(E, S) float64; see the class."""
        return self._observed[:, ARM:]

    @property
    def goal(self) -> np.ndarray:
        """(E, 16) float64: 1 for each light that is not as wanted now."""
        return np.stack([each.lights != each.wanted for each in self._kept]).astype(np.float64)

    @property
    def labels(self) -> np.ndarray:
        """(E, 16) float32, what a search finds now: see `LightsOut.marks`."""
        return board().marks(hand_of(self._observed), self.goal)

    @property
    def infos(self) -> list[dict[str, Any]]:
        """What the library's scripts read, of each of the E episodes."""
        return [each.info for each in self._kept]

    @property
    def fulfilled(self) -> np.ndarray:
        """(E, 1) bool: every light is as wanted now."""
        return np.array([[each.success] for each in self._kept])

    @property
    def _observed(self) -> np.ndarray:
        return np.stack([each.observed for each in self._kept])

    def step(self, action: np.ndarray) -> None:
        """Advance every episode that is not done by one control period.

        Args:
            action: (E, 5), clipped to -1 to 1.

        Raises:
            ValueError: wrong shape, or not finite.
        """
        action = checked_action(self.spec, len(self._steps), action)
        world = self._environment
        for row in np.flatnonzero(~self.done).tolist():
            kept = self._kept[row]
            mujoco.mj_setState(world.model, world.data, kept.state, STATE)
            mujoco.mj_kinematics(world.model, world.data)
            world._cur_button_states, world._target_button_states = kept.lights.copy(), kept.wanted
            observed, _, met, _, info = world.step(action[row])
            self._kept[row] = self._stored(kept.wanted, observed, info, bool(met))
            self._steps[row] += 1
            self._success[row] |= met


class OGBenchPuzzleExpert:
    """Presses what a search finds, by the library's scripted press. Implements `Expert`; remembers nothing.

    Raises:
        ValueError: OGBench is not installed; the message has the command.
    """

    def __init__(self) -> None:
        self._environment, self._press = load_library()
        self._press.reset(None, None)  # it draws where to go afterwards, which it never does here

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Remembers nothing."""

    def act(self, task: Task) -> np.ndarray:
        """Return the hand's motions and the grippers, (E, 5).

        Raises:
            ValueError: the task is another one.
        """
        if not isinstance(task, OGBenchPuzzle):
            raise ValueError(f"task: {task.spec.name!r}, must be OGBench's puzzle")
        rows = zip(task.labels.argmax(axis=1).tolist(), task.infos, strict=True)
        return np.stack([self._pressing(number, info) for number, info in rows])

    def _pressing(self, number: int, info: dict[str, Any]) -> np.ndarray:
        """Return the script's action towards a button; up first where the hand is low above another one."""
        hand, places = info["proprio/effector_pos"], board().places + MIDDLE_M
        away = np.linalg.norm(places - hand[:2], axis=1)
        up = away[number] > ALIGNED_M and hand[2] <= PRESSED_M
        button = int(away.argmin()) if up else number
        top = self._environment.data.site(f"btntop_{button}").xpos
        lit = info[f"privileged/button_{button}_state"]
        chosen = {
            "privileged/target_button": button,
            "privileged/target_button_top_pos": top.copy(),
            "privileged/target_button_state": lit if up else 1 - lit,
        }
        self._press._final_yaw = info["proprio/effector_yaw"][0]  # it need not turn
        action: np.ndarray = self._press.select_action(None, info | chosen)
        return action
