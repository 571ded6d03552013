from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.protocol.distributions import DENSE_MOST, packed, unpacked
from adahi_ros.protocol.request import RequestError

N, K = 8, 256


def counts(kept: int, rows: int = N) -> np.ndarray:
    rng = np.random.default_rng(kept)
    made = np.zeros((rows, K), dtype=np.uint16)
    for row in made:
        row[rng.choice(K, kept, replace=False)] = rng.integers(1, 200, kept)
    return made


@given(kept=st.integers(1, K), rows=st.integers(DENSE_MOST // K + 1, N))
def test_distributions_survive_a_message(kept: int, rows: int) -> None:
    made = counts(kept, rows)
    sent = packed(made.ravel())
    assert sent.size <= made.size
    np.testing.assert_array_equal(unpacked(sent.astype(np.int64), rows, K), made)


def test_few_entries_take_few_numbers() -> None:
    assert packed(counts(3).ravel()).size == 2 * 3 * N
    dense = np.ones(N * K, dtype=np.uint16)
    assert packed(dense) is dense


@pytest.mark.parametrize(
    ("sent", "fault"),
    [
        ([0, 9, 0, 9], "indices must ascend"),
        ([5, 9, 4, 9], "indices must ascend"),
        ([N * K, 9], "indices must ascend from 0 at least to 2047 at most"),
        ([-1, 9], "indices must ascend"),
        ([1, 2, 3], "3 values, expected 2048"),
        ([0] * (2 * N * K), "4096 values, expected 2048"),
    ],
)
def test_impossible_pairs_are_refused(sent: list[int], fault: str) -> None:
    with pytest.raises(RequestError, match=fault):
        unpacked(np.array(sent), N, K)


def test_small_distributions_are_sent_whole() -> None:
    with pytest.raises(RequestError, match=r"draft_probabilities: 4 values, expected 32 for shape .2, 16.$"):
        unpacked(np.zeros(4, dtype=np.int64), 2, 16)
