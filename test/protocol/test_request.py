from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adahi_ros.acceptance.interface import Acceptance, Verdict
from adahi_ros.acceptance.replace import Replace
from adahi_ros.acceptance.speculative import Speculative
from adahi_ros.core.signature import GOAL, OBSERVATION, CodeSpace, Feature, Signature
from adahi_ros.protocol.request import (
    RequestError,
    RequestFault,
    check_reply,
)
from adahi_ros.server.engine import check_request

TARGET = Signature(
    history=2,
    horizon=2,
    action_dim=2,
    features=(Feature(OBSERVATION, 3),),
    conditions=(Feature(GOAL, 1),),
    codes=CodeSpace("feed", 2, 4),
)
RULE = Speculative()
NONE = np.array([])
WINDOW = np.arange(6, dtype=np.float32).reshape(2, 3)
P = np.array([6553, 13107, 19661, 26214, 0, 0, 0, 65535])


def with_entry(values: np.ndarray, index: int, value: float) -> np.ndarray:
    changed = np.array(values)
    changed[index] = value
    return changed


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_good_request_gets_its_shapes_and_types(dtype: type) -> None:
    goal: np.ndarray = np.array([7.0], dtype)
    codes, counts = np.array([0, 3], np.uint16), P.astype(np.uint16)
    request = check_request(TARGET, RULE, WINDOW, goal, codes, counts, np.arange(4, dtype=dtype))
    seen, drawn = request.observations, request.draft.distribution
    assert drawn is not None
    assert drawn.counts is not None
    np.testing.assert_array_equal(seen.features[OBSERVATION], [[[0, 1, 2], [3, 4, 5]]])
    np.testing.assert_array_equal(seen.conditions[GOAL], [[7]])
    np.testing.assert_array_equal(drawn.codes, [[0, 3]])
    np.testing.assert_allclose(drawn.probabilities, [[[0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 0.0, 1.0]]], atol=1e-5)
    np.testing.assert_array_equal(request.draft.actions, [[[0, 1], [2, 3]]])
    assert drawn.codes.dtype == np.int64
    assert drawn.counts.dtype == np.uint16
    for values in (
        *(seen.features[OBSERVATION], seen.conditions[GOAL]),
        *(drawn.probabilities, request.draft.actions),
    ):
        assert values.dtype == np.float32


def test_a_robot_may_have_no_actions_to_be_judged() -> None:
    draft = check_request(TARGET, Near(), WINDOW, np.zeros(1), NONE, NONE, NONE).draft
    assert draft.actions.shape == (1, 0, 2)


def test_an_instruction_is_read_by_a_target_that_receives_one() -> None:
    flat = (WINDOW, np.zeros(1), np.array([0, 3]), P, np.zeros(0), "fold")
    assert check_request(TARGET, RULE, *flat).observations.instructions == ()
    instructed = replace(TARGET, instruction=True)
    assert check_request(instructed, RULE, *flat).observations.instructions == ("fold",)


class Near(Replace):
    """A rule that compares actions."""

    needs_actions = True


@pytest.mark.parametrize(("rule", "codes"), [(Replace(), TARGET.codes), (Replace(), None), (Near(), None)])
def test_what_a_rule_does_not_need_may_be_missing(rule: Acceptance, codes: CodeSpace | None) -> None:
    actions = np.zeros(6 if rule.needs_actions else 0)
    draft = check_request(replace(TARGET, codes=codes), rule, WINDOW, np.zeros(1), NONE, NONE, actions).draft
    assert draft.distribution is None
    assert draft.actions.shape == (1, 3 if rule.needs_actions else 0, 2)


@pytest.mark.parametrize(
    ("rule", "codes", "counts", "actions", "message"),
    [
        (RULE, NONE, NONE, NONE, "codes: 0 values, expected 2 for shape (2,)"),
        (RULE, NONE, P, NONE, "codes: 0 values, expected 2 for shape (2,)"),
        (Replace(), np.array([0, 3]), NONE, NONE, "draft_probabilities: 0 values, expected 8"),
        (Replace(), NONE, P, NONE, "codes: 0 values, expected 2"),
        (
            Replace(),
            NONE,
            NONE,
            np.zeros(3),
            "draft_actions: 3 values, must be a multiple of 2",
        ),
        (Near(), NONE, NONE, np.zeros(1), "draft_actions: 1 values, must be a multiple of 2"),
    ],
)
def test_what_a_rule_needs_must_be_there_and_whole(
    rule: Acceptance, codes: np.ndarray, counts: np.ndarray, actions: np.ndarray, message: str
) -> None:
    with pytest.raises(RequestError, match=re.escape(message)) as refusal:
        check_request(TARGET, rule, WINDOW, np.zeros(1), codes, counts, actions)
    assert refusal.value.fault is RequestFault.WRONG_SHAPE


def test_codes_are_refused_by_a_target_that_has_none() -> None:
    for codes, counts in ((np.array([0, 3]), P), (np.array([0]), NONE), (NONE, P)):
        with pytest.raises(RequestError, match=r"(codes|draft_probabilities): \d values, expected 0"):
            check_request(replace(TARGET, codes=None), Replace(), WINDOW, np.zeros(1), codes, counts)


