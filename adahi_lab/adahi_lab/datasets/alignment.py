# SPDX-License-Identifier: Apache-2.0
"""Finds the sample of a topic that belongs to each time, as a contract's `align` says."""

from __future__ import annotations

import numpy as np

from adahi_ros.contract.contract import Alignment
from adahi_ros.contract.fields import NANOSECONDS


def aligned(times_ns: np.ndarray, stamps_ns: np.ndarray, align: Alignment) -> np.ndarray:
    """Return the index of the sample for each time.

    Args:
        times_ns: (N,) of the samples, rising.
        stamps_ns: (T,).
        align: `asof` takes the nearest, `hold` and `drop` the newest that is not later.

    Returns:
        (T,) indices; -1 where none is within the tolerance.
    """
    if not len(times_ns):
        return np.full(len(stamps_ns), -1)
    before = np.searchsorted(times_ns, stamps_ns, side="right") - 1
    chosen = np.maximum(before, 0)
    if align.strategy == "asof":
        after = np.minimum(before + 1, len(times_ns) - 1)
        nearer = np.abs(times_ns[after] - stamps_ns) < np.abs(times_ns[chosen] - stamps_ns)
        chosen = np.where(nearer, after, chosen)
        near = np.abs(times_ns[chosen] - stamps_ns) <= round(align.tolerance_s * NANOSECONDS)
    else:
        age_ns = stamps_ns - times_ns[chosen]
        near = (age_ns >= 0) & (age_ns <= round(align.tolerance_s * NANOSECONDS))
    return np.where(near, chosen, -1)
