"""Which replies make a robot send more data of its draft: only sound ones to its request."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_ros.protocol.request import OK, Reply, Request, RequestFault
from adahi_ros.robot.outcomes import PendingRequest

N = 4
REQUEST = Request(2, 7, 8, codes=np.arange(N), data={"sent": np.zeros((1, N), bool)})
REPLY = Reply(OK, "", 2, 7, 8, rule_data=b"more")


def asked(request: Request, reply: Reply) -> bool:
    return PendingRequest(request, 0.0, 1.0).asked_by(reply)


def test_a_reply_without_actions_asks_once() -> None:
    assert asked(REQUEST, REPLY)
    assert not PendingRequest(REQUEST, 0.0, 1.0, answered=True).asked_by(REPLY)
    assert not asked(replace(REQUEST, data={}), REPLY)
    assert not asked(replace(REQUEST, without_actions=True), REPLY)  # it has no actions anyway


@pytest.mark.parametrize(
    "changes",
    [
        {"rule_data": b""},
        {"step": 6},
        {"first_step": 7},
        {"episode": 1},
        {"fault": "it cannot be read"},
        {"status": int(RequestFault.BUSY)},
        {"actions": (0.0,)},
    ],
)
def test_what_does_not_fit_the_request_asks_nothing(changes: dict[str, object]) -> None:
    assert not asked(REQUEST, replace(REPLY, **changes))  # type: ignore[arg-type]
