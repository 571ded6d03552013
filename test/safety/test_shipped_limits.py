"""The shipped limits: those of the simulated tasks change nothing that a task allows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_lab.tasks import make
from adahi_lab.tasks.task_interface import TaskSpec
from adahi_ros.contract.commanded import commanded
from adahi_ros.contract.parsing import load_contract
from adahi_ros.core.assets import asset, asset_files
from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.limits_file import load_limits
from adahi_ros.safety.named_limits import limits_warning, named_limits

TASKS = ("ball", "inverted_pendulum", "kitchen", "libero_goal", "metaworld", "swarm")
ARMS = ("franka_panda", "so101", "ur5e")
JOINTS = [f"panda_joint{number}" for number in range(1, 8)]
FINGERS = ["panda_finger_joint1", "panda_finger_joint2"]


def shipped(name: str, names: tuple[str, ...] | list[str]) -> Limits:
    return load_limits(asset(f"config/limits/{name}.yaml"), names)


@pytest.fixture(scope="module", params=TASKS)
def spec(request: pytest.FixtureRequest) -> TaskSpec:
    if request.param == "kitchen":
        pytest.importorskip("gymnasium_robotics")
    if request.param == "libero_goal":
        request.getfixturevalue("libero_scene")
    return make(request.param).spec


@given(st.integers(0, 2**32), st.lists(st.floats(0.0, 1.0), min_size=2, max_size=8), st.booleans())
def test_every_action_of_a_task_goes_through_as_it_is_at_any_pace(
    spec: TaskSpec, seed: int, elapsed: list[float], extreme: bool
) -> None:
    draw = np.random.default_rng(seed)
    envelope = Envelope(shipped(spec.name, spec.commanded), spec.command_field, 1.0 / spec.control_rate_hz)
    for elapsed_s in elapsed:
        wanted = draw.uniform(spec.action_low, spec.action_high)
        if extreme:
            wanted = np.where(draw.random(spec.action_dim) < 0.5, spec.action_low, spec.action_high)
        measured = draw.uniform(spec.action_low, spec.action_high) if draw.random() < 0.7 else None
        admitted = envelope.admit(wanted, measured, elapsed_s)
        assert admitted.action is not None
        assert admitted.action.tobytes() == wanted.tobytes()
        assert admitted.interventions == ()


def test_beyond_its_actions_a_task_is_limited(spec: TaskSpec) -> None:
    envelope = Envelope(shipped(spec.name, spec.commanded), spec.command_field, 1.0 / spec.control_rate_hz)
    for wanted, bound in ((spec.action_high * 2, spec.action_high), (spec.action_low * 2, spec.action_low)):
        admitted = envelope.admit(wanted, np.zeros(spec.action_dim), envelope.period_s)
        assert admitted.action is not None
        assert admitted.action.tolist() == bound.tolist()
        assert admitted.interventions != ()


def test_every_shipped_file_is_read_and_no_task_is_without() -> None:
    files = {path.stem for path in asset_files("config/limits")}
    assert files == {*TASKS, *ARMS, "so101_lerobot"}


def test_a_robot_that_must_have_limits_takes_every_shipped_file(spec: TaskSpec) -> None:
    load_limits(
        asset(f"config/limits/{spec.name}.yaml"),
        spec.commanded,
        [spec.command_field] * spec.action_dim,
        spec.commanded,
    )


@pytest.mark.parametrize("name", ARMS)
def test_an_arms_contract_and_its_limits_go_together(name: str) -> None:
    contract = load_contract(name)
    what = commanded(contract.action)
    measured = contract.measured(what.names)
    assert measured.unknown == ()
    limits = named_limits(name, True, what, measured)
    assert limits_warning(name, what, measured) is None
    *arm, gripper = range(contract.action.size)  # the gripper's ROS action is the last
    assert [sink.is_ros_action for sink in contract.action.sinks] == [False, True]
    columns = (limits.position_low, limits.position_high, limits.velocity, limits.acceleration)
    for column in (*columns, limits.max_step, limits.following):
        assert np.isfinite(column[arm]).all()
    # No command is further than max_step from the measured position, so a larger error never occurs.
    assert (limits.following[arm] < limits.max_step[arm]).all()
    assert np.isfinite([limits.position_low[gripper], limits.position_high[gripper]]).all()
    assert what.fields[gripper] == "goals"  # whatever its velocity's limit, it is not led there goal by goal


@pytest.mark.parametrize("name", ARMS)
def test_an_arm_that_is_released_gets_no_more_than_its_velocity(name: str) -> None:
    contract = load_contract(name)
    what = commanded(contract.action)
    limits = named_limits(name, True, what, contract.measured(what.names))
    envelope = Envelope(limits, what.fields, contract.period_s)
    stuck = np.clip(np.zeros(contract.action.size), limits.position_low, limits.position_high)
    action = None
    for step in range(120):  # the policy goes on, and the arm does not move
        action = envelope.admit(stuck + 0.03 * step, stuck, contract.period_s).action
    arm = slice(0, contract.action.size - 1)
    assert action is not None
    requested = np.abs(action - stuck)[arm] / contract.period_s
    assert (requested <= np.minimum(2.5 + 1e-9, limits.velocity[arm])).all()


@pytest.mark.parametrize("name", ARMS)
def test_an_arms_limits_hold_whatever_of_it_is_commanded(name: str) -> None:
    arm = [path.partition(".")[2] for path in load_contract(name).action.sinks[0].source.select]
    for field in ("positions", "velocities"):
        load_limits(asset(f"config/limits/{name}.yaml"), arm, [field] * len(arm), arm)


def test_the_limits_in_lerobots_units_are_those_in_radians() -> None:
    what = commanded(load_contract("so101_lerobot").action)
    degrees = named_limits("so101_lerobot", True, what, load_contract("so101_lerobot").measured(what.names))
    arm = slice(0, 5)
    for name in ("position_low", "position_high", "velocity", "acceleration", "max_step"):
        of_each = [getattr(each, name)[arm] for each in (degrees, shipped("so101", what.names))]
        np.testing.assert_allclose(of_each[0], np.rad2deg(of_each[1]), rtol=4e-3)
    assert (degrees.following[arm] < degrees.max_step[arm]).all()


def test_the_pandas_limits_are_those_of_no_other_arm() -> None:
    arm, fingers = shipped("franka_panda", JOINTS), shipped("franka_panda", FINGERS)
    assert np.isfinite(arm.effort).all()
    assert arm.position_high[3] < 0 < arm.position_high[5]  # elbow and wrist do not turn both ways
    assert fingers.position_high.tolist() == [0.04, 0.04]
    with pytest.raises(ValueError, match="no limits of fr3_joint1"):
        shipped("franka_panda", ["fr3_joint1"])
