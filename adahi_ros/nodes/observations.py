"""From joint_states and task_state to observations: checked, picked by name, paired by stamp."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from adahi_msgs.msg import TaskState
from builtin_interfaces.msg import Time
from sensor_msgs.msg import JointState

from adahi_ros.nodes.messages import NANOSECONDS, from_stamp

JOINT_STATES_KEPT = 64


class InputError(ValueError):
    """A message that must not move the robot; says which field, its value and what is allowed.

    Attributes:
        field: such as "joint_states.position".
    """

    def __init__(self, field: str, fault: str) -> None:
        super().__init__(f"{field}: {fault}")
        self.field = field


@dataclass(frozen=True)
class Observation:
    """What one control step acts on.

    Attributes:
        stamp_ns: of the task state.
        episode: number of the episode.
        step: number of the step in it.
        values: (O,) float32, joint positions, then the task's state.
        goal: (G,) float32.
    """

    stamp_ns: int
    episode: int
    step: int
    values: np.ndarray
    goal: np.ndarray

    @property
    def key(self) -> tuple[int, int]:
        return self.episode, self.step


class ObservationInput:
    """Makes one observation of each task state, with the joint state nearest in time.

    Args:
        joint_names: the J joints that the policy looks at; there may be none.
        state_dim: S.
        goal_dim: G.
        max_skew_s: between the stamps of the two.
        max_age_s: of a message when it arrives, by its stamp.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        state_dim: int,
        goal_dim: int,
        max_skew_s: float,
        max_age_s: float,
    ) -> None:
        self._joint_names = list(joint_names)
        self._state_dim = state_dim
        self._goal_dim = goal_dim
        self._max_skew_ns = round(max_skew_s * NANOSECONDS)
        self._max_age_s = max_age_s
        self._joints: deque[tuple[int, np.ndarray]] = deque(maxlen=JOINT_STATES_KEPT)
        self._state: TaskState | None = None

    def clear(self) -> None:
        """Forget what has come."""
        self._joints.clear()
        self._state = None

    def add_joints(self, message: JointState, now_ns: int) -> Observation | None:
        """Take a joint state; return the observation that it completes, if it does.

        One that has none of the joints, such as a gripper's, is nobody's fault and is passed over.

        Raises:
            InputError: it is stale, has only some of the joints, or one's position is not finite.
        """
        index = {name: position for position, name in enumerate(message.name)}
        missing = [name for name in self._joint_names if name not in index]
        if len(missing) == len(self._joint_names):  # true where none are wanted, too
            return None
        stamp_ns = self._fresh("joint_states", message.header.stamp, now_ns)
        if missing:
            raise InputError("joint_states.name", f"{list(message.name)}, lacks {', '.join(missing)}")
        ours = [index[name] for name in self._joint_names]
        positions = _sized("joint_states.position", message.position, len(message.name))
        _check_finite("joint_states.position", positions, ours)
        self._joints.append((stamp_ns, positions[ours]))
        return self._pair()

    def add_state(self, message: TaskState, now_ns: int) -> Observation | None:
        """Take a task state; return the observation that it completes, if it does.

        Raises:
            InputError: it is stale, of the wrong size, or not finite.
        """
        self._fresh("task_state", message.header.stamp, now_ns)
        for field, numbers, size in (
            ("task_state.state", message.state, self._state_dim),
            ("task_state.goal", message.goal, self._goal_dim),
        ):
            _check_finite(field, _sized(field, numbers, size), range(size))
        self._state = message
        return self._pair()

    def _fresh(self, topic: str, stamp: Time, now_ns: int) -> int:
        stamp_ns = from_stamp(stamp)
        age_s = (now_ns - stamp_ns) / NANOSECONDS
        if abs(age_s) > self._max_age_s:
            when = f"{abs(age_s):.3f} s {'old' if age_s > 0 else 'in the future'}"
            limit = f"at most max_age_s = {self._max_age_s:g} s allowed"
            raise InputError(f"{topic}.header.stamp", f"{when}, {limit}")
        return stamp_ns

    def _pair(self) -> Observation | None:
        if self._state is None:
            return None
        message = self._state
        stamp_ns = from_stamp(message.header.stamp)
        if not self._joint_names:
            return self._complete(np.empty(0))
        if not self._joints:
            return None
        skew_ns, positions = min(
            ((abs(stamp_ns - joint_stamp), values) for joint_stamp, values in self._joints),
            key=lambda candidate: candidate[0],
        )
        if skew_ns > self._max_skew_ns:
            return None
        return self._complete(positions)

    def _complete(self, positions: np.ndarray) -> Observation:
        assert self._state is not None
        message, self._state = self._state, None
        values = np.concatenate([positions, message.state]).astype(np.float32)
        goal = np.asarray(message.goal, dtype=np.float32)
        return Observation(
            from_stamp(message.header.stamp), message.episode_id, message.step_id, values, goal
        )


def _sized(field: str, values: Sequence[float], size: int) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if len(array) != size:
        raise InputError(field, f"{len(array)} values, expected {size}")
    return array


def _check_finite(field: str, values: np.ndarray, indices: Sequence[int]) -> None:
    finite = np.isfinite(values) & (np.abs(values) <= np.finfo(np.float32).max)
    for index in indices:
        if not finite[index]:
            raise InputError(f"{field}[{index}]", f"{values[index]}, must be finite as float32")
