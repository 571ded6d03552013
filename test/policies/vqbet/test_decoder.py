from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adahi_ros.policies.vqbet.code_policy import ActionDecoder

SCALE = np.array([0.5, 2.0], np.float32)
TABLE = np.arange(3 * 3 * 2 * 2, dtype=np.float32).reshape(3, 3, 2, 2) / 7


@given(st.integers(0, TABLE.size - 1), st.integers(0, 31))
def test_any_bit_of_the_table_changes_the_fingerprint(entry: int, bit: int) -> None:
    changed = TABLE.copy()
    changed.view(np.uint32).reshape(-1)[entry] ^= np.uint32(1 << bit)
    assume(np.isfinite(changed).all())
    assert ActionDecoder(changed, SCALE).fingerprint != ActionDecoder(TABLE, SCALE).fingerprint


def test_the_fingerprint_is_of_the_table_alone_and_stays_over_releases() -> None:
    fingerprint = ActionDecoder(TABLE, SCALE).fingerprint
    assert fingerprint == "8133305db38c5179"
    layouts = (np.asfortranarray(TABLE), TABLE.astype(">f4"), TABLE.astype(np.float64))
    for same in layouts:
        assert ActionDecoder(same, 2 * SCALE).fingerprint == fingerprint


@pytest.mark.parametrize(
    ("table", "scale", "message"),
    [
        (np.zeros((2, 2)), SCALE, "decode table: shape"),
        (np.zeros((3, 4, 1, 2)), SCALE, "decode table: shape"),
        (np.full((3, 3, 1, 2), np.nan), SCALE, "decode table: holds values that are not finite"),
        (TABLE, np.array([1.0, np.inf]), "holds values that are not finite"),
        (TABLE, np.ones(3), "action_scale: .* expected 2 positive numbers"),
        (TABLE, np.array([1.0, 0.0]), "action_scale: .* expected 2 positive numbers"),
    ],
)
def test_what_is_no_table_is_refused(table: np.ndarray, scale: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ActionDecoder(table, scale)


def test_an_action_far_from_any_demonstration_is_refused() -> None:
    table = np.linspace(-1.0, 1.0, 8, dtype=np.float32).reshape(2, 2, 1, 2)
    decoder = ActionDecoder(table, np.array([0.5, 2.0], np.float32))
    for codes in np.ndindex(2, 2):
        decoder.range.check(decoder.decode(np.array([codes])))
    decoder.range.check(np.array([decoder.low, decoder.high])[:, None])
    for bad in (np.nan, np.inf, -np.inf, decoder.high[1] + 0.01, decoder.low[1] - 0.01):
        with pytest.raises(ValueError, match=r"action\[1\]: .* must be from"):
            decoder.range.check(np.array([[[0.0, bad]]]))
