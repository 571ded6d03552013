from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.nodes.messages import to_joint_state, to_task_state
from adahi_ros.nodes.observations import InputError, Observation, ObservationInput

MS = 1_000_000


def joints(stamp_ms: int, value: float = 0.0) -> tuple:
    return to_joint_state(["extra", "b", "a"], np.array([9.0, value + 1, value]), np.zeros(3), stamp_ms * MS)


def state(stamp_ms: int, step: int = 0):
    return to_task_state(np.array([5.0, 6.0]), np.array([7.0]), 1, step, stamp_ms * MS)


def make(max_skew_s: float = 0.0, max_age_s: float = 1.0) -> ObservationInput:
    return ObservationInput(["a", "b"], 2, 1, max_skew_s, max_age_s)


def values(observation: Observation | None) -> list[float]:
    assert observation is not None
    return observation.values.tolist()


def test_joints_are_picked_by_name_and_come_before_the_state() -> None:
    inputs = make()
    assert inputs.add_joints(joints(10), 10 * MS) is None
    observation = inputs.add_state(state(10, step=3), 10 * MS)
    assert values(observation) == [0.0, 1.0, 5.0, 6.0]
    assert observation is not None
    assert observation.values.dtype == np.float32
    assert observation.goal.tolist() == [7.0]
    assert (observation.key, observation.stamp_ns) == ((1, 3), 10 * MS)


def test_either_may_come_first_and_each_state_counts_once() -> None:
    inputs = make()
    assert inputs.add_state(state(10), 10 * MS) is None
    assert values(inputs.add_joints(joints(10), 10 * MS)) == [0.0, 1.0, 5.0, 6.0]
    assert inputs.add_joints(joints(10), 10 * MS) is None


def test_the_joints_nearest_in_time_are_taken_within_the_skew() -> None:
    inputs = make(max_skew_s=0.004)
    for stamp, value in ((2, 0.2), (8, 0.8), (15, 1.5)):
        inputs.add_joints(joints(stamp, value), 15 * MS)
    assert values(inputs.add_state(state(9), 15 * MS))[0] == pytest.approx(0.8)
    assert values(inputs.add_state(state(12), 15 * MS))[0] == pytest.approx(1.5)
    assert inputs.add_state(state(20), 20 * MS) is None
    assert values(inputs.add_joints(joints(24, 2.4), 24 * MS))[0] == pytest.approx(2.4)


def test_joint_states_of_other_joints_are_passed_over() -> None:
    inputs = make()
    gripper = to_joint_state(["gripper"], np.array([np.nan]), np.zeros(1), 0)
    assert inputs.add_joints(gripper, 10_000 * MS) is None
    inputs.add_joints(joints(10), 10 * MS)
    assert inputs.add_joints(gripper, 10_000 * MS) is None
    assert values(inputs.add_state(state(10), 10 * MS)) == [0.0, 1.0, 5.0, 6.0]


def test_only_the_joints_of_the_policy_must_be_finite() -> None:
    inputs, message = make(), joints(10)
    message.position[0] = np.nan
    inputs.add_joints(message, 10 * MS)
    assert values(inputs.add_state(state(10), 10 * MS)) == [0.0, 1.0, 5.0, 6.0]
    message.position[2] = 1e39
    with pytest.raises(InputError, match=r"joint_states.position\[2\]: 1e\+39, must be finite"):
        inputs.add_joints(message, 10 * MS)


def test_some_of_the_joints_are_not_enough() -> None:
    half = to_joint_state(["b"], np.zeros(1), np.zeros(1), 10 * MS)
    with pytest.raises(InputError, match=r"joint_states.name: \['b'\], lacks a"):
        make().add_joints(half, 10 * MS)


def test_nothing_old_is_left_after_clear() -> None:
    inputs = make()
    inputs.add_joints(joints(10), 10 * MS)
    inputs.clear()
    assert inputs.add_state(state(10), 10 * MS) is None


@pytest.mark.parametrize("now_ms", [1011, 5000, -1011])
def test_stale_and_future_messages_are_refused(now_ms: int) -> None:
    inputs = make(max_age_s=1.0)
    stamp = 10 if now_ms > 0 else 10 - now_ms
    now = now_ms if now_ms > 0 else 5
    for add, message in ((inputs.add_joints, joints(stamp)), (inputs.add_state, state(stamp))):
        with pytest.raises(InputError, match="max_age_s = 1 s allowed"):
            add(message, now * MS)
