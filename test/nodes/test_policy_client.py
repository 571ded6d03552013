"""The client of the policy's node, over DDS, where that node ends while it is configured."""

from __future__ import annotations

from typing import Any

import pytest
from lifecycle_msgs.msg import State
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future
from std_srvs.srv import Trigger

from adahi_lab.nodes.observer import Observer
from adahi_ros.nodes.robot import policy_client
from adahi_ros.nodes.robot.policy_client import NotStartedError, PolicyNode
from adahi_ros.robot.policy_run import Preparation


@pytest.mark.parametrize("killed", [True, False])
def test_a_node_that_is_started_again_while_it_is_configured_is_noticed(
    observer: Observer, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """The request died with the old process. One that is slow says that it is configuring."""
    monkeypatch.setattr(policy_client, "CALL_S", 0.2)
    state = State.PRIMARY_STATE_UNCONFIGURED if killed else State.TRANSITION_STATE_CONFIGURING
    requested: list[GetState.Request] = []
    slow = Future()

    async def change(request: ChangeState.Request, response: ChangeState.Response) -> Any:
        await slow
        response.success = True
        return response

    def say(request: GetState.Request, response: GetState.Response) -> GetState.Response:
        requested.append(request)
        if not killed and len(requested) > 2:
            slow.set_result(None)
        response.current_state.id = state
        return response

    node, apart = observer.node, ReentrantCallbackGroup()
    node.create_service(ChangeState, "policy/change_state", change, callback_group=apart)
    node.create_service(GetState, "policy/get_state", say, callback_group=apart)
    node.create_service(Trigger, "policy/last_error", lambda request, response: response)
    policy = PolicyNode(node, "policy")
    ready = policy._change_state.service_is_ready
    observer.wait_until(lambda: ready() and policy._get_state.service_is_ready(), 20.0, "the services")
    outcome: list[Exception | None] = []

    async def configure() -> None:
        try:
            await policy.change(Preparation.CONFIGURE)
            outcome.append(None)
        except NotStartedError as error:
            outcome.append(error)

    observer._executor.create_task(configure)
    observer.wait_until(lambda: bool(outcome), 20.0, "what comes of it")
    assert ("was started again" in str(outcome[0])) is killed
