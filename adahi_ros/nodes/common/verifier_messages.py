# SPDX-License-Identifier: Apache-2.0
"""Converts messages of `verify_draft` and `describe_target`, and checks the lengths of their fields.

The message definitions bound the fields, but the receiver must check them: Fast DDS and rclpy deliver strings
and sequences of any length. A sender cannot send a sequence that is too long.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from adahi_msgs.msg import DraftStatus
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from sensor_msgs.msg import CompressedImage

from adahi_ros.core.signature import CodeSpace, Feature, ImageInput, Signature
from adahi_ros.core.texts import NAME_LENGTH, shortened
from adahi_ros.protocol.description import Described, Description
from adahi_ros.protocol.request import (
    NO_FINGERPRINT,
    PROTOCOL_VERSION,
    Reply,
    Request,
    RequestError,
    RequestFault,
    Sender,
    fingerprint_number,
    fingerprint_text,
)
from adahi_ros.protocol.window import IMAGE_FORMAT, WireRows, WireWindow, reply_bytes, request_bytes
from adahi_ros.vision.interface import MAX_SIDE


def _bounds(kind: Any) -> dict[str, int]:
    """Return the bounds of a message's strings (characters) and sequences (entries), by field."""
    found = {}
    for field, described in kind.get_fields_and_field_types().items():
        bounded = re.fullmatch(r"(?:string|sequence)<(?:.+, )?(\d+)>", described)
        if bounded:
            found[field] = int(bounded[1])
    return found


REQUEST = _bounds(VerifyDraft.Request)
RESPONSE = _bounds(VerifyDraft.Response)
STATUS = _bounds(DraftStatus)
IMAGE_BYTES = 10_000_000  # our own bound: CompressedImage has none


def check_request_bounds(message: VerifyDraft.Request) -> None:
    """Check the lengths of all strings and sequences, before anything is copied.

    Raises:
        RequestError: names the first field that is too long, its length and what is allowed.
    """
    for field, most in REQUEST.items():
        _check(field, len(getattr(message, field)), most)
    for index, image in enumerate(message.images):
        _check(f"images[{index}].data", len(image.data), IMAGE_BYTES)


def _check(field: str, length: int, most: int) -> None:
    if length > most:
        raise RequestError(RequestFault.WRONG_SHAPE, f"{field}: length {length}, must be at most {most}")


def check_response_bounds(message: VerifyDraft.Response) -> None:
    """Check the lengths of all sequences; the reader shortens texts.

    Raises:
        RequestError: names the first field that is too long, its length and what is allowed.
    """
    for field in ("accepted", "actions"):
        _check(field, len(getattr(message, field)), RESPONSE[field])


def check_signature_bounds(signature: Signature) -> None:
    """Check that requests and replies of a policy with these sizes fit in messages.

    Raises:
        ValueError: names the first size that is too large, its value and what is allowed.
    """
    actions = signature.horizon * signature.action_dim
    sizes = {
        "history times observation_dim": (
            signature.history * signature.observation_dim,
            REQUEST["observation_window"],
        ),
        "goal_dim": (signature.goal_dim, REQUEST["goal"]),
        "horizon times action_dim": (actions, min(REQUEST["draft_actions"], RESPONSE["actions"])),
        "action_dim": (signature.action_dim, STATUS["action"]),
        "history times images": (signature.history * len(signature.images), REQUEST["images"]),
    }
    if signature.codes is not None:
        books, size = signature.codes.codebooks, signature.codes.codebook_size
        sizes["codebooks"] = books, REQUEST["codes"]
        sizes["codebooks times codebook_size"] = books * size, REQUEST["draft_probabilities"]
    for name, (size, most) in sizes.items():
        if size > most:
            raise ValueError(f"{name}: {size}, must be at most {most}")


def to_request(request: Request, window: WireWindow, sender: Sender) -> VerifyDraft.Request:
    """Make the message of a request.

    Args:
        request: to send.
        window: the part of its window that is sent.
        sender: the robot.
    """
    rows = window.rows
    has_codes = bool(request.codes.size)
    return VerifyDraft.Request(
        protocol=PROTOCOL_VERSION,
        robot_id=sender.robot_id,
        session_id=sender.session,
        target=sender.target,
        needed_in_s=request.needed_in_s,
        episode_id=request.episode,
        step_id=request.step,
        first_step=request.first_step,
        tokenizer_fingerprint=sender.fingerprint_number if has_codes else NO_FINGERPRINT,
        base_window=window.base,
        observation_window=array("f", rows.numbers),
        features=array("H", rows.features),
        images=[CompressedImage(format=IMAGE_FORMAT, data=array("B", image)) for image in rows.images],
        goal=array("f", window.goal),
        instruction=request.instruction,
        draft_actions=_floats(request.actions),
        codes=_codes(request.codes),
        draft_probabilities=_codes(request.counts),
        round_trip_ms=request.round_trip_ms,
    )


def _floats(values: np.ndarray) -> array:
    return array("f", values.astype(np.float32, copy=False).tobytes())


