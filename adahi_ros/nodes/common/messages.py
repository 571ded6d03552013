"""Between arrays and messages, both ways. Knows no torch, decides nothing."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from adahi_msgs.msg import DraftStatus, EpisodeResult, LinkState, TaskState
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from builtin_interfaces.msg import Duration, Time
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from adahi_ros.contract.contract import Channel
from adahi_ros.contract.times import NANOSECONDS, stamp_ns
from adahi_ros.gates.context import LinkEstimate
from adahi_ros.nodes.common.bounds import check_request_bounds, shortened
from adahi_ros.policy.interface import Policy, PolicySpec
from adahi_ros.server.engine import Answered
from adahi_ros.wire.records import EpisodeRecord, StepRecord
from adahi_ros.wire.request import RequestError, RequestFault, VerificationRequest
from adahi_ros.wire.window import WireRows
from adahi_ros.wire.window_updates import WindowUpdate

COMMAND_FIELDS = tuple(
    field for field in JointTrajectoryPoint.get_fields_and_field_types() if field != "time_from_start"
)
CAMERA_FRAME = "camera_optical_frame"
JPEG = "jpeg"
TOLD_ALIKE = (  # by StepRecord and DraftStatus
    *("robot_id", "gate", "deviation", "score", "threshold", "transmitted", "verified"),
    *("draft_ms", "verify_ms", "target_compute_ms", "total_ms", "request_bytes", "response_bytes"),
)
REQUESTS_KEPT = 100  # by a verifier that is busy, of all its robots together
RELIABILITIES = {
    "best_effort": ReliabilityPolicy.BEST_EFFORT,
    "reliable": ReliabilityPolicy.RELIABLE,
}


def observation_qos(channel: Channel) -> QoSProfile:
    """Return the QoS of a subscription to what a contract observes."""
    return QoSProfile(
        history=HistoryPolicy[channel.history.upper()],
        depth=channel.depth,
        reliability=ReliabilityPolicy[channel.reliability.upper()],
        durability=DurabilityPolicy[channel.durability.upper()],
    )


def verify_qos(reliability: str) -> QoSProfile:
    """Return the QoS of `verify_draft`, the same at both ends.

    Args:
        reliability: a key of `RELIABILITIES`. With best_effort a lost request is sent again by the
            robot, which knows when; with reliable DDS sends it again, and acknowledges every message.
    """
    return QoSProfile(depth=REQUESTS_KEPT, reliability=RELIABILITIES[reliability])


def to_stamp(nanoseconds: int) -> Time:
    """Make a stamp from nanoseconds since the epoch."""
    return Time(sec=nanoseconds // NANOSECONDS, nanosec=nanoseconds % NANOSECONDS)


from_stamp = stamp_ns
"""The way back."""


def _floats(values: np.ndarray) -> array:
    return array("f", values.astype(np.float32, copy=False).tobytes())


def _doubles(values: np.ndarray) -> array:
    return array("d", np.asarray(values, dtype=np.float64).tobytes())


def _codes(values: np.ndarray) -> array:
    return array("H", values.astype(np.uint16, copy=False).tobytes())


def fingerprint_number(fingerprint: str) -> int:
    """Return a tokenizer's fingerprint, 16 hexadecimal digits, as the number that requests carry."""
    return int(fingerprint, 16)


def to_request(
    request: VerificationRequest,
    window: WindowUpdate,
    robot_id: str,
    session: int,
    episode: int,
    step: int,
    fingerprint: int,
) -> VerifyDraft.Request:
    """Make the request about one robot's draft (M = 1), its window as it is to be sent."""
    return VerifyDraft.Request(
        robot_id=robot_id,
        session_id=session,
        episode_id=episode,
        step_id=step,
        tokenizer_fingerprint=fingerprint,
        base_window=window.base,
        observation_window=array("f", window.rows.numbers),
        features=array("H", window.rows.features),
        images=[_jpeg(image) for image in window.rows.images],
        goal=array("f", window.goal),
        codes=_codes(request.codes),
        draft_probabilities=_codes(request.counts),
    )


def _jpeg(image: bytes) -> CompressedImage:
    return CompressedImage(format=JPEG, data=array("B", image))


def from_request(message: VerifyDraft.Request) -> tuple[WindowUpdate, np.ndarray, np.ndarray]:
    """Return the window as it was sent, codes and counts, flat and unchecked.

    `WindowCache.complete` makes a window of the first, `check_request` a request of that and the others.

    Raises:
        RequestError: a field is longer than it may be, or an image of another format.
    """
    check_request_bounds(message)
    for index, image in enumerate(message.images):
        if image.format != JPEG:
            raise RequestError(
                RequestFault.WRONG_SHAPE, f"images[{index}].format: {image.format[:20]!r}, must be {JPEG!r}"
            )
    rows = WireRows(
        message.observation_window.tobytes(),
        message.features.tobytes(),
        tuple(image.data.tobytes() for image in message.images),
    )
    return (
        WindowUpdate(message.base_window, rows, message.goal.tobytes()),
        np.asarray(message.codes, dtype=np.int64),
        np.asarray(message.draft_probabilities, dtype=np.int64),
    )


