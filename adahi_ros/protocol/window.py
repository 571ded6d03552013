# SPDX-License-Identifier: Apache-2.0
"""What is sent as bytes: a window of observations, which both ends name alike, and the size of messages.

An observation is S numbers, then F features of camera images. What is sent of it is what names it: its
numbers and, beside them, its features, its images as JPEG, or neither. No name is made of anything that was
computed, so an encoder that rounds otherwise on another machine changes none.

Where images are sent, the target sees features of the JPEG, while the draft saw those of the frame before it
was compressed. Speculative sampling stays exact: whatever the draft was made of, what comes back
is distributed as the target's reply to what the target sees, behind gates for which it is so at all
(gates that are `blind`). Only fewer codes may be accepted.
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
        features: R x F float16; empty where it is not they that are sent.
        images: R x C JPEGs; empty where it is not they that are sent.
    """

    numbers: bytes
    features: bytes = b""
    images: tuple[bytes, ...] = ()

    def digests(self, count: int) -> tuple[bytes, ...]:
        """Name each of R = count rows by what is sent of it."""
        numbers = _split(self.numbers, count)
        if self.images:
            kind = b"images"
            rest = [b"".join(map(_digest, images)) for images in _split(self.images, count)]
        else:
            kind = b"features"
            rest = _split(self.features, count)
        # With the size of the numbers before them, and the kind aside, no row reads like another.
        size = (len(self.numbers) // count if count else 0).to_bytes(4, "little")
        return tuple([_digest(size + own + other, kind) for own, other in zip(numbers, rest, strict=True)])


class WireWindow(NamedTuple):
    """A window and its goal, whole or as an update of a window before it.

    An update carries only the rows that the verifier has not seen. It names the window that it continues,
    one that the verifier has replied about, by its digest. The content makes the digest, so neither a
    restart on either side nor an old packet can make a wrong window.

    Attributes:
        base: digest of the window that this one continues, or `WHOLE`.
        rows: the newest; all H of them where whole.
        goal: G float32; empty where it is the base's.
        length: H where the robot made it; 0 where it was received.
    """

    base: int
    rows: WireRows
    goal: bytes
    length: int = 0

    @classmethod
    def of(
        cls,
        numbers: np.ndarray,
        goal: np.ndarray,
        features: np.ndarray = NO_FEATURES,
        images: Sequence[bytes] = (),
    ) -> WireWindow:
        """Make what is sent of a window (H, O), of which features or images may go with the numbers.

        Args:
            numbers: (H, S) float32, all of the window where there are no cameras.
            goal: (G,) float32.
            features: (H, F) float32.
            images: H x C JPEGs, those of the oldest observation first.

        Raises:
            ValueError: a feature is no float16, or the images are not as many for each observation.
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
        # As bytes: what is not a number must not differ from itself, nor 0.0 be the same as -0.0.
        length = self.length
        for own, other in zip(self.rows, before.rows, strict=True):
            if own[: len(own) // length * (length - count)] != other[len(other) // length * count :]:
                return False
        return True


NO_WINDOW = WireWindow(WHOLE, WireRows(b""), b"")


def window_digest(rows: Sequence[bytes], goal: bytes) -> int:
    """Name a window, by the digests of its H rows, and its goal: 64 bits, never 0."""
    content = blake2b(b"".join(rows) + goal, digest_size=8).digest()
    return int.from_bytes(content, "little") or 1


class SentWindows:
    """The robot's side: what the verifier has, and so the robot need not send."""

    def __init__(self) -> None:
        self._base: WireWindow | None = None
        self._digest = WHOLE

    def forget(self) -> None:
        """Send the next window whole."""
        self._base = None

    def replied(self, window: WireWindow, kept: bool) -> None:
        """The verifier has replied about a window, and has it from now on, or has no room for this robot."""
        if not kept:
            self.forget()
            return
        self._base = window
        self._digest = window_digest(window.rows.digests(window.length), window.goal)

    def update(self, window: WireWindow) -> WireWindow:
        """Return the least that says a window."""
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
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
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


# Sizes of requests and replies as CDR serializes them: the fields of `VerifyDraft.srv` in its order. What DDS
# and UDP add around a message is not in it.

HEADER = 4  # of every serialized message
IMAGE_FORMAT = "jpeg"


class _Length:
    """The length of what is serialized so far, each number at a multiple of its size."""

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
) -> int:
    """Return the size of a request.

    Args:
        numbers: how many float32 there are in the rows of the window that are sent.
        features: how many float16.
        goal: how many float32; 0 where the goal is the base's.
        actions: of the draft, likewise.
        codes: of the draft.
        counts: of their distributions.
        robot_id: of the sender.
        target: that it names.
        instruction: in a sentence.
        images: bytes of each JPEG.
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
    length.numbers(4)  # how many images
    for size_bytes in images:
        length.image(size_bytes)
    length.sequence(4, goal)
    length.text(instruction)
    length.sequence(4, actions)
    length.sequence(2, codes)
    length.sequence(2, counts)
    length.numbers(4)  # round_trip_ms
    return HEADER + length.bytes


def reply_bytes(actions: int, accepted: int = 0, message: str = "") -> int:
    """Return the size of a reply.

    Args:
        actions: how many float32 there are in it.
        accepted: of how many parts of the draft it tells whether they were kept.
        message: for people.
    """
    length = _Length()
    length.numbers(1)  # status
    length.text(message)
    length.numbers(4, 3)  # episode_id, step_id, first_step
    length.sequence(4, actions)
    length.sequence(1, accepted)
    length.numbers(4, 2)  # compute_time_ms, retry_after_s
    length.numbers(1)  # window_kept
    return HEADER + length.bytes