def test_drafted_actions_must_be_finite() -> None:
    with pytest.raises(RequestError, match=r"draft_actions\[1\]: nan, must be finite") as refusal:
        check_request(TARGET, Replace(), WINDOW, np.zeros(1), NONE, NONE, np.array([0.0, np.nan]))
    assert refusal.value.fault is RequestFault.NOT_FINITE


def test_a_policy_without_a_goal_takes_an_empty_one() -> None:
    aimless = replace(TARGET, conditions=())
    seen = check_request(aimless, RULE, WINDOW, np.array([]), np.array([0, 3]), P).observations
    assert aimless.condition(seen).shape == (1, 0)
    with pytest.raises(RequestError, match="goal: 1 values, expected 0"):
        check_request(aimless, RULE, WINDOW, np.array([1.0]), np.array([0, 3]), P)


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
    flat: dict[str, Any] = {"goal": np.zeros(1), "codes": np.array([0, 3]), "counts": P}
    with pytest.raises(RequestError, match=re.escape(message)) as refusal:
        check_request(TARGET, RULE, WINDOW, **(flat | {field: value}))
    assert refusal.value.fault is RequestFault[fault]


def test_a_good_reply_gets_its_shapes_and_types() -> None:
    verdict = check_reply(TARGET, 0, 2, [True, False], np.arange(4.0).tolist())
    np.testing.assert_array_equal(verdict.accepted, [[True, False]])
    np.testing.assert_array_equal(verdict.actions, [[[0, 1], [2, 3]]])
    assert verdict.accepted.dtype == np.bool_
    assert verdict.actions.dtype == np.float32
    assert check_reply(TARGET, 0, 0, [], np.arange(4.0).tolist()).accepted.shape == (1, 0)
    assert check_reply(TARGET, 0, None, [True] * 3, np.arange(4.0).tolist()).accepted.shape == (1, 3)


def test_a_reply_that_begins_later_is_shorter() -> None:
    assert check_reply(TARGET, 1, 0, [], [1.0, 2.0]).actions.tolist() == [[[1.0, 2.0]]]
    with pytest.raises(RequestError, match=re.escape("actions: 4 values, expected 2 for shape (1, 2)")):
        check_reply(TARGET, 1, 0, [], [0.0] * 4)


@pytest.mark.parametrize(
    ("changes", "fault", "message"),
    [
        ({"accepted": []}, "WRONG_SHAPE", "accepted: 0 values, expected 2"),
        ({"accepted": [True] * 3}, "WRONG_SHAPE", "accepted: 3 values, expected 2"),
        ({"actions": [0.0] * 3}, "WRONG_SHAPE", "actions: 3 values, expected 4 for shape (2, 2)"),
        ({"actions": []}, "WRONG_SHAPE", "actions: 0 values, expected 4 for shape (2, 2)"),
        ({"actions": [0.0, 0.0, np.nan, 0.0]}, "NOT_FINITE", "actions[2]: nan, must be finite"),
        ({"actions": [0.0, 0.0, 0.0, -np.inf]}, "NOT_FINITE", "actions[3]: -inf, must be finite"),
    ],
)
def test_a_bad_reply_is_refused(changes: dict[str, list[float]], fault: str, message: str) -> None:
    flat: dict[str, Any] = {"accepted": [True, True], "actions": [0.0] * 4}
    with pytest.raises(RequestError, match=re.escape(message)) as refusal:
        check_reply(TARGET, 0, 2, **(flat | changes))
    assert refusal.value.fault is RequestFault[fault]


def test_rows_of_a_verdict_by_mask_and_by_index() -> None:
    verdict = Verdict(np.arange(6.0).reshape(3, 1, 2), np.arange(6).reshape(3, 2) % 2 == 0)
    for which in (np.array([True, False, True]), np.array([0, 2])):
        some = verdict.rows(which)
        np.testing.assert_array_equal(some.accepted, [[True, False], [True, False]])
        np.testing.assert_array_equal(some.actions, [[[0, 1]], [[4, 5]]])


CODED = replace(TARGET, codes=CodeSpace("ab", 2, 5))
WHOLE = (0, None, (), [0.0] * (TARGET.horizon * TARGET.action_dim))


def test_codes_of_a_reply_are_those_of_the_target() -> None:
    codes = check_reply(CODED, *WHOLE, [4, 0]).codes
    assert codes is not None
    assert codes.tolist() == [[4, 0]]
    assert check_reply(CODED, *WHOLE).codes is None


@pytest.mark.parametrize(
    ("codes", "target", "message"),
    [
        ([1], CODED, "codes: 1 values, expected 2 for shape (2,)"),
        ([1, 5], CODED, "codes[1]: 5, must be from 0 to 4"),
        ([1], replace(TARGET, codes=None), "codes: 1 values, expected 0 for shape (0,)"),
    ],
)
def test_other_codes_of_a_reply_are_refused(codes: list[int], target: Signature, message: str) -> None:
    with pytest.raises(RequestError, match=f"^{re.escape(message)}$"):
        check_reply(target, *WHOLE, codes)
