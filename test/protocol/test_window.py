"""What is sent of a window names it: nothing else does, and no two are named alike."""

from __future__ import annotations

import itertools
import re
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.protocol.window import ROW_DIGEST_BYTES, WireRows, WireWindow, window_digest

GOAL = np.zeros(2, np.float32)


def test_a_window_is_sent_as_float32_with_features_as_float16() -> None:
    window = np.array([[1.0, 2.0, 0.5], [3.0, 4.0, -0.25]], np.float32)
    sent = WireWindow.pack(window[:, :2], np.array([7.0], np.float32), features=window[:, 2:])
    np.testing.assert_array_equal(np.frombuffer(sent.rows.numbers, np.float32), [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(np.frombuffer(sent.rows.features, np.float16), [0.5, -0.25])
    assert np.frombuffer(sent.goal, np.float32) == 7.0
    assert (sent.length, sent.rows.images) == (2, ())


@given(st.integers(0, 2**16 - 1).filter(lambda bits: bits & 0x7C00 != 0x7C00))
def test_every_finite_float16_is_sent_bit_for_bit(bits: int) -> None:
    features = np.array([[bits]], np.uint16).view(np.float16).astype(np.float32)
    assert WireWindow.pack(features, GOAL, features=features).rows.features == bits.to_bytes(2, "little")


@pytest.mark.parametrize("value", [0.1, 65520.0, 1e30, np.inf, -np.inf, np.nan, 2.0**-25])
def test_a_feature_that_is_no_float16_is_not_sent(value: float) -> None:
    numbers, features = np.zeros((2, 1), np.float32), np.array([[1.0, 2.0], [0.0, value]], np.float32)
    with pytest.raises(ValueError, match=re.escape(f"features: {np.float32(value)}, must be finite")):
        WireWindow.pack(numbers, GOAL, features=features)


def test_images_that_are_not_as_many_for_each_observation_are_not_sent() -> None:
    with pytest.raises(ValueError, match="images: 3, must be a multiple of 2"):
        WireWindow.pack(np.zeros((2, 1), np.float32), GOAL, images=[b"a", b"b", b"c"])


NUMBERS = (b"", b"aaaa", b"aaaabbbb")
FEATURES = (b"", b"aaaa", b"bbbb")
IMAGES: tuple[tuple[bytes, ...], ...] = ((b"aaaa",), (b"aa", b"aa"), (b"", b"aaaa"), (b"aaaa", b""))


def test_no_two_rows_are_named_alike() -> None:
    rows = [WireRows(*parts) for parts in itertools.product(NUMBERS, FEATURES)]
    rows += [WireRows(numbers, b"", images) for numbers, images in itertools.product(NUMBERS, IMAGES)]
    # Numbers and features that are the very name of an image are not mistaken for it.
    name = blake2b(b"aaaa", digest_size=ROW_DIGEST_BYTES).digest()
    rows += [WireRows(name), WireRows(b"", name), WireRows(b"", b"", (name,))]
    assert len({row.digests(1) for row in rows}) == len(rows)


def test_a_row_is_named_alike_in_whatever_company() -> None:
    numbers, images = np.arange(8, dtype=np.float32).reshape(4, 2), [bytes([i]) for i in range(8)]
    for window in (
        WireWindow.pack(numbers, GOAL),
        WireWindow.pack(numbers, GOAL, features=numbers[:, ::-1]),
        WireWindow.pack(numbers, GOAL, images=images),
    ):
        every = window.rows.digests(4)
        assert len(set(every)) == 4
        for count in range(5):
            assert window.newest(count).digests(count) == every[4 - count :]


def test_a_window_is_named_by_its_rows_in_order_and_its_goal() -> None:
    one, other = WireRows(b"aaaabbbb").digests(2)
    names = {window_digest(rows, goal) for rows in ((one, other), (other, one)) for goal in (b"", b"aaaa")}
    assert len(names) == 4
    assert all(0 < name < 2**64 for name in names)


@pytest.mark.parametrize("value", [0.0, -0.0, np.nan])
def test_a_window_continues_another_where_their_bits_are_the_same(value: float) -> None:
    numbers = np.array([[1.0], [value], [2.0], [3.0]], np.float32)
    before, after = WireWindow.pack(numbers[:3], GOAL), WireWindow.pack(numbers[1:], GOAL)
    assert [after.continues(before, count) for count in range(3)] == [False, True, False]
    assert before.continues(before, 0)
    changed = WireWindow.pack(np.array([[-value], [2.0], [3.0]], np.float32), GOAL)
    assert not changed.continues(before, 1)


def test_a_window_continues_none_of_another_kind() -> None:
    numbers = np.ones((3, 1), np.float32)
    kinds = [
        WireWindow.pack(numbers, GOAL),
        WireWindow.pack(numbers, GOAL, features=numbers),
        WireWindow.pack(numbers, GOAL, features=numbers.repeat(2, axis=1)),
        WireWindow.pack(numbers, GOAL, images=[b"a"] * 3),
        WireWindow.pack(numbers, GOAL, images=[b"a"] * 6),
        WireWindow.pack(numbers.repeat(2, axis=1), GOAL),
    ]
    for one, other in itertools.permutations(kinds, 2):
        assert not any(one.continues(other, count) for count in range(3))
