"""What the target gets to see of a robot's observations: all that the draft saw, or less of its cameras."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adahi_ros.contract.contract import BY_CONTRACT
from adahi_ros.policy.signature import IMAGE_FEATURES, Feature, Signature
from adahi_ros.vision.images import QUALITIES, ImageError, jpeg_within, to_jpeg
from adahi_ros.wire.description import LONGEST_HISTORY
from adahi_ros.wire.window import WireWindow


@dataclass
class Seen:
    """One observation.

    Attributes:
        observed: by name, (size,).
        images: (rows, columns, 3) uint8, one of each camera, where they are to be sent.
        jpegs: of the images, once they were asked for.
    """

    observed: Mapping[str, np.ndarray]
    images: tuple[np.ndarray, ...] = ()
    jpegs: list[bytes] | None = None

    def values(self, features: Sequence[Feature]) -> np.ndarray:
        """Return some features (size,) float32, one after the other."""
        parts = [self.observed[feature.name] for feature in features]
        return np.concatenate([np.zeros(0, np.float32), *parts], dtype=np.float32)


class TargetView(ABC):
    """Keeps the newest observations, and makes of them what a target reads and is sent.

    How many it reads is the target's to say, who may be another one at any time: so those are kept that
    any target may want.

    Args:
        number_dim: S, the leading entries of an observation that are no features of images.
        jpeg_quality: of images that are sent as JPEG, at most.
        jpeg_budget_bytes: an image's JPEG gets a lower quality where it would be larger, down to the
            lowest; 0 for no budget.
    """

    needs_encoder = False
    """The verifier must have the robot's encoder."""

    def __init__(self, number_dim: int, jpeg_quality: int = 80, jpeg_budget_bytes: int = 0) -> None:
        self.number_dim = number_dim
        self.jpeg_quality = jpeg_quality
        self.jpeg_budget_bytes = jpeg_budget_bytes
        self._seen: deque[Seen] = deque(maxlen=LONGEST_HISTORY)

    def forget(self) -> None:
        """Begin an episode."""
        self._seen.clear()

    def add(self, observed: Mapping[str, np.ndarray], images: Sequence[np.ndarray] = ()) -> None:
        """Take the newest observation.

        Args:
            observed: by name, (size,).
            images: (rows, columns, 3) uint8, one of each camera.
        """
        self._seen.append(Seen(observed, tuple(images) if self.needs_encoder else ()))

    def window(self, target: Signature) -> WireWindow:
        """Return what is sent to a target. Before as many as it reads have come, the first is repeated.

        Raises:
            LookupError: nothing has been seen.
        """
        seen = list(self._seen)[-target.history :]
        shown = [seen[0]] * (target.history - len(seen)) + seen
        read = [feature for feature in target.features if feature.name != IMAGE_FEATURES]
        values = np.stack([each.values(read) for each in shown])
        return self._sent(values, shown[-1].values(target.conditions), shown)

    @abstractmethod
    def _sent(self, values: np.ndarray, goal: np.ndarray, shown: Sequence[Seen]) -> WireWindow:
        """Return what is sent of values (H, O) float32, conditions (G,) float32 and H observations."""


class Features(TargetView):
    """The features, which are float16: the target sees what the draft sees."""

    def _sent(self, values: np.ndarray, goal: np.ndarray, shown: Sequence[Seen]) -> WireWindow:
        if self.number_dim == values.shape[1]:
            return WireWindow.of(values, goal)
        return WireWindow.of(values[:, : self.number_dim], goal, features=values[:, self.number_dim :])


class Numbers(TargetView):
    """Nothing of the cameras: the target reads zeros in their place."""

    def _sent(self, values: np.ndarray, goal: np.ndarray, shown: Sequence[Seen]) -> WireWindow:
        return WireWindow.of(values[:, : self.number_dim], goal)


class Jpegs(TargetView):
    """The images as JPEG, which the verifier encodes."""

    needs_encoder = True

    def _sent(self, values: np.ndarray, goal: np.ndarray, shown: Sequence[Seen]) -> WireWindow:
        jpegs = [jpeg for each in shown for jpeg in self._jpegs(each)]
        return WireWindow.of(values[:, : self.number_dim], goal, images=jpegs)

    def _jpegs(self, seen: Seen) -> list[bytes]:
        # Only what is sent is compressed, and only once.
        if seen.jpegs is None:
            seen.jpegs = [self._compress(image) for image in seen.images]
        return seen.jpegs

    def _compress(self, image: np.ndarray) -> bytes:
        jpeg = to_jpeg(image, self.jpeg_quality)
        if not self.jpeg_budget_bytes or len(jpeg) <= self.jpeg_budget_bytes:
            return jpeg
        try:
            return jpeg_within(image, self.jpeg_budget_bytes)
        except ImageError:
            return to_jpeg(image, QUALITIES[0])


VIEWS: dict[str, type[TargetView]] = {"features": Features, "jpeg": Jpegs, "none": Numbers}


def view_of_contract(name: str, images_for_target: bool) -> str:
    """Return which of `VIEWS` a robot has, by a key of it or `BY_CONTRACT`."""
    if name != BY_CONTRACT:
        return name
    return "jpeg" if images_for_target else "features"


def target_view(name: str, number_dim: int, jpeg_quality: int, jpeg_budget_bytes: int) -> TargetView:
    """Return the view of this name, a key of `VIEWS`."""
    return VIEWS[name](number_dim, jpeg_quality, jpeg_budget_bytes)
