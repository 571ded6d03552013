from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import CodeSpace, Feature, Signature
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import NO_CODES, OK, Reply, Request, RequestFault, sent_codes
from adahi_ros.protocol.window import WireWindow
from adahi_ros.robot.outcomes import Outcome, judged

TARGET = Signature(1, 1, 2, (Feature("observation", 1),), codes=CodeSpace("f123456789abcdef", 2, 8))
WINDOW = np.zeros((1, 1), np.float32)
REQUEST = Request.from_draft(
    Proposal(np.zeros((1, 0, 2), np.float32), sent_codes(np.zeros((1, 2), int), np.zeros((1, 2, 8)))),
    3,
    7,
    WireWindow.pack(WINDOW, np.zeros(0, np.float32)),
)
RIGHT = Reply(OK, "", 3, 7, 7, (True, False), (0.5, -0.5), 0.25, True, size_bytes=60)


def outcome_of(**changes: Any) -> Outcome:
    return judged(Description("target", "speculative", TARGET), REQUEST, replace(RIGHT, **changes), 12.0)


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        ({"status": 3, "message": "goal[0]: nan"}, Reason.REFUSED, "goal[0]: nan"),
        ({"status": int(RequestFault.TOKENIZER_MISMATCH)}, Reason.REFUSED, "status 1"),
        ({"status": 200}, Reason.REFUSED, "status 200"),
        ({"status": int(RequestFault.SUPERSEDED), "message": "step_id: 7"}, Reason.SUPERSEDED, "step_id: 7"),
        ({"step": 999}, Reason.BAD_REPLY, "episode_id, step_id, first_step: (3, 999, 7), must be (3, 7, 7)"),
        ({"episode": 4}, Reason.BAD_REPLY, "episode_id, step_id"),
        ({"first_step": 8}, Reason.BAD_REPLY, "episode_id, step_id, first_step: (3, 7, 8)"),
        ({"accepted": ()}, Reason.BAD_REPLY, "accepted"),
        ({"accepted": (True,)}, Reason.BAD_REPLY, "accepted"),
        ({"actions": (math.nan, 0.0)}, Reason.BAD_REPLY, "actions[0]: nan"),
        ({"actions": ()}, Reason.BAD_REPLY, "actions"),
        ({"compute_ms": math.nan}, Reason.BAD_REPLY, "compute_time_ms: nan"),
        ({"compute_ms": -math.inf}, Reason.BAD_REPLY, "compute_time_ms: -inf"),
    ],
)
def test_a_reply_that_is_no_good_says_why(changes: dict[str, Any], reason: Reason, message: str) -> None:
    outcome = outcome_of(**changes)
    assert outcome.verification is None
    assert outcome.reason is reason
    assert outcome.message.startswith(message)
    assert (outcome.verify_ms, outcome.compute_ms, outcome.reply_bytes) == (0.0, 0.0, 60)


ENCODER = "00000000000000aa"
BY_INTENT = Description(
    "target", "replace", replace(TARGET, horizon=4, codes=None), intent_fingerprint=ENCODER, intent_size=3
)
INTENT = replace(RIGHT, accepted=(), actions=(), intent=(-127, 0, 127), intent_fingerprint=0xAA)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"intent": (1, 2)}, "intent: 2 values, expected 3 for shape (3,)"),
        ({"intent": ()}, "intent: 0 values, expected 3 for shape (3,)"),
        ({"intent": (0, -128, 0)}, "intent[1]: -128, must be from -127 to 127"),
        ({"intent": np.array([0, 0, -128], np.int8)}, "intent[2]: -128, must be from -127 to 127"),
        ({"intent_fingerprint": 0xBB}, "intent_fingerprint: 00000000000000bb, must be 00000000000000aa"),
        ({"intent_fingerprint": 0}, "intent_fingerprint: none, must be 00000000000000aa, as described"),
        ({"actions": (0.0,) * 8}, "actions: 8 values, expected 0 for shape (0, 2)"),
    ],
)
def test_a_wrong_intent_is_a_bad_reply(changes: dict[str, Any], message: str) -> None:
    request = replace(REQUEST, without_actions=True, codes=NO_CODES)
    outcome = judged(BY_INTENT, request, replace(INTENT, **changes), 12.0)
    assert (outcome.verification, outcome.reason) == (None, Reason.BAD_REPLY)
    assert outcome.message.startswith(message)


CODES = replace(RIGHT, actions=(), codes=(7, 0))


def test_a_reply_may_be_codes_alone() -> None:
    request = replace(REQUEST, without_actions=True)
    outcome = judged(Description("target", "speculative", TARGET), request, CODES, 12.0)
    assert outcome.verification is not None
    assert outcome.verification.codes is not None
    assert outcome.verification.codes.tolist() == [[7, 0]]
    assert outcome.verification.actions.shape == (1, 0, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"codes": ()}, "codes: 0 values, expected 2"),
        ({"codes": (1,)}, "codes: 1 values, expected 2"),
        ({"codes": (1, 8)}, "codes[1]: 8, must be from 0 to 7"),
        ({"actions": (0.5, -0.5)}, "actions: 2 values, expected 0"),
    ],
)
def test_wrong_codes_are_a_bad_reply(changes: dict[str, Any], message: str) -> None:
    request = replace(REQUEST, without_actions=True)
    described = Description("target", "speculative", TARGET)
    outcome = judged(described, request, replace(CODES, **changes), 12.0)
    assert (outcome.verification, outcome.reason) == (None, Reason.BAD_REPLY)
    assert outcome.message.startswith(message)


def test_an_intent_that_was_not_described_is_a_bad_reply() -> None:
    outcome = outcome_of(intent=(1, 2, 3), intent_fingerprint=0xAA)
    assert outcome.reason is Reason.BAD_REPLY
    assert outcome.message == "intent_fingerprint: 00000000000000aa, must be none, as described"


def test_a_reply_that_begins_later_goes_on_from_what_was_committed() -> None:
    described = Description("target", "replace", replace(TARGET, horizon=4, codes=None))
    drafted = np.arange(6, dtype=np.float32).reshape(1, 3, 2)
    request = replace(REQUEST, actions=drafted.ravel(), first_step=9)
    reply = replace(RIGHT, first_step=9, accepted=(), actions=(9.0, 8.0, 7.0, 6.0))
    outcome = judged(described, request, reply, 12.0)
    assert outcome.verification is not None
    expected = [[[0, 1], [2, 3], [9, 8], [7, 6]]]  # of the request's step and those after it
    assert outcome.verification.actions.tolist() == expected
    early = judged(described, request, replace(reply, first_step=7), 12.0)
    assert early.message == "episode_id, step_id, first_step: (3, 7, 7), must be (3, 7, 9)"
    long = judged(described, request, replace(reply, actions=(0.0,) * 8), 12.0)
    assert long.message == "actions: 8 values, expected 4 for shape (2, 2)"


def test_a_reply_judges_every_code_or_what_its_rule_says() -> None:
    bare = replace(REQUEST, codes=np.empty(0, np.int64))
    for rule, request, judged_parts in (("speculative", REQUEST, {2}), ("replace", REQUEST, {0, 1, 2})):
        described = Description("target", rule, TARGET)
        sound = {
            parts
            for parts in range(3)
            if judged(described, request, replace(RIGHT, accepted=(False,) * parts), 12.0).verification
        }
        assert sound == judged_parts
    none = judged(Description("target", "speculative", TARGET), bare, replace(RIGHT, accepted=()), 12.0)
    assert none.verification is not None
