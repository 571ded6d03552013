# SPDX-License-Identifier: Apache-2.0
"""Makes requests to a verifier, and reads its replies and descriptions; checks the lengths of their fields.

The verifier's side is `adahi_ros.nodes.server.robot_messages`.

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

from adahi_ros.core.signature import CodeSpace, Feature, ImageInput, Ranges, Signature
from adahi_ros.core.texts import shortened
from adahi_ros.protocol.description import Described, Description
from adahi_ros.protocol.distributions import DENSE_MOST, packed
from adahi_ros.protocol.request import (
    NO_FINGERPRINT,
    PROTOCOL_VERSION,
    Reply,
    Request,
    RequestError,
    RequestFault,
    Sender,
    fingerprint_text,
)
from adahi_ros.protocol.window import IMAGE_FORMAT, WireWindow, reply_bytes, request_bytes
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
DESCRIPTION = _bounds(DescribeTarget.Response)
STATUS = _bounds(DraftStatus)
IMAGE_BYTES = 10_000_000  # our own bound: CompressedImage has none


def too_long(field: str, length: int, most: int) -> RequestError:
    """Return the error of a field that is too long; names field, length and what is allowed."""
    return RequestError(RequestFault.WRONG_SHAPE, f"{field}: length {length}, must be at most {most}")


def check_response_bounds(message: VerifyDraft.Response) -> None:
    """Check the lengths of all sequences; the reader shortens texts.

    Raises:
        RequestError: names the first field that is too long, its length and what is allowed.
    """
    for field in ("accepted", "actions", "intent", "codes", "rule_data"):
        if (length := len(getattr(message, field))) > RESPONSE[field]:
            raise too_long(field, length, RESPONSE[field])


def check_signature_bounds(signature: Signature) -> None:
    """Check that requests and replies of a policy with these sizes fit in messages.

    Raises:
        ValueError: names the first size that is too large, its value and what is allowed.
    """
    actions, seen = signature.horizon * signature.action_dim, signature.history * signature.image_dim
    numbers = signature.history * signature.observation_dim - seen  # images travel as JPEG
    sizes = {
        "history times observation_dim": (numbers, REQUEST["observation_window"]),
        "history times image_dim": (seen, 16 * REQUEST["features"]),  # a bound on memory: none are sent
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
    rows, counts = window.rows, request.counts
    has_codes = bool(request.codes.size)
    pairs = counts.size > DENSE_MOST
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
        draft_actions=floats(request.actions),
        codes=_codes(request.codes),
        draft_probabilities=_codes(packed(counts) if pairs else counts),
        without_actions=request.without_actions,
        rule_data=array("B", request.rule_data),
    )


def floats(values: np.ndarray) -> array:
    """Return an array of any shape as float32, for a message."""
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
        len(message.rule_data),
    )


def from_reply(sent: int, response: VerifyDraft.Response) -> Reply:
    """Return the reply of a response to the message with that id, unchecked."""
    about = response.episode_id, response.step_id, response.first_step
    try:
        check_response_bounds(response)
    except RequestError as error:
        return Reply(0, "", *about, id=sent, fault=str(error))
    sizes = map(len, (response.intent, response.codes, response.rule_data))
    return Reply(
        response.status,
        response.message and shortened(response.message),
        *about,
        response.accepted,
        response.actions,
        response.compute_time_ms,
        response.window_kept,
        response.retry_after_s,
        response.intent,
        response.intent_fingerprint,
        response.codes,
        response.rule_data.tobytes(),
        sent,
        reply_bytes(len(response.actions), len(response.accepted), response.message, *sizes),
        assignment=response.assignment,
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
        if response.intent_size > RESPONSE["intent"]:
            raise ValueError(f"intent_size: {response.intent_size}, must be at most {RESPONSE['intent']}")
    return Description(
        target=shortened(response.target),
        acceptance=shortened(response.acceptance),
        signature=signature,
        encoder_fingerprint=fingerprint_text(response.encoder_fingerprint),
        protocol=response.protocol,
        policy_fingerprint=fingerprint_text(response.policy_fingerprint),
        intent_fingerprint=fingerprint_text(response.intent_fingerprint),
        intent_size=response.intent_size,
        feature_ranges=_ranges("feature", response, signature.observation_dim),
        action_ranges=_ranges("action", response, signature.action_dim),
    )


def _ranges(kind: str, response: DescribeTarget.Response, size: int) -> Ranges:
    """Return the ranges of features or actions; errors name the field."""
    found = {}
    for name in vars(Ranges()) if response.protocol == PROTOCOL_VERSION else ():
        values = getattr(response, f"{kind}_{name}")
        if len(values) not in (0, size):
            raise ValueError(f"{kind}_{name}: {len(values)}, must be none, or {size}")
        if math.inf in map(abs, values):
            raise ValueError(f"{kind}_{name}: infinite, must be finite, or NaN if unknown")
        found[name] = tuple(values)
    return Ranges(**found)


def _parts(kind: str, names: Sequence[str], sizes: Sequence[int]) -> tuple[Feature, ...]:
    if len(names) != len(sizes):
        raise ValueError(f"{kind}_sizes: {len(sizes)}, must be as many as {kind}_names, {len(names)}")
    return tuple(Feature(shortened(name), size) for name, size in zip(names, sizes, strict=True))


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
