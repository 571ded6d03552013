# SPDX-License-Identifier: Apache-2.0
"""The newest observations of each robot, as a policy reads them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from adahi_ros.core.signature import Observations, Signature


class History:
    """The H newest observations of B robots. Before H have come, the first one is repeated.

    Args:
        signature: of the policy that reads them.
        batch: B.
    """

    def __init__(self, signature: Signature, batch: int) -> None:
        self._signature = signature
        self._batch = batch
        self._features: dict[str, np.ndarray] = {}

    def with_newest(
        self, observed: Mapping[str, np.ndarray], instructions: tuple[str, ...] = ()
    ) -> Observations:
        """Return what would be read if this were the newest; `keep` makes it so.

        Args:
            observed: by name, (B, size); what the policy does not read is passed over.
            instructions: B sentences, where the policy is told any.

        Raises:
            ValueError: a feature is missing, has another shape, or is not finite; names it.
        """
        features = {}
        for feature in self._signature.features:
            newest = self._checked(feature.name, feature.size, observed)
            before = self._features.get(feature.name)
            if before is None:
                features[feature.name] = np.repeat(newest[:, None], self._signature.history, axis=1)
            else:
                features[feature.name] = np.concatenate([before[:, 1:], newest[:, None]], axis=1)
        conditions = {
            each.name: self._checked(each.name, each.size, observed) for each in self._signature.conditions
        }
        return Observations(features, conditions, instructions)

    def keep(self, observations: Observations) -> None:
        """Make what `with_newest` returned the present state."""
        self._features = {name: values.copy() for name, values in observations.features.items()}

    def push(self, observed: Mapping[str, np.ndarray], instructions: tuple[str, ...] = ()) -> Observations:
        """Add observations; return what is read now. Arguments and errors as `with_newest`."""
        observations = self.with_newest(observed, instructions)
        self.keep(observations)
        return observations

    def _checked(self, name: str, size: int, observed: Mapping[str, np.ndarray]) -> np.ndarray:
        if name not in observed:
            raise ValueError(f"{name}: missing, there are {', '.join(observed) or 'none'}")
        values, expected = observed[name], (self._batch, size)
        if values.shape != expected:
            raise ValueError(f"{name}: shape {values.shape}, expected {expected}")
        with np.errstate(over="ignore"):  # a float64 beyond float32 becomes infinite, and is refused
            values = values.astype(np.float32)
        if not np.isfinite(values).all():
            raise ValueError(f"{name}: holds values that are not finite")
        return values
