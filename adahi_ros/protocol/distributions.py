# SPDX-License-Identifier: Apache-2.0
"""The distributions of a draft's codes in a message: all entries, or only those that are not zero."""

from __future__ import annotations

import numpy as np

from adahi_ros.protocol.request import RequestError, RequestFault

DENSE_MOST = 1024
"""Entries up to which all are sent; more are sent as pairs of index and count, if these are fewer numbers."""


def packed(counts: np.ndarray) -> np.ndarray:
    """Return more than `DENSE_MOST` flat counts (n * K,) as a message has them.

    They are the same, or pairs (2 * m,) of the m above zero.
    """
    index = np.flatnonzero(counts)
    if 2 * index.size >= counts.size:
        return counts
    return np.stack([index, counts[index]], axis=1).ravel()


def unpacked(sent: np.ndarray, codes: int, size: int) -> np.ndarray:
    """Return the counts (codes, size) of a message that has pairs, unchecked; the inverse of `packed`.

    Raises:
        RequestError: the number of values fits neither form, or an index is out of range or not in order.
    """
    entries = codes * size
    if sent.size == entries:
        return sent.reshape(codes, size)
    if entries <= DENSE_MOST or sent.size % 2 or sent.size > entries:
        pairs = "" if entries <= DENSE_MOST else ", or fewer in pairs of index and count"
        what = f"draft_probabilities: {sent.size} values, expected {entries} for shape {(codes, size)}{pairs}"
        raise RequestError(RequestFault.WRONG_SHAPE, what)
    index, count = sent.reshape(-1, 2).T
    if index.size and not (index[0] >= 0 and index[-1] < entries and (np.diff(index) > 0).all()):
        what = f"draft_probabilities: indices must ascend from 0 at least to {entries - 1} at most"
        raise RequestError(RequestFault.WRONG_SHAPE, what)
    counts = np.zeros(entries, dtype=np.int64)
    counts[index] = count
    return counts.reshape(codes, size)
