# SPDX-License-Identifier: Apache-2.0
"""The target's view of a robot's observations: all that the draft reads, or less of its cameras."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from adahi_ros.contract.contract import BY_CONTRACT
from adahi_ros.core.observation_buffer import NO_IMAGES, ObservationBuffer, Seen
from adahi_ros.core.signature import IMAGE_FEATURES, OBSERVATION, Feature, ImageInput, Signature
from adahi_ros.protocol.description import LONGEST_HISTORY, MOST_PICTURED
from adahi_ros.protocol.window import WireWindow


def _values(seen: Seen, features: Sequence[Feature]) -> np.ndarray:
    """Return some features (size,) float32 of one robot, one after the other."""
    parts = [seen.observed[feature.name][0] for feature in features]
    return np.concatenate([np.zeros(0, np.float32), *parts], dtype=np.float32)


class TargetView(ABC):
    """Makes the window that is sent to a target from the newest observations of one robot.

    The target may change at any time, and with it the history that it reads. So the buffer keeps the images
    that any target may need.

    Args:
        number_dim: S, the leading entries of an observation that are no image features.
        jpeg_quality: largest JPEG quality.
        jpeg_budget_bytes: a larger JPEG gets a lower quality; 0 for no budget.
    """

    needs_encoder = False
    """The verifier must have the robot's encoder."""

    def __init__(self, number_dim: int, jpeg_quality: int = 80, jpeg_budget_bytes: int = 0) -> None:
        self.number_dim = number_dim
        self.jpeg_quality = jpeg_quality
        self.jpeg_budget_bytes = jpeg_budget_bytes
        self.share(ObservationBuffer(LONGEST_HISTORY))

    def share(self, seen: ObservationBuffer) -> None:
        """Read from a controller's buffer from now on."""
        seen.images_kept = LONGEST_HISTORY if self.needs_encoder else MOST_PICTURED
        self._seen = seen
        self._count = 0

    def forget(self) -> None:
        """Begin an episode."""
        self._seen.clear()

    def add(self, observed: Mapping[str, np.ndarray], images: Mapping[str, np.ndarray] = NO_IMAGES) -> None:
        """Take the newest observation; only without a controller that shares its buffer.

        Args:
            observed: by name, (size,).
            images: of each camera, by name, (rows, columns, 3) uint8.
        """
        self._count += 1
        self._seen.keep(self._count, {name: values[None] for name, values in observed.items()}, images)

    def window(self, target: Signature) -> WireWindow:
        """Return the window for a target. At the start, the first observation is repeated.

        A target that reads raw images gets them with every view.

        Raises:
            LookupError: there is no observation yet.
        """
        shown = self._seen.newest(target.history)
        read = [feature for feature in target.features if feature.name != IMAGE_FEATURES]
        values = np.stack([_values(each, read) for each in shown])
        goal = _values(shown[-1], target.conditions)
        if target.images:
            jpegs = [self._compressed(each, image.name, image) for each in shown for image in target.images]
            return WireWindow.pack(values, goal, images=jpegs)
        # An observation that is read whole ends with the image features.
        whole = [feature.name for feature in read] == [OBSERVATION]
        return self._sent(values, goal, shown, self.number_dim if whole else values.shape[1])

    def _compressed(self, seen: Seen, name: str, wanted: ImageInput | None = None) -> bytes:
        """Return the JPEG of an image scaled down to the wanted size; a smaller one keeps its size."""
        from adahi_ros.vision.images import resized, within  # many robots send no images

        rows, columns = seen.images[name].shape[:2]
        if wanted is not None:
            rows, columns = within((rows, columns), wanted.rows, wanted.columns, wanted.padded)
        # Only what is sent is compressed, and only once.
        known = name, rows, columns
        if known not in seen.jpegs:
            seen.jpegs[known] = self._compress(resized(seen.images[name], rows, columns))
        return seen.jpegs[known]

    def _compress(self, image: np.ndarray) -> bytes:
        from adahi_ros.vision.images import jpeg_of

        return jpeg_of(image, self.jpeg_quality, self.jpeg_budget_bytes)

    @abstractmethod
    def _sent(self, values: np.ndarray, goal: np.ndarray, shown: Sequence[Seen], numbers: int) -> WireWindow:
        """Return the window as it is sent.

        Args:
            values: (H, O) float32.
            goal: (G,) float32.
            shown: H observations.
            numbers: S, how many leading values are no image features.
        """


class Features(TargetView):
    """The features as float16: the target sees what the draft sees."""

    def _sent(self, values: np.ndarray, goal: np.ndarray, shown: Sequence[Seen], numbers: int) -> WireWindow:
        return WireWindow.pack(values[:, :numbers], goal, features=values[:, numbers:])


class Numbers(TargetView):
    """Nothing of the cameras: the target reads zeros instead."""

    def _sent(self, values: np.ndarray, goal: np.ndarray, shown: Sequence[Seen], numbers: int) -> WireWindow:
        return WireWindow.pack(values[:, :numbers], goal)


class Jpegs(TargetView):
    """The images as JPEG, which the verifier encodes."""

    needs_encoder = True

    def _sent(self, values: np.ndarray, goal: np.ndarray, shown: Sequence[Seen], numbers: int) -> WireWindow:
        jpegs = [self._compressed(each, name) for each in shown for name in each.images]
        return WireWindow.pack(values[:, :numbers], goal, images=jpegs)


VIEWS: dict[str, type[TargetView]] = {"features": Features, "jpeg": Jpegs, "none": Numbers}


def view_of_contract(name: str, images_for_target: bool, encoded: bool = True) -> str:
    """Return which of `VIEWS` a robot has.

    Args:
        name: a key of it, or `BY_CONTRACT`.
        images_for_target: the robot computes no features of its images.
        encoded: the contract names an encoder; without one, only targets that read raw images use them.
    """
    if name != BY_CONTRACT:
        return name
    if not images_for_target:
        return "features"
    return "jpeg" if encoded else "none"
