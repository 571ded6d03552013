# SPDX-License-Identifier: Apache-2.0
"""The newest observations of robots, by control step. Proposer, gate, request and fallback share them."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from adahi_ros.core.signature import Feature, Observations, Signature

NO_IMAGES: Mapping[str, np.ndarray] = {}


@dataclass
class Seen:
    """Observations of B robots at one control step.

    Attributes:
        step: of the episode.
        observed: by name, (B, size).
        images: of a single robot's cameras, by name, (rows, columns, 3) uint8, where they may be sent.
        jpegs: of images that were sent: by name and size.
    """

    step: int
    observed: Mapping[str, np.ndarray]
    images: Mapping[str, np.ndarray] = field(default_factory=dict)
    jpegs: dict[tuple[str, int, int], bytes] = field(default_factory=dict)


class ObservationBuffer:
    """The newest observations of B robots, all in one control step.

    Attributes:
        images_kept: number of the newest observations that keep their images; None for all.

    Args:
        longest: how many observations are kept.
        batch: B; None for as many as the first observation has.
    """

    def __init__(self, longest: int, batch: int | None = None) -> None:
        self._batch = batch
        self.images_kept: int | None = None
        self._seen: deque[Seen] = deque(maxlen=longest)

    def __len__(self) -> int:
        return len(self._seen)

    def clear(self, batch: int | None = None) -> None:
        """Start an episode of this many robots; None for as many as the first observation has."""
        self._batch = batch
        self._seen.clear()

    def keep(
        self, step: int, observed: Mapping[str, np.ndarray], images: Mapping[str, np.ndarray] = NO_IMAGES
    ) -> None:
        """Take the newest observation.

        Args:
            step: of it; steps increase, and the newest may repeat.
            observed: by name, (B, size).
            images: see `Seen`.
        """
        if self._seen and self._seen[-1].step == step:
            self._seen.pop()
        self._seen.append(Seen(step, {name: values.copy() for name, values in observed.items()}, images))
        if self.images_kept is not None and len(self._seen) > self.images_kept:
            oldest = self._seen[-1 - self.images_kept]
            oldest.images, oldest.jpegs = {}, {}

    def drop_newest(self) -> None:
        """Remove the newest observation, which led to no step."""
        self._seen.pop()

    def newest(self, count: int) -> list[Seen]:
        """Return the newest observations, the oldest first; the first one repeated where there are fewer.

        Raises:
            LookupError: nothing was kept.
        """
        if not self._seen:
            raise LookupError("nothing was observed yet")
        seen = list(self._seen)[-count:]
        return [seen[0]] * (count - len(seen)) + seen

    def window(self, signature: Signature, instructions: tuple[str, ...] = ()) -> Observations:
        """Return a policy's input from the newest observations.

        Args:
            signature: of the policy.
            instructions: B sentences, if the policy reads one.

        Raises:
            ValueError: a feature of the newest observation is missing, has another shape than in the
                other observations, or is not finite; names it.
            LookupError: nothing was kept.
        """
        shown = self.newest(signature.history)
        features = {}
        for feature in signature.features:
            rows = [each.observed[feature.name] for each in shown[:-1]]
            rows.append(self._checked(feature))
            features[feature.name] = np.stack(rows, axis=1).astype(np.float32, copy=False)
        conditions = {each.name: self._checked(each) for each in signature.conditions}
        return Observations(features, conditions, instructions)

    def at(self, name: str, steps: np.ndarray) -> np.ndarray:
        """Return each robot's observation at its own step (B,), or the nearest one kept: (B, size).

        Raises:
            LookupError: nothing was kept.
        """
        newest = self.newest(1)[0]
        kept = [each.step for each in self._seen]
        found: np.ndarray = newest.observed[name].copy()
        for step in set(steps.tolist()):
            after = bisect_left(kept, step)
            near = range(max(0, after - 1), min(len(kept), after + 1))
            nearest = self._seen[min(near, key=lambda place: abs(kept[place] - step))]
            found[steps == step] = nearest.observed[name][steps == step]
        return found

    def _checked(self, feature: Feature) -> np.ndarray:
        """Return a feature of the newest observation as float32."""
        name, observed = feature.name, self._seen[-1].observed
        if name not in observed:
            raise ValueError(f"{name}: missing, there are {', '.join(observed) or 'none'}")
        batch = len(self._seen[0].observed[name]) if self._batch is None else self._batch
        values, expected = observed[name], (batch, feature.size)
        if values.shape != expected:
            raise ValueError(f"{name}: shape {values.shape}, expected {expected}")
        with np.errstate(over="ignore"):  # a float64 beyond float32 becomes infinite, and is refused
            values = values.astype(np.float32)
        if not np.isfinite(values).all():
            raise ValueError(f"{name}: holds values that are not finite")
        return values
