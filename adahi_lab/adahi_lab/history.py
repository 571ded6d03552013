# SPDX-License-Identifier: Apache-2.0
"""The inputs of one policy over time, where no robot's loop keeps them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from adahi_ros.core.observation_buffer import ObservationBuffer
from adahi_ros.core.signature import Observations, Signature


class History:
    """The inputs of one policy, from its own buffer.

    Args:
        signature: of the policy.
        batch: B.
    """

    def __init__(self, signature: Signature, batch: int) -> None:
        self._signature = signature
        self._buffer = ObservationBuffer(signature.history + 1, batch)
        self._step = 0

    def push(self, observed: Mapping[str, np.ndarray], instructions: tuple[str, ...] = ()) -> Observations:
        """Add observations by name, (B, size); return the policy's input now.

        Raises:
            ValueError: see `ObservationBuffer.window`; nothing was added then.
        """
        self._buffer.keep(self._step, observed)
        try:
            observations = self._buffer.window(self._signature, instructions)
        except ValueError:
            self._buffer.drop_newest()
            raise
        self._step += 1
        return observations
