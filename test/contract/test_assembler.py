from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adahi_lab.evaluation.plain_contract import plain_values, with_camera
from adahi_lab.nodes.task_state import to_task_state
from adahi_ros.bags.bag_reader import Received
from adahi_ros.bags.survey import survey
from adahi_ros.contract.assembler import Observation, ObservationAssembler
from adahi_ros.contract.fields import InputError
from adahi_ros.contract.parsing import parse_contract
from adahi_ros.nodes.common.messages import to_image, to_joint_state

MS = 1_000_000
JOINTS, STATE = "joint_states", "task_state"


def joints(stamp_ms: int, value: float = 0.0) -> Any:
    return to_joint_state(["extra", "b", "a"], np.array([9.0, value + 1, value]), np.zeros(3), stamp_ms * MS)


def state(stamp_ms: int, step: int = 0) -> Any:
    return to_task_state(np.array([5.0, 6.0]), np.array([7.0]), 1, step, stamp_ms * MS)


def make(max_skew_s: float = 0.0, max_age_s: float = 1.0) -> ObservationAssembler:
    return ObservationAssembler(
        parse_contract(
            plain_values("robot", 20.0, ["a", "b"], 2, 1, ["a"], "positions", max_skew_s, max_age_s)
        )
    )


def values(observation: Observation | None) -> list[float]:
    assert observation is not None
    listed: list[float] = observation.values.tolist()
    return listed


def test_joints_are_picked_by_name_and_come_before_the_state() -> None:
    inputs = make()
    assert inputs.add(JOINTS, joints(10), 10 * MS) is None
    observation = inputs.add(STATE, state(10, step=3), 10 * MS)
    assert values(observation) == [0.0, 1.0, 5.0, 6.0]
    assert observation is not None
    assert observation.values.dtype == np.float32
    assert observation.goal.tolist() == [7.0]
    assert (observation.key, observation.stamp_ns) == ((1, 3), 10 * MS)


def test_images_for_the_target_are_kept_and_are_no_observation() -> None:
    values_of = plain_values("robot", 20.0, ["a", "b"], 2, 1, ["a"], "positions")
    contract = parse_contract(with_camera(values_of, "ball", 4, 4, for_target=True))
    frame = np.full((4, 4, 3), 7, dtype=np.uint8)
    made = []
    for encode in (None, lambda images: np.full((1, 3), images.mean(), np.float32)):
        inputs = ObservationAssembler(contract, encode)
        inputs.add("camera/image_raw", to_image(frame, 10 * MS), 10 * MS)
        inputs.add(JOINTS, joints(10), 10 * MS)
        observation = inputs.add(STATE, state(10), 10 * MS)
        assert observation is not None
        made.append(observation)
    for observation in made:
        assert values(observation) == [0.0, 1.0, 5.0, 6.0]
        np.testing.assert_array_equal(observation.images["observation.images.camera"], frame)
        assert {name: part.tolist() for name, part in observation.named.items()} == {
            "observation.joints": [0.0, 1.0],
            "observation.task": [5.0, 6.0],
        }
    assert [observation.image_features.tolist() for observation in made] == [[], [7.0] * 3]
    with pytest.raises(ValueError, match=r"^encode: None, must be the encoder of the contract's images$"):
        ObservationAssembler(replace(contract, images_for_target=False))


def test_the_joints_nearest_in_time_are_taken_within_the_skew() -> None:
    inputs = make(max_skew_s=0.004)
    for stamp, value in ((2, 0.2), (8, 0.8), (15, 1.5)):
        inputs.add(JOINTS, joints(stamp, value), 15 * MS)
    assert values(inputs.add(STATE, state(9), 15 * MS))[0] == pytest.approx(0.8)
    assert values(inputs.add(STATE, state(12), 15 * MS))[0] == pytest.approx(1.5)
    assert inputs.add(STATE, state(20), 20 * MS) is None
    assert values(inputs.add(JOINTS, joints(24, 2.4), 24 * MS))[0] == pytest.approx(2.4)