def fill_reply(response: VerifyDraft.Response, answered: Answered) -> None:
    """Put the verification of one robot's draft (M = 1) into a reply."""
    verification, response.window_kept = answered
    response.codes = _codes(verification.codes)
    response.accepted = [bool(kept) for kept in verification.accepted[0]]
    response.offset = _floats(verification.offset)


def from_reply(response: VerifyDraft.Response) -> tuple[Sequence[int], Sequence[bool], Sequence[float]]:
    """Return codes, accepted and offset, flat and unchecked; see `check_answer`."""
    return response.codes, response.accepted, response.offset


def describe(policy: Policy, encoder_fingerprint: str = "") -> DescribeTarget.Response:
    """Make the message that says what a policy expects, and the encoder of images beside it if any."""
    return DescribeTarget.Response(
        tokenizer_fingerprint=policy.decoder.fingerprint,
        encoder_fingerprint=encoder_fingerprint,
        **vars(policy.spec),
    )


def from_description(response: DescribeTarget.Response) -> tuple[PolicySpec, str]:
    """Return the target's sizes and its tokenizer's fingerprint."""
    sizes = {field.name: getattr(response, field.name) for field in fields(PolicySpec)}
    return PolicySpec(**sizes), response.tokenizer_fingerprint


def to_command(
    names: Sequence[str], field: str, action: np.ndarray, period_s: float, stamp_ns: int
) -> JointTrajectory:
    """Make the command of one control step: one point, to be reached a period after the observation.

    Args:
        names: what the action's entries command.
        field: of the point that they go to, such as `positions` or `velocities`.
        action: (A,).
        period_s: of the control.
        stamp_ns: of the observation.

    The stamp is that of the observation, so a receiver can tell which one it belongs to, and a
    trajectory controller refuses a command that comes more than a period late.
    """
    reached = Duration(sec=int(period_s), nanosec=int(period_s % 1 * NANOSECONDS))
    return JointTrajectory(
        header=Header(stamp=to_stamp(stamp_ns)),
        joint_names=list(names),
        points=[JointTrajectoryPoint(**{field: _doubles(action)}, time_from_start=reached)],
    )


def to_joint_state(
    joint_names: Sequence[str], positions: np.ndarray, velocities: np.ndarray, stamp_ns: int
) -> JointState:
    """Make a JointState from positions (J,) and velocities (J,)."""
    return JointState(
        header=Header(stamp=to_stamp(stamp_ns)),
        name=list(joint_names),
        position=_doubles(positions),
        velocity=_doubles(velocities),
    )


def to_task_state(
    state: np.ndarray, goal: np.ndarray, episode: int, step: int, stamp_ns: int, frame_id: str = ""
) -> TaskState:
    """Make a TaskState from state (S,) and goal (G,), measured in a frame."""
    return TaskState(
        header=Header(stamp=to_stamp(stamp_ns), frame_id=frame_id),
        episode_id=episode,
        step_id=step,
        state=_doubles(state),
        goal=_doubles(goal),
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
        action=list(record.action),
        message=shortened(record.message),
        **{name: getattr(record, name) for name in TOLD_ALIKE},
    )


def from_status(message: DraftStatus) -> StepRecord:
    """Return a control step without ROS types."""
    return StepRecord.told(message, from_stamp(message.header.stamp))


def to_link_state(
    estimate: LinkEstimate, robot_id: str, verifier: int, windows_resent: int, stamp_ns: int
) -> LinkState:
    """Make the message of how the link is; `verifier` is one of LinkState.VERIFIER_*."""
    return LinkState(
        header=Header(stamp=to_stamp(stamp_ns)),
        robot_id=robot_id,
        verifier=verifier,
        windows_resent=windows_resent,
        **vars(estimate),
    )


def to_episode_result(record: EpisodeRecord, stamp_ns: int) -> EpisodeResult:
    """Make the message of one episode's end."""
    header = Header(stamp=to_stamp(stamp_ns))
    return EpisodeResult(header=header, episode_id=record.episode, steps=record.steps, success=record.success)


def from_episode_result(message: EpisodeResult) -> EpisodeRecord:
    """Return one episode's end without ROS types."""
    return EpisodeRecord(message.episode_id, message.steps, message.success)
