# SPDX-License-Identifier: Apache-2.0
"""Data sent as bytes: a window of observations, named alike at both ends, and the size of messages.

An observation is S numbers, then F features of camera images. Its digest covers only the data that are
sent: its numbers and, beside them, its features, its images as JPEG, or neither. Digests never cover
computed values, so an encoder that rounds differently on another machine changes none.

Where images are sent, the target reads features of the JPEG, while the draft read those of the frame before
compression. Speculative sampling stays exact for any draft: with `blind` gates, the result is distributed
as the target's reply to its own input. Only fewer codes may be accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple, TypeVar

import numpy as np

NUMBER_BYTES = 4
FEATURE_BYTES = 2
ROW_DIGEST_BYTES = 16  # never sent
NO_FEATURES = np.empty(0, dtype=np.float32)
WHOLE = 0  # as a base: none

_Part = TypeVar("_Part", bytes, tuple[bytes, ...])


class WireRows(NamedTuple):
    """R consecutive observations, oldest first.

    Attributes:
        numbers: R x S float32.
        features: R x F float16; empty if they are not sent.
        images: R x C JPEGs; empty if they are not sent.
    """

    numbers: bytes
    features: bytes = b""
    images: tuple[bytes, ...] = ()

    def digests(self, count: int) -> tuple[bytes, ...]:
        """Return a digest for each of R = count rows, over its sent data."""
        numbers = _split(self.numbers, count)
        if self.images:
            kind = b"images"
            rest = [b"".join(map(_digest, images)) for images in _split(self.images, count)]
        else:
            kind = b"features"
            rest = _split(self.features, count)
        # With the size of the numbers and the kind, different rows never have the same bytes.
        size = (len(self.numbers) // count if count else 0).to_bytes(4, "little")
        return tuple([_digest(size + own + other, kind) for own, other in zip(numbers, rest, strict=True)])


class WireWindow(NamedTuple):
    """A window and its goal, whole or as an update of an earlier window.

    An update carries only the rows that the verifier does not have. It names the window that it continues by
    digest; the verifier has replied to that one. The digest depends on the content, so neither a
    restart on either side nor an old packet can produce a wrong window.

    Attributes:
        base: digest of the window that this one continues, or `WHOLE`.
        rows: the newest; all H of them where whole.
        goal: G float32; empty where equal to the base's.
        length: H on the robot; 0 at the verifier.
    """

    base: int
    rows: WireRows
    goal: bytes
    length: int = 0

    @classmethod
    def pack(
        cls,
        numbers: np.ndarray,
        goal: np.ndarray,
        features: np.ndarray = NO_FEATURES,
        images: Sequence[bytes] = (),
    ) -> WireWindow:
        """Make the window (H, O) to send, with features or images beside the numbers.

        Args:
            numbers: (H, S) float32, the whole window without cameras.
            goal: (G,) float32.
            features: (H, F) float32.
            images: H x C JPEGs, those of the oldest observation first.

        Raises:
            ValueError: a feature exceeds float16, or the number of images differs between observations.
        """
        if len(images) % len(numbers):
            raise ValueError(f"images: {len(images)}, must be a multiple of {len(numbers)}")
        rows = WireRows(_floats(numbers), _halves(features) if features.size else b"", tuple(images))
        return cls(WHOLE, rows, _floats(goal), len(numbers))

    def newest(self, count: int) -> WireRows:
        """Return the last rows."""
        numbers, features, images = self.rows
        skipped, length = self.length - count, self.length
        return WireRows(
            numbers[len(numbers) // length * skipped :],
            features[len(features) // length * skipped :],
            images[len(images) // length * skipped :],
        )

    def continues(self, before: WireWindow, count: int) -> bool:
        """Whether all but the last `count` rows are the last ones of another window of this length."""
        # As bytes: NaN must equal itself, and 0.0 must differ from -0.0.
        length = self.length
        for own, other in zip(self.rows, before.rows, strict=True):
            if own[: len(own) // length * (length - count)] != other[len(other) // length * count :]:
                return False
        return True


NO_WINDOW = WireWindow(WHOLE, WireRows(b""), b"")


def window_digest(rows: Sequence[bytes], goal: bytes) -> int:
    """Return the digest of a window, of the digests of its H rows, and its goal: 64 bits, never 0."""
    content = blake2b(b"".join(rows) + goal, digest_size=8).digest()
    return int.from_bytes(content, "little") or 1


class SentWindows:
    """The robot's side: the rows that the verifier has, and that the robot need not send."""

    def __init__(self) -> None:
        self._base: WireWindow | None = None
        self._digest = WHOLE

    def forget(self) -> None:
        """Send the next window whole."""
        self._base = None

    def replied(self, window: WireWindow, kept: bool) -> None:
        """Note that the verifier has replied about a window, and keeps it, or has no room for this robot."""
        if not kept:
            self.forget()
            return
        self._base = window
        self._digest = window_digest(window.rows.digests(window.length), window.goal)

    def update(self, window: WireWindow) -> WireWindow:
        """Return the smallest update that conveys a window."""
        base = self._base
        if base is not None:
            for count in range(window.length):
                if window.continues(base, count):
                    goal = b"" if window.goal == base.goal else window.goal
                    return WireWindow(self._digest, window.newest(count), goal)
        return window


