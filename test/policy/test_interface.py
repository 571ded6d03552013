from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from adahi_ros.policy.interface import PolicySpec, Prediction, misfit


def test_the_offset_is_gathered_at_the_codes_and_summed_over_the_codebooks() -> None:
    draw = np.random.default_rng(0)
    offsets = draw.normal(size=(4, 3, 5, 2, 6)).astype(np.float32)
    codes = draw.integers(5, size=(4, 3))
    offset = Prediction(np.zeros((4, 3, 5), np.float32), offsets).offset_at(codes)
    assert offset.shape == (4, 2, 6)
    for row in range(4):
        by_hand = sum(offsets[row, book, codes[row, book]] for book in range(3))
        np.testing.assert_allclose(offset[row], by_hand, rtol=1e-6)


def test_a_draft_fits_a_target_of_the_same_tokenizer_and_sizes_only() -> None:
    spec = PolicySpec(6, 5, 2, 2, 16, 1, 2, 1000)
    assert misfit(spec, "a", replace(spec, parameters=9), "a") is None
    assert misfit(spec, "a", spec, "b") == (
        "tokenizer_fingerprint: the draft's is a, the target's b; must be the same"
    )
    for field in fields(spec):
        if field.name != "parameters":
            other = replace(spec, **{field.name: 99})
            fault = misfit(spec, "a", other, "a")
            assert fault is not None
            assert fault.startswith(
                f"{field.name}: the draft's is {getattr(spec, field.name)}, the target's 99;"
            )
