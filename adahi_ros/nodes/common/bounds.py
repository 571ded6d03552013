# SPDX-License-Identifier: Apache-2.0
"""How long the fields of messages may be.

Their definitions say it, but whoever receives must check: Fast DDS and rclpy deliver strings and sequences of
any length, also from a sender whose definitions know no bounds. And whoever sends must keep to it: a sequence
that is too long cannot be sent at all.
"""

from __future__ import annotations

import re
from typing import Any

from adahi_msgs.msg import DraftStatus
from adahi_msgs.srv import VerifyDraft

from adahi_ros.core.signature import Signature
from adahi_ros.protocol.request import RequestError, RequestFault


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
IMAGE_BYTES = 10_000_000  # a bound of ours: CompressedImage has none


def check_request_bounds(message: VerifyDraft.Request) -> None:
    """Check the lengths of all that has one, before anything is copied.

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
    """Check the lengths of all sequences; a text is shortened where it is told.

    Raises:
        RequestError: names the first field that is too long, its length and what is allowed.
    """
    for field in ("accepted", "actions"):
        _check(field, len(getattr(message, field)), RESPONSE[field])


def check_signature_bounds(signature: Signature) -> None:
    """Check that what a policy of these sizes is asked and replies can be said in messages.

    Raises:
        ValueError: names the first size that is too large, its value and what is allowed.
    """
    actions = signature.horizon * signature.action_dim
    said = {
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
        said["codebooks"] = books, REQUEST["codes"]
        said["codebooks times codebook_size"] = books * size, REQUEST["draft_probabilities"]
    for name, (size, most) in said.items():
        if size > most:
            raise ValueError(f"{name}: {size}, must be at most {most}")
