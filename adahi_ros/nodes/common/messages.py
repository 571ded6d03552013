# SPDX-License-Identifier: Apache-2.0
"""Between arrays and messages, both ways. Knows no torch, decides nothing."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np
from adahi_msgs.msg import DraftStatus, EpisodeResult, LinkState, TaskState
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from builtin_interfaces.msg import Duration, Time
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from adahi_ros.contract.fields import NANOSECONDS, stamp_ns
from adahi_ros.core.signature import CodeSpace, Feature, ImageInput, Signature
from adahi_ros.core.texts import fingerprint_number, fingerprint_text, shortened
from adahi_ros.gates.interface import LinkEstimate
from adahi_ros.nodes.common.bounds import check_request_bounds, check_signature_bounds
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.records import EpisodeRecord, StepRecord
from adahi_ros.protocol.request import PROTOCOL_VERSION, RequestError, RequestFault, check_protocol
from adahi_ros.protocol.sent_reply import SentReply
from adahi_ros.protocol.sent_request import SentRequest
from adahi_ros.protocol.window import WindowUpdate, WireRows
from adahi_ros.vision.interface import MAX_SIDE

CAMERA_FRAME = "camera_optical_frame"
JPEG = "jpeg"
TOLD_ALIKE = (  # by StepRecord and DraftStatus
    *("robot_id", "gate", "deviation", "score", "threshold", "transmitted", "verified"),
    *("proposer", "plan_age", "plan_left", "expected_error", "requests_pending"),
    *("draft_ms", "verify_ms", "target_compute_ms", "total_ms", "request_bytes", "response_bytes"),
)


def to_stamp(nanoseconds: int) -> Time:
    """Make a stamp from nanoseconds since the epoch."""
    return Time(sec=nanoseconds // NANOSECONDS, nanosec=nanoseconds % NANOSECONDS)


from_stamp = stamp_ns
"""The way back."""


def _floats(values: np.ndarray) -> array:
    return array("f", values.astype(np.float32, copy=False).tobytes())


def doubles(values: np.ndarray) -> array:
    """Return numbers as a message holds float64."""
    return array("d", np.asarray(values, dtype=np.float64).tobytes())


def _codes(values: np.ndarray) -> array:
    return array("H", values.astype(np.uint16, copy=False).tobytes())


def to_request(request: SentRequest, session: int, needed_in_s: float = 0.0) -> VerifyDraft.Request:
    """Make the message of a request, in a session of the robot that needs the reply so soon."""
    rows = request.update.rows
    return VerifyDraft.Request(
        protocol=PROTOCOL_VERSION,
        robot_id=request.robot_id,
        session_id=session,
        target=request.target,
        needed_in_s=needed_in_s,
        episode_id=request.episode,
        step_id=request.step,
        first_step=request.first_step,
        tokenizer_fingerprint=request.fingerprint,
        base_window=request.update.base,
        observation_window=array("f", rows.numbers),
        features=array("H", rows.features),
        images=[_jpeg(image) for image in rows.images],
        goal=array("f", request.update.goal),
        instruction=request.instruction,
        draft_actions=_floats(request.actions),
        codes=_codes(request.codes),
        draft_probabilities=_codes(request.counts),
        round_trip_ms=request.round_trip_ms,
    )


def _jpeg(image: bytes) -> CompressedImage:
    return CompressedImage(format=JPEG, data=array("B", image))


def from_request(message: VerifyDraft.Request) -> SentRequest:
    """Return what a message says, unchecked; `Engine.verify` checks it.

    Raises:
        RequestError: it is of another protocol, a field is longer than it may be, or an image of another
            format.
    """
    check_protocol(message.protocol)
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
    return SentRequest(
        robot_id=message.robot_id,
        target=message.target,
        episode=message.episode_id,
        step=message.step_id,
        first_step=message.first_step,
        fingerprint=message.tokenizer_fingerprint,
        update=WindowUpdate(message.base_window, rows, message.goal.tobytes()),
        instruction=message.instruction,
        actions=np.asarray(message.draft_actions, dtype=np.float32),
        codes=np.asarray(message.codes, dtype=np.int64),
        counts=np.asarray(message.draft_probabilities, dtype=np.int64),
        round_trip_ms=message.round_trip_ms,
    )


def to_reply(reply: SentReply) -> VerifyDraft.Response:
    """Make the message of a reply, all but how long it took."""
    return VerifyDraft.Response(
        status=reply.status,
        message=reply.message,
        episode_id=reply.episode,
        step_id=reply.step,
        first_step=reply.first_step,
        actions=_floats(reply.actions),
        accepted=list(reply.accepted),
        window_kept=reply.window_kept,
        retry_after_s=reply.retry_after_s,
    )


def from_reply(response: VerifyDraft.Response) -> tuple[Sequence[bool], Sequence[float]]:
    """Return accepted and actions, flat and unchecked; see `check_reply`."""
    return response.accepted, response.actions


def describe(description: Description) -> DescribeTarget.Response:
    """Make the message that describes a target."""
    signature = description.signature
    features, conditions, codes = signature.features, signature.conditions, signature.codes
    return DescribeTarget.Response(
        protocol=description.protocol,
        target=description.target,
        acceptance=description.acceptance,
        feature_names=[each.name for each in features],
        feature_sizes=[each.size for each in features],
        feature_entries=_entries(features),
        image_names=[each.name for each in signature.images],
        image_rows=[each.rows for each in signature.images],
        image_columns=[each.columns for each in signature.images],
        image_padded=[each.padded for each in signature.images],
        condition_names=[each.name for each in conditions],
        condition_sizes=[each.size for each in conditions],
        instruction=signature.instruction,
        history=signature.history,
        horizon=signature.horizon,
        action_dim=signature.action_dim,
        action_names=list(signature.action_names),
        rate_hz=signature.rate_hz,
        tokenizer_fingerprint=fingerprint_number("" if codes is None else codes.fingerprint),
        codebooks=0 if codes is None else codes.codebooks,
        codebook_size=0 if codes is None else codes.codebook_size,
        encoder_fingerprint=fingerprint_number(description.encoder_fingerprint),
        parameters=signature.parameters,
        policy_fingerprint=fingerprint_number(description.policy_fingerprint),
    )


def from_description(response: DescribeTarget.Response) -> Description:
    """Return what a message describes; a stranger's texts, which may be of any length, are shortened.

    Raises:
        ValueError: it names features, conditions or images without their sizes, or the other way round; its
            rate is none; or what it reads and proposes cannot be said in messages.
    """
    if response.targets and not response.target:
        there_are = ", ".join(repr(shortened(name)) for name in response.targets)
        raise ValueError(f"target: no policy of this name is there, must be one of {shortened(there_are)}")
    if not 0.0 <= response.rate_hz < math.inf:
        raise ValueError(f"rate_hz: {response.rate_hz}, must be finite and at least 0")
    fingerprint = fingerprint_text(response.tokenizer_fingerprint)
    codes = CodeSpace(fingerprint, response.codebooks, response.codebook_size) if fingerprint else None
    signature = Signature(
        history=response.history,
        horizon=response.horizon,
        action_dim=response.action_dim,
        features=_features(response),
        conditions=_parts("condition", response.condition_names, response.condition_sizes),
        codes=codes,
        instruction=response.instruction,
        parameters=response.parameters,
        images=_images(response),
        action_names=tuple(map(shortened, response.action_names)),
        rate_hz=response.rate_hz,
    )
    if response.protocol == PROTOCOL_VERSION:  # that of another is told first
        check_signature_bounds(signature)
    return Description(
        target=shortened(response.target),
        acceptance=shortened(response.acceptance),
        signature=signature,
        encoder_fingerprint=fingerprint_text(response.encoder_fingerprint),
        protocol=response.protocol,
        policy_fingerprint=fingerprint_text(response.policy_fingerprint),
    )


def _parts(kind: str, names: Sequence[str], sizes: Sequence[int]) -> tuple[Feature, ...]:
    if len(names) != len(sizes):
        raise ValueError(f"{kind}_sizes: {len(sizes)}, must be as many as {kind}_names, {len(names)}")
    return tuple(Feature(shortened(name), size) for name, size in zip(names, sizes, strict=True))


def _entries(features: Sequence[Feature]) -> list[str]:
    """Return what the numbers of all features are, one after the other; nothing where one does not say."""
    if not all(len(each.entries) == each.size for each in features):
        return []
    return [entry for each in features for entry in each.entries]


def _features(response: DescribeTarget.Response) -> tuple[Feature, ...]:
    features = _parts("feature", response.feature_names, response.feature_sizes)
    entries = list(map(shortened, response.feature_entries))
    if not entries:
        return features
    if len(entries) != sum(each.size for each in features):
        raise ValueError(
            f"feature_entries: {len(entries)}, must be none, or the sum of feature_sizes, "
            f"{sum(each.size for each in features)}"
        )
    named, start = [], 0
    for each in features:
        named.append(Feature(each.name, each.size, tuple(entries[start : start + each.size])))
        start += each.size
    return tuple(named)


def _images(response: DescribeTarget.Response) -> tuple[ImageInput, ...]:
    names, told = response.image_names, ("image_rows", "image_columns", "image_padded")
    for field in told:
        values = getattr(response, field)
        if len(values) != len(names):
            raise ValueError(f"{field}: {len(values)}, must be as many as image_names, {len(names)}")
        for size in values:
            if field != "image_padded" and not 1 <= size <= MAX_SIDE:
                raise ValueError(f"{field}: {size}, must be from 1 to {MAX_SIDE}")
    sizes = zip(names, *(getattr(response, field) for field in told), strict=True)
    return tuple(ImageInput(shortened(name), *size) for name, *size in sizes)


def to_command(
    names: Sequence[str], field: str, action: np.ndarray, period_s: float, stamp_ns: int
) -> JointTrajectory:
    """Make the command of one control step: one point, to be reached a period after the stamp.

    Args:
        names: what the action's entries command.
        field: of the point that they go to, such as `positions` or `velocities`.
        action: (A,).
        period_s: of the control.
        stamp_ns: when the period starts; 0 for at receipt, which leaves the controller the whole period.
    """
    reached = Duration(sec=int(period_s), nanosec=int(period_s % 1 * NANOSECONDS))
    return JointTrajectory(
        header=Header(stamp=to_stamp(stamp_ns)),
        joint_names=list(names),
        points=[JointTrajectoryPoint(**{field: doubles(action)}, time_from_start=reached)],
    )


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


def to_task_state(
    state: np.ndarray, goal: np.ndarray, episode: int, step: int, stamp_ns: int, frame_id: str = ""
) -> TaskState:
    """Make a TaskState from state (S,) and goal (G,), measured in a frame."""
    return TaskState(
        header=Header(stamp=to_stamp(stamp_ns), frame_id=frame_id),
        episode_id=episode,
        step_id=step,
        state=doubles(state),
        goal=doubles(goal),
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