def test_joint_states_of_other_joints_are_passed_over() -> None:
    inputs = make()
    gripper = to_joint_state(["gripper"], np.array([np.nan]), np.zeros(1), 0)
    assert inputs.add(JOINTS, gripper, 10_000 * MS) is None
    inputs.add(JOINTS, joints(10), 10 * MS)
    assert inputs.add(JOINTS, gripper, 10_000 * MS) is None
    assert values(inputs.add(STATE, state(10), 10 * MS)) == [0.0, 1.0, 5.0, 6.0]


def test_only_the_joints_of_the_policy_must_be_finite() -> None:
    inputs, message = make(), joints(10)
    message.position[0] = np.nan
    inputs.add(JOINTS, message, 10 * MS)
    assert values(inputs.add(STATE, state(10), 10 * MS)) == [0.0, 1.0, 5.0, 6.0]
    message.position[2] = 1e39
    with pytest.raises(InputError, match=r"joint_states.position\[2\]: 1e\+39, must be finite"):
        inputs.add(JOINTS, message, 10 * MS)


def test_some_of_the_joints_are_not_enough() -> None:
    half = to_joint_state(["b"], np.zeros(1), np.zeros(1), 10 * MS)
    with pytest.raises(InputError, match=r"joint_states.name: \['b'\], lacks a"):
        make().add(JOINTS, half, 10 * MS)


def test_a_joint_that_is_there_twice_is_nobodys_to_choose() -> None:
    twice = to_joint_state(["a", "b", "a"], np.arange(3.0), np.zeros(3), 10 * MS)
    with pytest.raises(InputError, match=r"joint_states.name: \['a', 'b', 'a'\], has a twice"):
        make().add(JOINTS, twice, 10 * MS)
    others = to_joint_state(["a", "b", "c", "c"], np.arange(4.0), np.zeros(4), 10 * MS)
    inputs = make()
    inputs.add(JOINTS, others, 10 * MS)
    assert values(inputs.add(STATE, state(10), 10 * MS)) == [0.0, 1.0, 5.0, 6.0]


def test_a_fault_stays_short_however_many_names_a_message_has() -> None:
    names = [*(f"joint_{index}" for index in range(100_000)), "a"]
    with pytest.raises(InputError, match="lacks b") as caught:
        make().add(JOINTS, to_joint_state(names, np.zeros(len(names)), np.zeros(len(names)), 0), 0)
    assert len(str(caught.value)) < 1000


def test_numbers_must_be_finite_in_the_policys_units_too() -> None:
    inputs = counting(observations={"observation.state": {**JOINT_PART, "apply": ["rad2deg"]}})
    huge = to_joint_state(["a", "b"], np.array([0.0, 1e38]), np.zeros(2), 0)
    with pytest.raises(
        InputError, match=r"observation.state.position.b: 5.7.*e\+39, must be finite as float32"
    ):
        inputs.add(JOINTS, huge, 0)


def test_a_sample_that_was_overtaken_begins_no_episode() -> None:
    made = keys(counting(), [0.0, 10.0, 50.0, 40.0, 60.0, 100.0, 60.0, 150.0])
    assert made == [(0.0, 0, 0), (50.0, 0, 1), (100.0, 0, 2), (150.0, 0, 3)]


def test_nothing_old_is_left_after_clear() -> None:
    inputs = make()
    inputs.add(JOINTS, joints(10), 10 * MS)
    inputs.clear()
    assert inputs.add(STATE, state(10), 10 * MS) is None


def test_a_message_with_one_bad_part_leaves_nothing_behind() -> None:
    inputs, message = make(max_skew_s=0.01), state(10)
    message.goal[0] = np.nan
    inputs.add(JOINTS, joints(10), 10 * MS)
    with pytest.raises(InputError, match=r"task_state.goal\[0\]: nan, must be finite"):
        inputs.add(STATE, message, 10 * MS)
    assert inputs.add(JOINTS, joints(11), 11 * MS) is None


@pytest.mark.parametrize("now_ms", [1011, 5000, -1011])
def test_stale_and_future_messages_are_refused(now_ms: int) -> None:
    inputs = make(max_age_s=1.0)
    stamp = 10 if now_ms > 0 else 10 - now_ms
    now = now_ms if now_ms > 0 else 5
    for topic, message in ((JOINTS, joints(stamp)), (STATE, state(stamp))):
        with pytest.raises(InputError, match="max_age_s = 1 s allowed"):
            inputs.add(topic, message, now * MS)


