"""A call that is given up ends at once, also where its service is not there."""

from __future__ import annotations

import time

import pytest
from rclpy.task import Future
from std_srvs.srv import Trigger

from adahi_lab.nodes.observer import Observer
from adahi_ros.nodes.common.replies import NotRepliedError, sent
from test.nodes.in_process import DEADLINE_S


def test_a_call_that_is_given_up_looks_for_its_service_no_longer(observer: Observer) -> None:
    node, given_up = observer.node, Future()
    client = node.create_client(Trigger, "nowhere")
    started_s = time.monotonic()
    call = observer._executor.create_task(sent(node, client, Trigger.Request(), 10 * DEADLINE_S, given_up))
    observer.wait_until(lambda: time.monotonic() > started_s + 0.1, DEADLINE_S, "that it looks")
    assert not call.done()
    given_up.set_result(None)
    with pytest.raises(NotRepliedError, match="request given up"):  # the executor raises it
        observer.wait_until(call.done, DEADLINE_S, "its end")
