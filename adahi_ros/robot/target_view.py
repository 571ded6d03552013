"""What the target gets to see of a robot's observations: all that the draft saw, or less of its cameras."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adahi_ros.vision.images import QUALITIES, ImageError, jpeg_within, to_jpeg
from adahi_ros.wire.window import WireWindow


class TargetView(ABC):
    """Makes what is sent of an observation window.

    Args:
        length: H, observations in a window.
        number_dim: S, the leading entries of an observation that are no features of images.
        jpeg_quality: of images that are sent as JPEG, at most.
        jpeg_budget_bytes: an image's JPEG gets a lower quality where it would be larger, down to the
            lowest; 0 for no budget.
    """

    needs_encoder = False
    """The verifier must have the robot's encoder."""

    def __init__(
        self, length: int, number_dim: int, jpeg_quality: int = 80, jpeg_budget_bytes: int = 0
    ) -> None:
        self.length = length
        self.number_dim = number_dim
        self.jpeg_quality = jpeg_quality
        self.jpeg_budget_bytes = jpeg_budget_bytes

    def forget(self) -> None:  # noqa: B027  most have nothing to forget
        """Begin an episode."""

    def add(self, images: Sequence[np.ndarray]) -> None:  # noqa: B027  most need no images
        """Take the images (rows, columns, 3) uint8 of the newest observation, one of each camera."""

    @abstractmethod
    def window(self, window: np.ndarray, goal: np.ndarray) -> WireWindow:
        """Return what is sent of a window (H, O) float32 and a goal (G,) float32."""


class Features(TargetView):
    """The features, which are float16: the target sees what the draft sees."""

    def window(self, window: np.ndarray, goal: np.ndarray) -> WireWindow:
        if self.number_dim == window.shape[1]:
            return WireWindow.of(window, goal)
        return WireWindow.of(window[:, : self.number_dim], goal, features=window[:, self.number_dim :])


class Numbers(TargetView):
    """Nothing of the cameras: the target reads zeros in their place."""

    def window(self, window: np.ndarray, goal: np.ndarray) -> WireWindow:
        return WireWindow.of(window[:, : self.number_dim], goal)


@dataclass
class _Shot:
    """The images of one observation, and their JPEGs once they were asked for."""

    images: tuple[np.ndarray, ...]
    jpegs: list[bytes] | None = None


class Jpegs(TargetView):
    """The images as JPEG, which the verifier encodes."""

    needs_encoder = True

    def __init__(
        self, length: int, number_dim: int, jpeg_quality: int = 80, jpeg_budget_bytes: int = 0
    ) -> None:
        super().__init__(length, number_dim, jpeg_quality, jpeg_budget_bytes)
        self._seen: deque[_Shot] = deque(maxlen=length)

    def forget(self) -> None:
        self._seen.clear()

    def add(self, images: Sequence[np.ndarray]) -> None:
        self._seen.append(_Shot(tuple(images)))

    def window(self, window: np.ndarray, goal: np.ndarray) -> WireWindow:
        shown = [self._seen[0]] * (self.length - len(self._seen)) + list(self._seen)
        jpegs = [jpeg for shot in shown for jpeg in self._jpegs(shot)]
        return WireWindow.of(window[:, : self.number_dim], goal, images=jpegs)

    def _jpegs(self, shot: _Shot) -> list[bytes]:
        # Only what is asked about is compressed, and only once.
        if shot.jpegs is None:
            shot.jpegs = [self._compress(image) for image in shot.images]
        return shot.jpegs

    def _compress(self, image: np.ndarray) -> bytes:
        jpeg = to_jpeg(image, self.jpeg_quality)
        if not self.jpeg_budget_bytes or len(jpeg) <= self.jpeg_budget_bytes:
            return jpeg
        try:
            return jpeg_within(image, self.jpeg_budget_bytes)
        except ImageError:
            return to_jpeg(image, QUALITIES[0])


VIEWS: dict[str, type[TargetView]] = {"features": Features, "jpeg": Jpegs, "none": Numbers}


def target_view(
    name: str, length: int, number_dim: int, jpeg_quality: int, jpeg_budget_bytes: int
) -> TargetView:
    """Return the view of this name, a key of `VIEWS`."""
    return VIEWS[name](length, number_dim, jpeg_quality, jpeg_budget_bytes)