@pytest.mark.parametrize(("stamp_ms", "now_ms"), [(10, 10**12), (10**12, 10)])
def test_an_age_of_decades_names_the_clock(stamp_ms: int, now_ms: int) -> None:
    with pytest.raises(InputError, match=r"allowed; is use_sim_time the same at both ends\?$"):
        make().add(JOINTS, joints(stamp_ms), now_ms * MS)


def test_an_age_of_hours_does_not_name_the_clock() -> None:
    with pytest.raises(InputError, match=r"max_age_s = 1 s allowed$"):
        make().add(JOINTS, joints(10), 10**7 * MS)


JOINT_PART = {
    "channel": {"topic": JOINTS, "type": "sensor_msgs/msg/JointState"},
    "select": ["position.a", "position.b"],
}
ACTION = {
    "channel": {"topic": "command", "type": "trajectory_msgs/msg/JointTrajectory"},
    "select": ["positions.a"],
}


def counting(**top: object) -> ObservationAssembler:
    """Return an assembler for a robot whose joint states pace the steps, and that nobody counts for."""
    return ObservationAssembler(
        parse_contract(
            {
                "robot_type": "arm",
                "fps": 20,
                "observations": {"observation.state": JOINT_PART},
                "actions": {"action": ACTION},
                **top,
            }
        )
    )


def keys(inputs: ObservationAssembler, stamps_ms: list[float]) -> list[tuple[float, int, int]]:
    made = [inputs.add(JOINTS, joints_at(stamp), round(stamp * MS)) for stamp in stamps_ms]
    return [(each.stamp_ns / MS, *each.key) for each in made if each is not None]


def joints_at(stamp_ms: float) -> Any:
    return to_joint_state(["a", "b"], np.zeros(2), np.zeros(2), round(stamp_ms * MS))


def test_a_faster_topic_makes_steps_at_the_contracts_rate() -> None:
    made = keys(counting(), [10.0 * index for index in range(16)])
    assert made == [(0.0, 0, 0), (40.0, 0, 1), (90.0, 0, 2), (140.0, 0, 3)]


def test_a_long_gap_and_a_clock_that_jumps_back_begin_an_episode() -> None:
    made = keys(counting(), [0.0, 50.0, 100.0, 2000.0, 2050.0, 1000.0, 1050.0])
    assert [(episode, step) for _, episode, step in made] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 1),
        (2, 0),
        (2, 1),
    ]


def test_a_robot_that_counts_its_episodes_begins_where_configured() -> None:
    inputs = ObservationAssembler(counting().contract, first_episode=2**31 - 1)
    assert keys(inputs, [0.0, 50.0, 2000.0]) == [
        (0.0, 2**31 - 1, 0),
        (50.0, 2**31 - 1, 1),
        (2000.0, 2**31, 0),
    ]


def test_hold_takes_the_newest_that_is_not_after_and_refuses_one_too_old() -> None:
    force = {
        "channel": {"topic": "force", "type": "geometry_msgs/msg/WrenchStamped"},
        "select": ["wrench.force.z"],
        "align": {"strategy": "hold", "tolerance_ms": 30},
    }
    inputs = counting(observations={"observation.state": JOINT_PART, "observation.force": force})

    class Wrench:
        def __init__(self, stamp_ms: float, value: float) -> None:
            self.header = joints_at(stamp_ms).header
            self.wrench = type("", (), {"force": type("", (), {"z": value})()})()

    def show(stamp_ms: float, value: float) -> None:
        assert inputs.add("force", Wrench(stamp_ms, value), round(stamp_ms * MS)) is None

    show(0.0, 1.0)
    show(20.0, 2.0)
    show(48.0, 3.0)
    observation = inputs.add(JOINTS, joints_at(40.0), 48 * MS)
    assert values(observation) == [0.0, 0.0, 2.0]
    with pytest.raises(InputError, match=r"force: its newest sample is 0.0[0-9]+ s old, at most 0.03 s"):
        inputs.add(JOINTS, joints_at(90.0), 90 * MS)
    show(130.0, 4.0)
    assert values(inputs.add(JOINTS, joints_at(140.0), 140 * MS)) == [0.0, 0.0, 4.0]


