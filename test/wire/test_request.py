from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from adahi_ros.policy.interface import PolicySpec
from adahi_ros.wire.request import (
    RequestError,
    RequestFault,
    Verification,
    check_answer,
    check_request,
)

SERVICE = Path(__file__).parents[2] / "adahi_msgs" / "srv" / "VerifyDraft.srv"
SPEC = PolicySpec(
    window_length=2,
    observation_dim=3,
    goal_dim=1,
    codebooks=2,
    codebook_size=4,
    chunk_length=2,
    action_dim=2,
    parameters=0,
)
WINDOW = np.arange(6, dtype=np.float32).reshape(2, 3)
P = np.array([6553, 13107, 19661, 26214, 0, 0, 0, 65535])


def with_entry(values: np.ndarray, index: int, value: float) -> np.ndarray:
    changed = np.array(values)
    changed[index] = value
    return changed


def test_the_fault_numbers_are_those_on_the_air() -> None:
    on_the_air = dict(re.findall(r"STATUS_(\w+)=(\d+)", SERVICE.read_text()))
    for fault in RequestFault:
        assert on_the_air[fault.name] == str(fault.value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_good_request_gets_its_shapes_and_types(dtype: type) -> None:
    flat = (np.array([7.0], dtype), np.array([0, 3], np.uint16), P.astype(np.uint16))
    request = check_request(SPEC, WINDOW, *flat)
    np.testing.assert_array_equal(request.windows, [[[0, 1, 2], [3, 4, 5]]])
    np.testing.assert_array_equal(request.goals, [[7]])
    np.testing.assert_array_equal(request.codes, [[0, 3]])
    np.testing.assert_allclose(request.probabilities, [[[0.1, 0.2, 0.3, 0.4], [0, 0, 0, 1]]], atol=1e-5)
    assert request.codes.dtype == np.int64
    assert request.counts.dtype == np.uint16
    for values in (request.windows, request.goals, request.probabilities):
        assert values.dtype == np.float32


def test_a_policy_without_a_goal_takes_an_empty_one() -> None:
    spec = PolicySpec(2, 3, 0, 2, 4, 2, 2, 0)
    assert check_request(spec, WINDOW, np.array([]), np.array([0, 3]), P).goals.shape == (1, 0)
    with pytest.raises(RequestError, match="goal: 1 values, expected 0"):
        check_request(spec, WINDOW, np.array([1.0]), np.array([0, 3]), P)


@pytest.mark.parametrize(
    ("field", "value", "fault", "message"),
    [
        ("goal", np.zeros(2), "WRONG_SHAPE", "goal: 2 values, expected 1 for shape (1,)"),
        ("codes", np.array([1]), "WRONG_SHAPE", "codes: 1 values, expected 2 for shape (2,)"),
        ("counts", P[:7], "WRONG_SHAPE", "draft_probabilities: 7 values, expected 8 for shape (2, 4)"),
        ("goal", np.array([np.inf]), "NOT_FINITE", "goal[0]: inf, must be finite"),
        ("codes", np.array([0, 4]), "CODE_OUT_OF_RANGE", "codes[1]: 4, must be at least 0 and below 4"),
        ("codes", np.array([-1, 3]), "CODE_OUT_OF_RANGE", "codes[0]: -1, must be at least 0 and below 4"),
        ("codes", np.array([65535, 0]), "CODE_OUT_OF_RANGE", "codes[0]: 65535"),
        ("codes", np.array([0, 2]), "CODE_OUT_OF_RANGE", "codes[1]: 2, drafted with probability 0, must be"),
        ("counts", with_entry(P, 4, 1), "NOT_A_DISTRIBUTION", "rows sum to [65535, 65536]"),
        ("counts", with_entry(P, 7, 65534), "NOT_A_DISTRIBUTION", "rows sum to [65535, 65534]"),
        ("counts", P - [6554, 0, 0, -6554] * 2, "NOT_A_DISTRIBUTION", "with smallest entry -6554"),
        ("counts", 0 * P, "NOT_A_DISTRIBUTION", "must sum to 65535 and not be negative"),
    ],
)
def test_a_bad_request_is_refused_with_its_fault(
    field: str, value: np.ndarray, fault: str, message: str
) -> None:
    flat = {"goal": np.zeros(1), "codes": np.array([0, 3]), "counts": P}
    with pytest.raises(RequestError, match=re.escape(message)) as refusal:
        check_request(SPEC, WINDOW, **(flat | {field: value}))
    assert refusal.value.fault is RequestFault[fault]


def test_a_good_answer_gets_its_shapes_and_types() -> None:
    answer = check_answer(SPEC, np.array([3, 0], np.uint16), np.array([True, False]), np.arange(4.0))
    np.testing.assert_array_equal(answer.codes, [[3, 0]])
    np.testing.assert_array_equal(answer.accepted, [[True, False]])
    np.testing.assert_array_equal(answer.offset, [[[0, 1], [2, 3]]])
    assert (answer.codes.dtype, answer.accepted.dtype, answer.offset.dtype) == (
        np.int64,
        np.bool_,
        np.float32,
    )


@pytest.mark.parametrize(
    ("changes", "fault", "message"),
    [
        ({"codes": np.array([0])}, "WRONG_SHAPE", "codes: 1 values, expected 2"),
        ({"accepted": np.array([])}, "WRONG_SHAPE", "accepted: 0 values, expected 2"),
        ({"offset": np.zeros(3)}, "WRONG_SHAPE", "offset: 3 values, expected 4 for shape (2, 2)"),
        ({"offset": np.array([0, 0, np.nan, 0])}, "NOT_FINITE", "offset[2]: nan, must be finite"),
        ({"codes": np.array([0, 4])}, "CODE_OUT_OF_RANGE", "codes[1]: 4, must be at least 0 and below 4"),
        ({"codes": np.array([-1, 0])}, "CODE_OUT_OF_RANGE", "codes[0]: -1"),
    ],
)
def test_a_bad_answer_is_refused(changes: dict[str, np.ndarray], fault: str, message: str) -> None:
    flat = {"codes": np.array([0, 3]), "accepted": np.array([True, True]), "offset": np.zeros(4)}
    with pytest.raises(RequestError, match=re.escape(message)) as refusal:
        check_answer(SPEC, **(flat | changes))
    assert refusal.value.fault is RequestFault[fault]


def test_rows_of_an_answer_by_mask_and_by_index() -> None:
    answer = Verification(
        np.arange(6).reshape(3, 2), np.arange(6).reshape(3, 2) % 2 == 0, np.arange(6.0).reshape(3, 1, 2)
    )
    for which in (np.array([True, False, True]), np.array([0, 2])):
        some = answer.rows(which)
        np.testing.assert_array_equal(some.codes, [[0, 1], [4, 5]])
        np.testing.assert_array_equal(some.accepted, [[True, False], [True, False]])
        np.testing.assert_array_equal(some.offset, [[[0, 1]], [[4, 5]]])
