"""Messages of openpi's and GR00T's servers: written as these read them, read as a stranger's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

msgpack = pytest.importorskip("msgpack", reason="pip install -r requirements/remote_targets.txt")

from adahi_ros.policies.remote.packed_arrays import (  # noqa: E402
    PackedError,
    check_values,
    pack_groot,
    pack_lerobot,
    pack_openpi,
    unpack_groot,
    unpack_lerobot,
    unpack_openpi,
)

ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.arange(6, dtype=">f8").reshape(3, 2),
    np.arange(24, dtype=np.uint8).reshape(2, 3, 4).transpose(2, 0, 1),
    np.zeros((0, 4), np.int64),
    np.array(True),
    np.float16(1.5) + np.zeros(2, np.float16),
]


def openpi_array(**changes: Any) -> bytes:
    """Return an array as openpi writes it, with changes."""
    packed = {"__ndarray__": True, "data": bytes(8), "dtype": "<f4", "shape": [2], **changes}
    return bytes(msgpack.packb({name.encode(): value for name, value in packed.items()}))


def groot_array(content: bytes) -> bytes:
    return bytes(msgpack.packb({"__ndarray_class__": True, "as_npy": content}))


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    """Return a .npy file of any header."""
    return b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(2, "little") + header.encode() + data


@pytest.mark.parametrize(
    ("pack", "unpack"),
    [(pack_openpi, unpack_openpi), (pack_groot, unpack_groot), (pack_lerobot, unpack_lerobot)],
)
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_an_array_comes_back_as_it_was(pack: Any, unpack: Any, array: np.ndarray) -> None:
    back = unpack(pack({"a": [array, None, "text", 1.5]}))["a"]
    assert (back[0].dtype, back[0].shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(back[0], array)
    assert back[1:] == [None, "text", 1.5]


def test_numbers_of_numpy_are_numbers() -> None:
    message = msgpack.packb({b"__npgeneric__": True, b"data": 2.5, b"dtype": "<f4"})
    assert unpack_openpi(message) == 2.5
    np.testing.assert_array_equal(unpack_openpi(pack_openpi(np.float64(2.5))), 2.5)


@pytest.mark.parametrize("pack", [pack_openpi, pack_groot])
@pytest.mark.parametrize("value", [np.array([object()]), np.array([1j]), np.array(["a"]), object()])
def test_what_is_no_array_of_numbers_is_not_written(pack: Any, value: Any) -> None:
    with pytest.raises(TypeError, match="must be numbers"):
        pack({"a": value})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dtype": "|O"}, r"array of '\|O', must be of numbers"),
        ({"dtype": "<M8[s]"}, "must be of numbers"),
        ({"dtype": ["f4"]}, "must be of numbers"),
        ({"dtype": "<c8"}, "must be of numbers"),
        ({"shape": [1 << 60]}, "must be 4611686018427387904"),
        ({"shape": [-1]}, "must be sizes"),
        ({"shape": [True]}, "must be sizes"),
        ({"shape": [2.0]}, "must be sizes"),
        ({"shape": [1] * 9}, "must be at most 8 sizes"),
        ({"shape": 2}, "must be at most 8 sizes"),
        ({"data": bytes(7)}, r"shape \(2,\) with 7 bytes, must be 8"),
        ({"data": "12345678"}, "must be 8"),
    ],
)
def test_an_array_that_claims_what_it_has_not_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(PackedError, match=reason):
        unpack_openpi(openpi_array(**changes))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"pickled"), "must be of numbers"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,), }"), "must be 799999999992"),
        (npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", bytes(12)), "must be 16"),
        (npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", bytes(4)), "a header of"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1 2,), }", bytes(4)), "no message"),
        (npy("{'descr': '<f4', 'shape': (1,), }", bytes(4)), "must have a header of numbers"),
        (npy("(" * 3000), "must have a header of numbers"),
        (npy("__import__('os').getcwd()"), "must have a header of numbers"),
        (
            npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }" + " " * 2000),
            "a header of numbers",
        ),
        (npy("{}", version=9), "must be of version 1 or 2"),
        (b"\x80\x04pickle", "must be of version 1 or 2"),
        (b"\x93NUMPY", "no message"),
        (b"", "must be of version 1 or 2"),
    ],
)
def test_an_npy_file_that_claims_what_it_has_not_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(PackedError, match=reason):
        unpack_groot(groot_array(content))


def test_a_pickle_of_torchs_is_named() -> None:
    with pytest.raises(PackedError, match="pickled: GR00T servers before msgpack are not spoken with"):
        unpack_groot(b"PK\x03\x04 and so on")


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(PackedError, match="a bytes, must be a number"):
        unpack_openpi(msgpack.packb({b"__npgeneric__": True, b"data": b"x", b"dtype": "<f4"}))


VALID = [
    pack_openpi({"actions": np.zeros((4, 2)), "server_timing": {"infer_ms": 1.0}}),
    pack_groot([{"gripper": np.zeros((1, 4, 1), np.float32)}, {}]),
]


def fault_of(unpack: Any, message: bytes) -> str:
    """Return how a message is refused; nothing where it is read. Another exception fails the test."""
    try:
        unpack(message)
    except PackedError as error:
        return str(error)
    return ""


@given(st.binary(max_size=200))
def test_garbage_is_refused_or_read_and_nothing_else(message: bytes) -> None:
    for unpack in (unpack_openpi, unpack_groot, unpack_lerobot):
        fault = fault_of(unpack, message)
        assert not fault or (fault.isprintable() and len(fault) < 200)


@given(st.sampled_from(VALID), st.data())
def test_a_damaged_message_is_refused_or_read_and_nothing_else(message: bytes, data: st.DataObject) -> None:
    damaged = bytearray(message)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(message)))
    for unpack in (unpack_openpi, unpack_groot, unpack_lerobot):
        for read in (bytes(damaged), bytes(damaged[:end])):
            fault = fault_of(unpack, read)
            assert not fault or fault.isprintable()


@pytest.mark.parametrize("unpack", [unpack_openpi, unpack_groot, unpack_lerobot])
def test_a_message_that_is_nested_without_end_is_refused(unpack: Any) -> None:
    for nested in (b"\x91" * 100_000, b"\x81\xa1a" * 100_000, b"\x81" * 100_000):
        with pytest.raises(PackedError):
            unpack(nested)


@pytest.mark.parametrize("unpack", [unpack_openpi, unpack_groot, unpack_lerobot])
def test_a_list_or_a_mapping_of_too_many_is_refused(unpack: Any) -> None:
    with pytest.raises(PackedError, match="exceeds"):
        unpack(msgpack.packb([0] * 70_000))
    with pytest.raises(PackedError, match="exceeds"):
        unpack(msgpack.packb({str(each): each for each in range(5000)}))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(width=32)
    | st.text(max_size=300)
    | st.binary(max_size=300)
    | st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=20)),
    lambda inside: st.lists(inside, max_size=20) | st.dictionaries(st.text(max_size=3), inside, max_size=20),
    max_leaves=60,
)


def count_of(value: Any) -> int:
    """Return the number of values in plain data, each container and each key among them."""
    if isinstance(value, dict):
        return 1 + sum(1 + count_of(each) for each in value.values())
    return 1 + sum(map(count_of, value)) if isinstance(value, list) else 1


@given(VALUES)
def test_values_are_counted_as_msgpack_writes_them(value: Any) -> None:
    message, count = msgpack.packb(value), count_of(value)
    check_values(message, count)
    with pytest.raises(PackedError, match=f"more than {count - 1} values"):
        check_values(message, count - 1)


@given(st.binary(max_size=200))
def test_counting_ends_for_any_bytes(message: bytes) -> None:
    check_values(message, len(message))
