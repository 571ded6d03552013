# SPDX-License-Identifier: Apache-2.0
"""The verifier's side of window updates: the base windows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from adahi_ros.protocol.request import RequestError, RequestFault, check_finite
from adahi_ros.protocol.window import (
    FEATURE_BYTES,
    NUMBER_BYTES,
    WHOLE,
    WireRows,
    WireWindow,
    window_digest,
)

ROBOTS_KEPT = 1024  # default number of robots with cached windows
MAX_AGE_S = 60.0  # default time after which a silent robot leaves the cache
WINDOWS_KEPT = 4  # per robot: after a lost reply the robot uses an older base
IMAGES_KEPT_BYTES = 2**29  # JPEGs of all robots; one in several windows counts several times


class ImageEncoder(Protocol):
    """Makes features of a received image.

    Attributes:
        features: number per image.
    """

    features: int

    def encode(self, jpeg: bytes) -> np.ndarray:
        """Return the features (features,) float32 of an image; they depend on the image alone.

        Raises:
            ValueError: it is not a JPEG of the right size; names the field of the image, such as "data".
        """


class Pixels(bytes):
    """An image that was never compressed, instead of a JPEG, from a door; see `doors`.

    Attributes:
        shape: (rows, columns, 3).
    """

    shape: tuple[int, ...]

    @classmethod
    def from_picture(cls, picture: np.ndarray) -> Pixels:
        """Return the bytes of a picture (rows, columns, 3) uint8."""
        made = cls(picture.tobytes())
        made.shape = picture.shape
        return made

    @property
    def picture(self) -> np.ndarray:
        """The picture (rows, columns, 3) uint8."""
        return np.frombuffer(self, np.uint8).reshape(self.shape)


class KnownWindow(NamedTuple):
    """A window that the verifier has.

    Attributes:
        digest: of the sent observations and the goal.
        rows: H digests, one per observation.
        numbers: S, the leading entries of an observation that are no image features.
        values: (H, O) float32, finite.
        goal: (G,) float32, unchecked.
        images: H x C JPEGs, unchecked, for a target that reads raw images; else empty.
    """

    digest: int
    rows: tuple[bytes, ...]
    numbers: int
    values: np.ndarray
    goal: np.ndarray
    images: tuple[bytes, ...] = ()

    @property
    def image_bytes(self) -> int:
        """Size of its images."""
        return sum(map(len, self.images))


@dataclass
class _Robot:
    """The last windows of a robot, the newest last, and the time of its last request."""

    windows: OrderedDict[int, KnownWindow]
    active_s: float


class WindowCache:
    """The last windows of each robot.

    An active robot keeps its place, so that further robots or a flood of new names cannot take it. Robots
    without a place, or without room for their images, send whole windows.

    Args:
        window_length: H.
        observation_dim: O.
        encoder: of the images that robots send; None if they may not send any.
        robots: largest number of robots.
        max_age_s: a robot without a request for this time loses its place.
        pictures: C, raw images per observation; if above 0, observations have no image features.
        images_bytes: largest size of all raw images.
    """

    def __init__(
        self,
        window_length: int,
        observation_dim: int,
        encoder: ImageEncoder | None = None,
        robots: int = ROBOTS_KEPT,
        max_age_s: float = MAX_AGE_S,
        pictures: int = 0,
        images_bytes: int = IMAGES_KEPT_BYTES,
    ) -> None:
        self._images_room = images_bytes
        self._images_bytes = 0
        self._pictures = pictures
        self._length = window_length
        self._dim = observation_dim
        self._encoder = encoder
        self._room = robots
        self._max_age_s = max_age_s
        self._robots: OrderedDict[str, _Robot] = OrderedDict()  # least recently active first

    def complete(self, robot_id: str, update: WireWindow) -> KnownWindow:
        """Return the whole window of an update.

        Raises:
            RequestError: the base is unknown, the update does not fit it or is not finite, or an image is
                invalid.
        """
        windows = self._robots[robot_id].windows if robot_id in self._robots else {}
        sent, goal = update.rows, update.goal
        if sent.images and not self._pictures:
            self._check_takes_images(sent)
        if update.base == WHOLE:
            base, count, numbers = None, self._length, self._numbers(sent)
        else:
            base = self._known(windows, update.base)
            numbers = base.numbers
            count = self._count(sent, numbers)
        self._check_sizes(sent, count, numbers)
        rows = sent.digests(count)
        if base is not None:
            rows = base.rows[count:] + rows
            goal = goal or base.goal.tobytes()
        digest = window_digest(rows, goal)
        if digest in windows:
            return windows[digest]
        kept = self._length - count
        values = np.zeros((self._length, self._dim), dtype=np.float32)
        if base is not None:
            values[:kept] = base.values[count:]
        _fill(values[kept:, :numbers], "observation_window", sent.numbers, np.float32)
        if sent.features:
            _fill(values[kept:, numbers:], "features", sent.features, np.float16)
        elif sent.images and not self._pictures:
            self._encode(sent.images, values[kept:, numbers:], rows[kept:], windows)
        images = () if base is None else base.images[count * self._pictures :]
        if self._pictures:
            images += sent.images
        return KnownWindow(digest, rows, numbers, values, np.frombuffer(goal, dtype=np.float32), images)

    def keep(self, robot_id: str, window: KnownWindow, now_s: float) -> bool:
        """Keep the window of an answered request; return whether there is room for it.

        Images that are not compressed are not kept: their senders send whole windows.

        Args:
            robot_id: of the robot.
            window: from `complete`.
            now_s: monotonic time.
        """
        if window.images and isinstance(window.images[0], Pixels):
            return False
        while self._robots and now_s - next(iter(self._robots.values())).active_s > self._max_age_s:
            for gone in self._robots.popitem(last=False)[1].windows.values():
                self._images_bytes -= gone.image_bytes
        if robot_id not in self._robots and len(self._robots) >= self._room:
            return False
        robot = self._robots.setdefault(robot_id, _Robot(OrderedDict(), now_s))
        self._robots.move_to_end(robot_id)
        robot.active_s = now_s
        if window.digest not in robot.windows:
            robot.windows[window.digest] = window
            self._images_bytes += window.image_bytes
        robot.windows.move_to_end(window.digest)
        while len(robot.windows) > WINDOWS_KEPT or (robot.windows and self._images_bytes > self._images_room):
            self._images_bytes -= robot.windows.popitem(last=False)[1].image_bytes
        return window.digest in robot.windows

    def _known(self, windows: Mapping[int, KnownWindow], base: int) -> KnownWindow:
        if base not in windows:
            raise RequestError(
                RequestFault.WINDOW_UNKNOWN, f"base_window: {base:#x}, is unknown; send the whole window"
            )
        return windows[base]

    def _numbers(self, sent: WireRows) -> int:
        """Return S of a whole window."""
        size, most = len(sent.numbers) // NUMBER_BYTES, self._length * self._dim
        if self._pictures:
            return self._dim
        if not any(sent) or size % self._length or size > most:
            raise _wrong_shape(
                f"observation_window: {size} values, must be a multiple of {self._length} and at most {most}"
            )
        return size // self._length

    def _count(self, sent: WireRows, numbers: int) -> int:
        """Return R of an update."""
        for field, size, per_row in self._sizes(sent, numbers):
            if size:
                if not per_row or size % per_row or size >= per_row * self._length:
                    raise _wrong_shape(
                        f"{field}: {size} values after a base, must be a multiple of {per_row} "
                        f"and below {per_row * self._length}"
                    )
                return size // per_row
        return 0

    def _check_takes_images(self, sent: WireRows) -> None:
        if self._encoder is None:
            raise _wrong_shape(f"images: {len(sent.images)}, must be none: this verifier has no encoder")
        if sent.features:
            raise _wrong_shape(f"images: {len(sent.images)} and features, must be only one of them")

    def _check_sizes(self, sent: WireRows, count: int, numbers: int) -> None:
        needed = ("observation_window", "images") if self._pictures else ("observation_window",)
        for field, size, per_row in self._sizes(sent, numbers):
            if size != count * per_row and (size or field in needed):
                raise _wrong_shape(
                    f"{field}: {size} values, must be {count * per_row}, {per_row} per observation"
                )

    def _sizes(self, sent: WireRows, numbers: int) -> tuple[tuple[str, int, int], ...]:
        """Return field, number of sent entries, and entries per observation."""
        features = self._dim - numbers
        each = 0 if self._encoder is None else self._encoder.features
        cameras = self._pictures or (features // each if each and features % each == 0 else 0)
        return (
            ("observation_window", len(sent.numbers) // NUMBER_BYTES, numbers),
            ("features", len(sent.features) // FEATURE_BYTES, features),
            ("images", len(sent.images), cameras),
        )

    def _encode(
        self,
        images: tuple[bytes, ...],
        features: np.ndarray,
        rows: tuple[bytes, ...],
        windows: Mapping[int, KnownWindow],
    ) -> None:
        """Make the features (R, F) of images; reuse those of images that the robot has sent before."""
        assert self._encoder is not None
        width = features.shape[1]
        had = {
            digest: values[-width:]
            for known in windows.values()
            for digest, values in zip(known.rows, known.values, strict=True)
        }
        cameras = len(images) // len(rows)
        for row, digest in enumerate(rows):
            if digest not in had:
                mine = range(row * cameras, (row + 1) * cameras)
                had[digest] = np.concatenate([self._features(index, images[index]) for index in mine])
            features[row] = had[digest]

    def _features(self, index: int, jpeg: bytes) -> np.ndarray:
        assert self._encoder is not None
        try:
            features = self._encoder.encode(jpeg)
        except ValueError as error:
            raise _wrong_shape(f"images[{index}].{error}") from error
        check_finite(f"images[{index}].features", features)
        return features


def _fill(values: np.ndarray, field: str, sent: bytes, dtype: type) -> None:
    numbers: np.ndarray = np.frombuffer(sent, dtype=dtype)
    check_finite(field, numbers)
    values[...] = numbers.reshape(values.shape)


def _wrong_shape(message: str) -> RequestError:
    return RequestError(RequestFault.WRONG_SHAPE, message)
