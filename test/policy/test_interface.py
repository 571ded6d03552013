from __future__ import annotations

import numpy as np

from adahi_ros.policy.interface import Prediction


def test_the_offset_is_gathered_at_the_codes_and_summed_over_the_codebooks() -> None:
    draw = np.random.default_rng(0)
    offsets = draw.normal(size=(4, 3, 5, 2, 6)).astype(np.float32)
    codes = draw.integers(5, size=(4, 3))
    offset = Prediction(np.zeros((4, 3, 5), np.float32), offsets).offset_at(codes)
    assert offset.shape == (4, 2, 6)
    for row in range(4):
        by_hand = sum(offsets[row, book, codes[row, book]] for book in range(3))
        np.testing.assert_allclose(offset[row], by_hand, rtol=1e-6)