def _floats(values: np.ndarray) -> bytes:
    return values.astype(np.float32, copy=False).tobytes()


def _halves(values: np.ndarray) -> bytes:
    with np.errstate(over="ignore"):  # too large values become infinite, and are refused
        halves = values.astype(np.float16)
    wrong = ~np.isfinite(halves) | (halves != values)
    if wrong.any():
        raise ValueError(f"features: {values[wrong][0]}, must be finite and representable in float16")
    return halves.tobytes()


def _split(part: _Part, count: int) -> list[_Part]:
    size = len(part) // count if count else 0
    return [part[row * size : (row + 1) * size] for row in range(count)]


def _digest(content: bytes, kind: bytes = b"") -> bytes:
    return blake2b(content, digest_size=ROW_DIGEST_BYTES, person=kind).digest()


# Sizes of requests and replies as CDR serializes them: the fields of `VerifyDraft.srv` in its order, without
# the overhead of DDS and UDP.

HEADER = 4  # of every serialized message
IMAGE_FORMAT = "jpeg"


class _Length:
    """The length of the serialized data, with each number at a multiple of its size."""

    def __init__(self) -> None:
        self.bytes = 0

    def numbers(self, size: int, count: int = 1) -> None:
        if count:
            self.bytes += -self.bytes % size + size * count

    def sequence(self, size: int, count: int) -> None:
        self.numbers(4)
        self.numbers(size, count)

    def text(self, text: str) -> None:
        self.sequence(1, len(text.encode()) + 1)

    def image(self, size_bytes: int) -> None:
        self.numbers(4, 2)  # stamp
        self.text("")  # frame_id
        self.text(IMAGE_FORMAT)
        self.sequence(1, size_bytes)


def request_bytes(
    numbers: int,
    features: int = 0,
    goal: int = 0,
    actions: int = 0,
    codes: int = 0,
    counts: int = 0,
    robot_id: str = "robot",
    target: str = "",
    instruction: str = "",
    images: Sequence[int] = (),
    rule_data: int = 0,
) -> int:
    """Return the size of a request.

    Args:
        numbers: number of float32 values in the sent rows of the window.
        features: number of float16 values.
        goal: number of float32 values; 0 where the goal is the base's.
        actions: of the draft, likewise.
        codes: of the draft.
        counts: of their distributions.
        robot_id: of the sender.
        target: its name.
        instruction: in a sentence.
        images: bytes of each JPEG.
        rule_data: bytes of the rule's own data.
    """
    length = _Length()
    length.numbers(1)  # protocol
    length.text(robot_id)
    length.numbers(4)  # session_id
    length.text(target)
    length.numbers(4, 4)  # needed_in_s, episode_id, step_id, first_step
    length.numbers(8, 2)  # tokenizer_fingerprint, base_window
    length.sequence(4, numbers)
    length.sequence(2, features)
    length.numbers(4)  # number of images
    for size_bytes in images:
        length.image(size_bytes)
    length.sequence(4, goal)
    length.text(instruction)
    length.sequence(4, actions)
    length.sequence(2, codes)
    length.sequence(2, counts)
    length.numbers(1)  # without_actions
    length.sequence(1, rule_data)
    return HEADER + length.bytes


def reply_bytes(
    actions: int, accepted: int = 0, message: str = "", intent: int = 0, codes: int = 0, rule_data: int = 0
) -> int:
    """Return the size of a reply.

    Args:
        actions: number of float32 values.
        accepted: number of judged parts of the draft.
        message: human-readable.
        intent: number of its entries.
        codes: number of the actions' codes.
        rule_data: bytes of the rule's own data.
    """
    length = _Length()
    length.numbers(1)  # status
    length.text(message)
    length.numbers(4, 4)  # episode_id, step_id, first_step, assignment
    length.sequence(4, actions)
    length.sequence(1, accepted)
    length.numbers(4, 2)  # compute_time_ms, retry_after_s
    length.numbers(1)  # window_kept
    length.sequence(1, intent)
    length.numbers(8)  # intent_fingerprint
    length.sequence(2, codes)
    length.sequence(1, rule_data)
    return HEADER + length.bytes
