# SPDX-License-Identifier: Apache-2.0
"""The verifier's side of messages: reads requests; makes replies and descriptions.

The robot's side is `adahi_ros.nodes.common.verifier_messages`.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from adahi_msgs.srv import DescribeTarget, VerifyDraft

from adahi_ros.core.signature import Feature, Ranges
from adahi_ros.core.texts import NAME_LENGTH
from adahi_ros.nodes.common.verifier_messages import DESCRIPTION, IMAGE_BYTES, REQUEST, floats, too_long
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.request import (
    PROTOCOL_VERSION,
    Reply,
    Request,
    RequestError,
    RequestFault,
    fingerprint_number,
)
from adahi_ros.protocol.window import IMAGE_FORMAT, WireRows, WireWindow


def check_request_bounds(message: VerifyDraft.Request) -> None:
    """Check the lengths of all strings and sequences, before anything is copied.

    Raises:
        RequestError: names the first field that is too long, its length and what is allowed.
    """
    for field, most in REQUEST.items():
        if (length := len(getattr(message, field))) > most:
            raise too_long(field, length, most)
    for index, image in enumerate(message.images):
        if (length := len(image.data)) > IMAGE_BYTES:
            raise too_long(f"images[{index}].data", length, IMAGE_BYTES)


def header_of(message: VerifyDraft.Request) -> Request:
    """Return the part of a request that replies and queues need.

    A name that is too long is cut, but stays longer than allowed.
    """
    needed_in_s = message.needed_in_s
    return Request(
        episode=message.episode_id,
        step=message.step_id,
        first_step=message.first_step,
        needed_in_s=needed_in_s if 0.0 < needed_in_s < math.inf else 0.0,
        robot_id=message.robot_id[: NAME_LENGTH + 1],
        session=message.session_id,
        target=message.target[: NAME_LENGTH + 1],
    )


def from_request(message: VerifyDraft.Request, header: Request | None = None) -> Request:
    """Return the request of a message, unchecked: `Engine` checks it.

    With another protocol, a field that is too long or an image of another format, the request has a `fault`
    and no content.

    Args:
        message: the message.
        header: what `header_of` returned for it; None to read that too.
    """
    header = header or header_of(message)
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
        return replace(header, fault=error.with_traceback(None))
    rows = WireRows(
        message.observation_window.tobytes(),
        message.features.tobytes(),
        tuple(image.data.tobytes() for image in message.images),
    )
    return replace(
        header,
        window=WireWindow(message.base_window, rows, message.goal.tobytes()),
        actions=np.asarray(message.draft_actions, dtype=np.float32),
        codes=np.asarray(message.codes, dtype=np.int64),
        counts=np.asarray(message.draft_probabilities, dtype=np.int64),
        instruction=message.instruction,
        without_actions=message.without_actions,
        rule_data=message.rule_data.tobytes(),
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
        actions=floats(np.asarray(reply.actions)),
        accepted=list(reply.accepted),
        compute_time_ms=1e3 * took_s,
        window_kept=reply.window_kept,
        retry_after_s=reply.retry_after_s,
        intent=array("b", np.asarray(reply.intent, dtype=np.int8).tobytes()),
        intent_fingerprint=reply.intent_fingerprint,
        codes=array("H", np.asarray(reply.codes, dtype=np.uint16).tobytes()),
        rule_data=array("B", reply.rule_data),
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
        intent_fingerprint=fingerprint_number(description.intent_fingerprint),
        intent_size=description.intent_size,
        **_ranges("feature", description.feature_ranges),
        **_ranges("action", description.action_ranges),
    )


def _ranges(kind: str, ranges: Ranges) -> dict[str, array]:
    """Return the fields of features or actions; empty ones for more values than fit."""
    named = {f"{kind}_{name}": values for name, values in vars(ranges).items()}
    fitting = {name: values if len(values) <= DESCRIPTION[name] else () for name, values in named.items()}
    return {name: array("d", values) for name, values in fitting.items()}


def _entries(features: Sequence[Feature]) -> list[str]:
    """Return the entries' names of all features; empty if one feature has none."""
    if not all(len(each.entries) == each.size for each in features):
        return []
    return [entry for each in features for entry in each.entries]