def test_operators_change_units_and_back() -> None:
    part = {**JOINT_PART, "apply": ["rad2deg"]}
    action = {**ACTION, "apply": ["rad2deg", {"scale": 2.0}]}
    inputs = counting(observations={"observation.state": part}, actions={"action": action})
    message = to_joint_state(["a", "b"], np.array([np.pi, 0.0]), np.zeros(2), 0)
    assert values(inputs.add(JOINTS, message, 0)) == [180.0, 0.0]
    assert inputs.contract.action.to_wire(np.array([360.0])).tolist() == [pytest.approx(np.pi)]
    assert inputs.contract.action.from_wire(np.array([np.pi])).tolist() == [360.0]


def test_an_offset_is_added_to_what_is_observed_and_taken_from_commands() -> None:
    part = {**JOINT_PART, "apply": ["rad2deg", {"offset": [10.0, -5.0]}]}
    action = {**ACTION, "apply": ["rad2deg", {"offset": 2.0}]}
    inputs = counting(observations={"observation.state": part}, actions={"action": action})
    message = to_joint_state(["a", "b"], np.array([np.pi, 0.0]), np.zeros(2), 0)
    assert values(inputs.add(JOINTS, message, 0)) == [190.0, -5.0]
    assert inputs.contract.action.to_wire(np.array([182.0])).tolist() == [pytest.approx(np.pi)]


def test_each_joint_position_is_known_whatever_the_policys_unit() -> None:
    clamp: dict[str, object] = {"clamp": {"min": -10.0, "max": 10.0}}
    inputs = counting(observations={"observation.state": {**JOINT_PART, "apply": ["rad2deg", clamp]}})
    message = to_joint_state(["a", "b"], np.array([0.1, 1.0 / 3.0]), np.zeros(2), 0)
    observation = inputs.add(JOINTS, message, 0)
    assert observation is not None
    assert values(observation)[1] == 10.0  # the policy sees the clamp's end
    measured = inputs.contract.measured(["b", "gripper", "a"])
    assert measured.unknown == ("gripper",)
    positions = measured.positions_in(observation.read)
    assert positions.dtype == np.float64
    np.testing.assert_array_equal(positions, [1.0 / 3.0, np.nan, 0.1])


POSE = {
    "channel": {"topic": "pose", "type": "geometry_msgs/msg/PointStamped"},
    "select": ["point.x"],
}


class Pose:
    """A point somewhere, by its time."""

    def __init__(self, stamp_ms: float) -> None:
        self.header = joints_at(stamp_ms).header
        self.point = type("", (), {"x": stamp_ms})()


@pytest.mark.parametrize("strategy", ["hold", "asof"])
def test_fast_joints_wait_for_a_slow_topic_that_comes_late(strategy: str) -> None:
    """Joints at 1 kHz; a pose at 20 Hz that paces the steps and is 80 ms old when it comes."""
    joint_part = {**JOINT_PART, "align": {"strategy": strategy, "tolerance_ms": 1}}
    missed: list[InputError] = []
    contract = counting(
        paced_by="pose", observations={"observation.state": joint_part, "observation.pose": POSE}
    ).contract
    inputs = ObservationAssembler(contract, missed=missed.append)
    made = []
    for now in range(100, 2100):
        message = to_joint_state(["a", "b"], np.full(2, float(now)), np.zeros(2), now * MS)
        assert inputs.add(JOINTS, message, now * MS) is None
        if now >= 180 and now % 50 == 30:
            made.append(inputs.add("pose", Pose(now - 80), now * MS))
    assert [values(each) for each in made] == [[at, at, at] for at in np.arange(100.0, 2001.0, 50.0)]
    assert missed == []


