from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adahi_ros.policy.interface import PolicySpec
from adahi_ros.robot.requests import OK, Outcome, judged
from adahi_ros.robot.transport import Reply, StepRequest
from adahi_ros.wire.records import Reason
from adahi_ros.wire.request import RequestFault, VerificationRequest
from adahi_ros.wire.window import WireWindow

SPEC = PolicySpec(1, 1, 0, 2, 8, 1, 2, 0)
WINDOW = np.zeros((1, 1), np.float32)
REQUEST = StepRequest(
    VerificationRequest(WINDOW[None], np.zeros((1, 0)), np.zeros((1, 2)), np.zeros((1, 2, 8))),
    3,
    7,
    WireWindow.of(WINDOW, np.zeros(0, np.float32)),
)
RIGHT = Reply(0, OK, "", 3, 7, (1, 2), (True, False), (0.5, -0.5), 0.25, True, 60)


def outcome_of(**changes: Any) -> Outcome:
    return judged(SPEC, REQUEST, replace(RIGHT, **changes), 12.0)


def test_a_good_reply_may_be_executed() -> None:
    outcome = outcome_of()
    assert outcome.verification is not None
    assert outcome.verification.codes.tolist() == [[1, 2]]
    assert outcome.verification.accepted.tolist() == [[True, False]]
    assert outcome.verification.offset.tolist() == [[[0.5, -0.5]]]
    told = (outcome.reason, outcome.message, outcome.verify_ms, outcome.compute_ms, outcome.reply_bytes)
    assert told == (Reason.NONE, "", 12.0, 0.25, 60)


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        ({"status": 3, "message": "goal[0]: nan"}, Reason.REFUSED, "goal[0]: nan"),
        ({"status": int(RequestFault.TOKENIZER_MISMATCH)}, Reason.REFUSED, "status 1"),
        ({"status": 200}, Reason.REFUSED, "status 200"),
        ({"step": 999}, Reason.BAD_ANSWER, "episode_id, step_id: (3, 999), must be (3, 7)"),
        ({"episode": 4}, Reason.BAD_ANSWER, "episode_id, step_id"),
        ({"codes": (1, 8)}, Reason.BAD_ANSWER, "codes[1]: 8"),
        ({"codes": ()}, Reason.BAD_ANSWER, "codes"),
        ({"accepted": (True,)}, Reason.BAD_ANSWER, "accepted"),
        ({"offset": (math.nan, 0.0)}, Reason.BAD_ANSWER, "offset[0]: nan"),
        ({"offset": ()}, Reason.BAD_ANSWER, "offset"),
        ({"compute_ms": math.nan}, Reason.BAD_ANSWER, "compute_time_ms: nan"),
        ({"compute_ms": -math.inf}, Reason.BAD_ANSWER, "compute_time_ms: -inf"),
    ],
)
def test_a_reply_that_is_no_good_says_why(changes: dict[str, Any], reason: Reason, message: str) -> None:
    outcome = outcome_of(**changes)
    assert outcome.verification is None
    assert outcome.reason is reason
    assert outcome.message.startswith(message)
    assert (outcome.verify_ms, outcome.compute_ms, outcome.reply_bytes) == (0.0, 0.0, 60)
