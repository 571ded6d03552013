"""Why no message of an observed topic arrives: each reason has its sentence."""

from __future__ import annotations

import pytest

from adahi_ros.contract.contract import JOINT_STATE, Channel
from adahi_ros.contract.published import Endpoint, why_silent

JOINTS = Channel("joint_states", JOINT_STATE)
DRIVER = Endpoint("/driver", JOINT_STATE)
SENSOR = Endpoint("/driver", JOINT_STATE, "best_effort")


@pytest.mark.parametrize(
    ("published", "fault"),
    [
        ({}, f"/joint_states has no publisher, nor has any other topic of {JOINT_STATE}"),
        (
            {"/joint_states": [], "/joint_state": [DRIVER], "/arm": [DRIVER]},
            "/joint_states has no publisher; there is /joint_state (/driver)",
        ),
        (
            {"/left/joint_states": [DRIVER]},
            "/joint_states has no publisher; there is /left/joint_states: is the namespace /left?",
        ),
        (
            {"/a": [DRIVER], "/b": [Endpoint("/other", JOINT_STATE)]},
            "/joint_states has no publisher; there is /a (/driver), /b (/other)",
        ),
        (
            {"/joint_states": [Endpoint("/driver", "std_msgs/msg/String")]},
            f"/joint_states of /driver is std_msgs/msg/String, must be {JOINT_STATE}",
        ),
    ],
)
def test_a_topic_without_a_publisher_is_named_with_the_nearest(
    published: dict[str, list[Endpoint]], fault: str
) -> None:
    assert why_silent("/joint_states", JOINTS, published) == fault


def test_a_raw_topic_is_named_where_a_compressed_one_is_missing() -> None:
    image, raw = "sensor_msgs/msg/CompressedImage", Endpoint("/camera", "sensor_msgs/msg/Image")
    fault = "/a/compressed has no publisher; there is /a (sensor_msgs/msg/Image)"
    assert why_silent("/a/compressed", Channel("a/compressed", image), {"/a": [raw]}) == fault


def test_a_topic_with_a_fitting_publisher_is_silent_by_itself() -> None:
    fault = "/joint_states: /driver publishes it, but no message arrives"
    assert why_silent("/joint_states", JOINTS, {"/joint_states": [SENSOR]}) == fault
    reliable = Channel("joint_states", JOINT_STATE, "reliable")
    assert why_silent("/joint_states", reliable, {"/joint_states": [SENSOR, DRIVER]}) == fault


@pytest.mark.parametrize(
    ("channel", "fault"),
    [
        (
            Channel("joint_states", JOINT_STATE, "reliable"),
            "/joint_states: the reliability of /driver is best_effort, the contract's qos wants reliable",
        ),
        (
            Channel("joint_states", JOINT_STATE, durability="transient_local"),
            "/joint_states: the durability of /driver is volatile, the contract's qos wants transient_local",
        ),
    ],
)
def test_a_qos_that_no_publisher_offers_is_named(channel: Channel, fault: str) -> None:
    assert why_silent("/joint_states", channel, {"/joint_states": [SENSOR]}) == fault
