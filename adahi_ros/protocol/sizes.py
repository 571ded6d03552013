# SPDX-License-Identifier: Apache-2.0
"""How many bytes a request and its reply are, serialized, without a ROS to serialize them: as CDR has them.

The fields are those of `VerifyDraft.srv`, in its order. What DDS and UDP add around a message is not in it.
"""

from __future__ import annotations

from collections.abc import Sequence

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
