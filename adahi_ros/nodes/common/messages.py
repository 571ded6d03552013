# SPDX-License-Identifier: Apache-2.0
"""Converts arrays and records to messages of sensors and status, and back."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from adahi_msgs.msg import DraftStatus, LinkState
from builtin_interfaces.msg import Time
from rclpy.duration import Duration
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from adahi_ros.contract.fields import NANOSECONDS, stamp_ns
from adahi_ros.contract.sinks.interface import doubles
from adahi_ros.core.texts import shortened
from adahi_ros.gates.interface import LinkEstimate
from adahi_ros.protocol.records import StepRecord
from adahi_ros.protocol.run_records import step_record_from_message

CAMERA_FRAME = "camera_optical_frame"
SAME_NAMES = (  # fields with the same name in StepRecord and DraftStatus
    *("robot_id", "gate", "deviation", "score", "threshold", "transmitted", "verified"),
    *("proposer", "plan_age", "plan_left", "expected_error", "requests_pending"),
    *("draft_ms", "verify_ms", "target_compute_ms", "total_ms", "request_bytes", "response_bytes"),
)


def to_stamp(nanoseconds: int) -> Time:
    """Make a stamp from nanoseconds since the epoch."""
    return Time(sec=nanoseconds // NANOSECONDS, nanosec=nanoseconds % NANOSECONDS)


from_stamp = stamp_ns
"""Return nanoseconds since the epoch from a stamp."""


def to_joint_state(
    joint_names: Sequence[str], positions: np.ndarray, velocities: np.ndarray, stamp_ns: int
) -> JointState:
    """Make a JointState from positions (J,) and velocities (J,)."""
    return JointState(
        header=Header(stamp=to_stamp(stamp_ns)),
        name=list(joint_names),
        position=doubles(positions),
        velocity=doubles(velocities),
    )


def to_trajectory(
    joint_names: Sequence[str], places: np.ndarray, period_s: float, stamp_ns: int
) -> JointTrajectory:
    """Make a trajectory that reaches positions (K, J) one after another, a period each."""
    points = [JointTrajectoryPoint(positions=doubles(place)) for place in places]
    for step, point in enumerate(points, 1):
        point.time_from_start = Duration(seconds=step * period_s).to_msg()
    return JointTrajectory(
        header=Header(stamp=to_stamp(stamp_ns)), joint_names=list(joint_names), points=points
    )


def to_image(pixels: np.ndarray, stamp_ns: int) -> Image:
    """Make an image message, rgb8, from (rows, columns, 3) uint8."""
    rows, columns, _ = pixels.shape
    return Image(
        header=Header(stamp=to_stamp(stamp_ns), frame_id=CAMERA_FRAME),
        height=rows,
        width=columns,
        encoding="rgb8",
        step=3 * columns,
        data=array("B", pixels.tobytes()),
    )


def to_status(record: StepRecord) -> DraftStatus:
    """Make the message of one control step."""
    return DraftStatus(
        header=Header(stamp=to_stamp(record.stamp_ns)),
        episode_id=record.episode,
        step_id=record.step,
        accepted=list(record.accepted),
        reason=int(record.reason),
        reason_counts=list(record.reason_counts),
        draft_action=list(record.draft_action),
        planned_action=list(record.planned_action),
        action=list(record.action),
        message=record.message and shortened(record.message),
        **{name: getattr(record, name) for name in SAME_NAMES},
    )


def from_status(message: DraftStatus) -> StepRecord:
    """Return a control step without ROS types."""
    return step_record_from_message(message, from_stamp(message.header.stamp))


def to_link_state(
    estimate: LinkEstimate, robot_id: str, verifier: int, windows_resent: int, stamp_ns: int
) -> LinkState:
    """Make the message of the link's state; `verifier` is one of LinkState.VERIFIER_*."""
    return LinkState(
        header=Header(stamp=to_stamp(stamp_ns)),
        robot_id=robot_id,
        verifier=verifier,
        windows_resent=windows_resent,
        **vars(estimate),
    )