def _codes(values: np.ndarray) -> array:
    return array("H", values.astype(np.uint16, copy=False).tobytes())


def size_of(message: VerifyDraft.Request) -> int:
    """Return the size of a serialized request in bytes."""
    return request_bytes(
        len(message.observation_window),
        len(message.features),
        len(message.goal),
        len(message.draft_actions),
        len(message.codes),
        len(message.draft_probabilities),
        message.robot_id,
        message.target,
        message.instruction,
        [len(image.data) for image in message.images],
    )


def header_of(message: VerifyDraft.Request) -> Request:
    """Return the part of a request that replies and queues need.

    A name that is too long is cut, but stays longer than allowed.
    """
    return Request(**_header(message))


def _header(message: VerifyDraft.Request) -> dict[str, Any]:
    needed_in_s = message.needed_in_s
    return {
        "episode": message.episode_id,
        "step": message.step_id,
        "first_step": message.first_step,
        "needed_in_s": needed_in_s if 0.0 < needed_in_s < math.inf else 0.0,
        "robot_id": message.robot_id[: NAME_LENGTH + 1],
        "session": message.session_id,
        "target": message.target[: NAME_LENGTH + 1],
    }


def from_request(message: VerifyDraft.Request) -> Request:
    """Return the request of a message, unchecked: `Engine` checks it.

    With another protocol, a field that is too long or an image of another format, the request has a `fault`
    and no content.
    """
    header = _header(message)
    try:
        if message.protocol != PROTOCOL_VERSION:
            raise RequestError(
                RequestFault.PROTOCOL_MISMATCH,
                f"protocol: the request's is {message.protocol}, the verifier's {PROTOCOL_VERSION}; "
                "must be the same",
            )
        check_request_bounds(message)
        for index, image in enumerate(message.images):
            if image.format != IMAGE_FORMAT:
                raise RequestError(
                    RequestFault.WRONG_SHAPE,
                    f"images[{index}].format: {image.format[:20]!r}, must be {IMAGE_FORMAT!r}",
                )
    except RequestError as error:
        return Request(**header, fault=error.with_traceback(None))
    rows = WireRows(
        message.observation_window.tobytes(),
        message.features.tobytes(),
        tuple(image.data.tobytes() for image in message.images),
    )
    return Request(
        **header,
        window=WireWindow(message.base_window, rows, message.goal.tobytes()),
        actions=np.asarray(message.draft_actions, dtype=np.float32),
        codes=np.asarray(message.codes, dtype=np.int64),
        counts=np.asarray(message.draft_probabilities, dtype=np.int64),
        instruction=message.instruction,
        round_trip_ms=message.round_trip_ms,
        fingerprint=message.tokenizer_fingerprint,
    )


def to_reply(reply: Reply, took_s: float) -> VerifyDraft.Response:
    """Make the message of a reply to a request that was received `took_s` ago."""
    return VerifyDraft.Response(
        status=reply.status,
        message=reply.message,
        episode_id=reply.episode,
        step_id=reply.step,
        first_step=reply.first_step,
        assignment=reply.assignment,
        actions=_floats(np.asarray(reply.actions)),
        accepted=list(reply.accepted),
        compute_time_ms=1e3 * took_s,
        window_kept=reply.window_kept,
        retry_after_s=reply.retry_after_s,
    )


def from_reply(sent: int, response: VerifyDraft.Response) -> Reply:
    """Return the reply of a response to the message with that id, unchecked."""
    about = response.episode_id, response.step_id, response.first_step
    try:
        check_response_bounds(response)
    except RequestError as error:
        return Reply(0, "", *about, id=sent, fault=str(error))
    return Reply(
        response.status,
        response.message and shortened(response.message),
        *about,
        response.accepted,
        response.actions,
        response.compute_time_ms,
        response.window_kept,
        response.retry_after_s,
        sent,
        reply_bytes(len(response.actions), len(response.accepted), response.message),
        assignment=response.assignment,
    )


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
    """Return the description in a message; its texts may be of any length, and are shortened.

    Raises:
        ValueError: the numbers of names and sizes differ, the rate is invalid, or the sizes do not fit in
            messages.
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
    if response.protocol == PROTOCOL_VERSION:  # a mismatch of protocols comes first
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
    """Return the entries' names of all features; empty if one feature has none."""
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
    names, given = response.image_names, ("image_rows", "image_columns", "image_padded")
    for field in given:
        values = getattr(response, field)
        if len(values) != len(names):
            raise ValueError(f"{field}: {len(values)}, must be as many as image_names, {len(names)}")
        for size in values:
            if field != "image_padded" and not 1 <= size <= MAX_SIDE:
                raise ValueError(f"{field}: {size}, must be from 1 to {MAX_SIDE}")
    sizes = zip(names, *(getattr(response, field) for field in given), strict=True)
    return tuple(ImageInput(shortened(name), *size) for name, *size in sizes)


def from_described(sent: int, response: DescribeTarget.Response) -> Described:
    """Return the description, or its fault, in reply to the message with that id."""
    try:
        return Described(sent, from_description(response))
    except ValueError as error:
        return Described(sent, None, str(error))
