"""Which replies make a robot send hidden states: what is no sound reply to its request never does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_ros.core.proposal import States
from adahi_ros.protocol.request import OK, Reply, Request, RequestFault
from adahi_ros.robot.steps import PendingRequest

N = 4
STATES = States(np.zeros((1, N, 3), np.int8), np.zeros((1, N), bool), np.full(1, np.nan))
REQUEST = Request(2, 7, 8, codes=np.arange(N), states=STATES)
REPLY = Reply(OK, "", 2, 7, 8, accepted=(True, False, True, True))


def wants(request: Request, reply: Reply) -> bool:
    return PendingRequest(request, 0.0, 1.0).wants_states(reply)


def test_a_reply_without_actions_wants_states_once() -> None:
    assert wants(REQUEST, REPLY)
    assert not PendingRequest(REQUEST, 0.0, 1.0, round_s=0.5).wants_states(REPLY)
    assert not wants(replace(REQUEST, states=None), REPLY)
    assert not wants(replace(REQUEST, intent_only=True), REPLY)  # it has no actions anyway


@pytest.mark.parametrize(
    "changes",
    [
        {"accepted": (False,) * (N + 1)},
        {"accepted": (False,)},
        {"step": 6},
        {"first_step": 7},
        {"episode": 1},
        {"fault": "it cannot be read"},
        {"status": int(RequestFault.BUSY)},
        {"actions": (0.0,)},
    ],
)
def test_what_does_not_fit_the_request_wants_nothing(changes: dict[str, object]) -> None:
    assert not wants(REQUEST, replace(REPLY, **changes))  # type: ignore[arg-type]
