# SPDX-License-Identifier: Apache-2.0
"""What is done where several replies have an action for one control step.

A robot does what the latest says. The others, to compare with, are what people do with chunks of actions that
overlap: LeRobot's aggregates (async_inference, `aggregate_fn`), and the temporal ensembling of ACT
(arXiv 2304.13705), whose oldest prediction weighs the most.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

ENSEMBLE_RATE = 0.01  # ACT's m: of N replies, the i-th oldest weighs exp(-m i)
Blend = Callable[[np.ndarray], np.ndarray]
"""From how many replies, at least one, are in what is held to the share of a new one in what is done."""


def _share(share: float) -> Blend:
    return lambda held: np.full(held.shape, share)


def _ensemble(held: np.ndarray) -> np.ndarray:
    # exp(-m n) over the sum of exp(-m i) for i from 0 to n, a geometric series
    rate = ENSEMBLE_RATE
    share: np.ndarray = np.exp(-rate * held) * np.expm1(-rate) / np.expm1(-rate * (held + 1))
    return share


LATEST = "latest"
BLENDS: dict[str, Blend] = {
    LATEST: _share(1.0),
    "weighted_average": _share(0.7),
    "average": _share(0.5),
    "conservative": _share(0.3),
    "temporal_ensemble": _ensemble,
}