def test_a_step_that_waits_in_vain_says_for_what() -> None:
    missed: list[InputError] = []
    inputs = ObservationAssembler(make(max_skew_s=0.004).contract, missed=missed.append)
    inputs.add(STATE, state(10, step=0), 10 * MS)
    inputs.add(STATE, state(10, step=0), 12 * MS)  # the same again
    assert missed == []
    inputs.add(STATE, state(60, step=1), 60 * MS)
    inputs.add(JOINTS, joints(67), 67 * MS)
    inputs.add(STATE, state(110, step=2), 110 * MS)
    assert values(inputs.add(JOINTS, joints(110), 110 * MS)) == [0.0, 1.0, 5.0, 6.0]
    inputs.add(STATE, state(160, step=3), 160 * MS)
    assert [str(each) for each in missed] == [
        "joint_states: no sample for a step has come (observation.joints)",
        "joint_states: the sample nearest to a step is 0.007 s away, at most 0.004 s allowed "
        "(observation.joints)",
    ]
    inputs.clear()  # nobody waits any more
    inputs.add(STATE, state(210, step=4), 210 * MS)
    assert len(missed) == 2


def test_a_stamp_of_zero_names_the_cure() -> None:
    inputs = make()
    with pytest.raises(InputError, match=r"stamp: 0, must be set by the driver, or align: .timeline"):
        inputs.add(JOINTS, joints(0), 10_000 * MS)
    inputs.add(JOINTS, joints(0), 10 * MS)  # a simulator's first message


def test_cameras_without_colour_are_named_until_they_show_one() -> None:
    values_of = plain_values("robot", 20.0, ["a", "b"], 2, 1, ["a"], "positions")
    contract = parse_contract(with_camera(values_of, "ball", 4, 4, for_target=True))
    inputs, frame = ObservationAssembler(contract), np.full((4, 4, 3), 7, dtype=np.uint8)
    assert not inputs.picture_faults
    for step, (red, warned) in enumerate([(7, True), (7, True), (200, False), (7, False)]):
        frame[0, 0, 0] = red
        at = 10 + 50 * step
        inputs.add("camera/image_raw", to_image(frame, at * MS), at * MS)
        inputs.add(JOINTS, joints(at), at * MS)
        assert inputs.add(STATE, state(at, step=step), at * MS) is not None
        assert [": no image has colour" in fault for fault in inputs.picture_faults] == [True] * warned


@pytest.mark.parametrize(
    ("encoder", "size", "said"),
    [
        ("", (48, 64), "48 x 64 pixels are stretched to 12 x 12: resize to the camera's own size"),
        ("", (8, 8), "8 x 8 pixels are enlarged to 12 x 12: "),
        ("ball", (48, 64), ""),
        ("", (60, 62), ""),  # by a pixel
    ],
)
def test_images_for_the_target_that_are_stretched_are_named(
    encoder: str, size: tuple[int, int], said: str
) -> None:
    values_of = plain_values("robot", 20.0, ["a", "b"], 2, 1, ["a"], "positions")
    contract = parse_contract(with_camera(values_of, "ball", 12, 12, for_target=True) | {"encoder": encoder})
    frame = np.full((*size, 3), 7, dtype=np.uint8)
    frame[..., 0] = 200
    pictured = Received("camera/image_raw", to_image(frame, 10 * MS), 10 * MS)
    others = Received(JOINTS, joints(10), 10 * MS), Received(STATE, state(10, step=0), 10 * MS)
    found = survey((pictured, *others), contract)
    assert found.observations == 1
    assert [said in fault for fault in found.picture_faults] == [True] * bool(said)


def test_a_topic_with_other_names_only_is_named() -> None:
    inputs = make()
    strange = to_joint_state(["aa", "x"], np.zeros(2), np.zeros(2), 10 * MS)
    assert inputs.add(JOINTS, strange, 10 * MS) is None
    assert inputs.arrived() == {JOINTS: "joint_states.name: ['aa', 'x'], has none of ['a', 'b']"}
    inputs.add(JOINTS, joints(11), 11 * MS)
    inputs.add(JOINTS, strange, 12 * MS)  # of a gripper, such as often share the topic
    assert inputs.arrived() == {JOINTS: ""}
    assert inputs.arrived() == {}
