"""An arm on a topic and its gripper behind a ROS action, held together."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from rclpy.action import ActionServer, CancelResponse, GoalResponse  # type: ignore[attr-defined]
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future
from std_srvs.srv import SetBool

from adahi_lab.evaluation.task_contract import contract_values
from adahi_lab.nodes.observer import Observer
from adahi_lab.tasks import make
from adahi_ros.nodes.common.qos import message_type
from test.system.stage import Robot, Stage

GRIPPER = "control_msgs/action/GripperCommand"


class Gripper:
    """A driver that takes every goal and gets nowhere, or a mute one, that does not even answer.

    Args:
        node: of the driver.
        mute: it does not answer.
        cancel_s: it takes so long to answer that a goal is cancelled.
    """

    def __init__(self, node: Any, mute: bool = False, cancel_s: float = 0.0) -> None:
        self.requested = 0
        self._cancel_s = cancel_s
        self._mute = mute
        self.handles: list[Any] = []
        self._type = message_type(GRIPPER)
        self._server = ActionServer(
            node,
            self._type,
            "hand/gripper_action",
            callback_group=ReentrantCallbackGroup(),
            goal_callback=self._on_goal,
            execute_callback=lambda handle: self._type.Result(),
            handle_accepted_callback=self.handles.append,
            cancel_callback=self._on_cancel,
        )

    @property
    def positions(self) -> list[float]:
        return [handle.request.command.position for handle in self.handles]

    async def _on_goal(self, goal: Any) -> GoalResponse:
        self.requested += 1
        if self._mute:
            await Future()
        return GoalResponse.ACCEPT

    def _on_cancel(self, handle: Any) -> CancelResponse:
        time.sleep(self._cancel_s)
        return CancelResponse.ACCEPT

    def close(self) -> None:
        self._server.destroy()


@pytest.fixture
def with_a_hand(tmp_path: Path) -> dict[str, Any]:
    """Parameters of a node with an arm on a topic and a gripper behind an action."""
    values = contract_values(make("ball"))
    whole = values["actions"].pop("action")
    values["actions"]["action.arm"] = {**whole, "select": whole["select"][:1]}
    hand = {"topic": "hand/gripper_action", "type": GRIPPER}
    joint = whole["select"][1].partition(".")[2]
    values["actions"]["action.hand"] = {"channel": hand, "select": [f"position.{joint}"], "max_effort": 7.0}
    path = tmp_path / "hand.yaml"
    path.write_text(yaml.safe_dump({**values, "max_age_s": 1.0}, sort_keys=False))
    return {
        **{"contract": str(path), "gate__name": "never", "verifier_wait_s": 0.0},
        "command__lockstep": True,
    }


def test_a_gripper_gets_goals_and_is_held_with_the_arm(
    stage: Stage, exported: Path, with_a_hand: dict[str, Any]
) -> None:
    gripper = Gripper(stage.node)
    draft = stage.start_draft(exported, **with_a_hand)
    robot = Robot(stage)
    set_enabled = stage.client(SetBool, "draft_policy/set_enabled")
    stage.activate()
    robot.show_until_commanded(1)
    stage.wait(lambda: bool(gripper.handles), "a goal")
    record = robot.answer_to(1, 0)
    assert gripper.positions[0] == pytest.approx(record.action[1])
    assert gripper.handles[0].request.command.max_effort == 7.0
    assert np.float32(robot.commands[-1].points[0].positions[0]) == np.float32(record.action[0])

    newest = gripper.handles[-1]
    assert set_enabled(SetBool.Request(data=False)).success
    stage.wait(lambda: newest.is_cancel_requested, "that it is cancelled")
    count = len(gripper.handles)
    assert robot.next().action == ()
    assert len(gripper.handles) == count

    assert set_enabled(SetBool.Request(data=True)).success
    robot.next()
    stage.wait(lambda: len(gripper.handles) > count, "a new goal")

    gripper.close()
    mute = Gripper(stage.node, mute=True)
    stage.wait(lambda: bool(robot.next()) and mute.requested > 0, "a goal for a driver that was restarted")
    mute.close()
    after = Gripper(stage.node)
    stage.wait(lambda: bool(robot.next()) and bool(after.handles), "a goal for the one after, too")
    stage.end(draft)
    after.close()


def test_a_cleanup_while_a_cancel_is_not_answered_does_not_end_the_node(
    stage: Stage, exported: Path, with_a_hand: dict[str, Any]
) -> None:
    driver, ended = Observer(stage.domain, "gripper"), threading.Event()  # answers while the test waits
    gripper = Gripper(driver.node, cancel_s=0.25)
    thread = threading.Thread(target=lambda: driver.wait_until(ended.is_set, 1e6, "the end"))
    thread.start()
    try:
        draft = stage.start_draft(exported, **with_a_hand)
        robot = Robot(stage)
        for number in range(1, 4):
            stage.activate()
            robot.show_until_commanded(number)
            stage.wait(lambda: bool(robot.next()) and len(gripper.handles) >= number, "a goal")  # noqa: B023
            assert stage.change_state("deactivate")
            assert stage.change_state("cleanup")
        assert stage.state() == "unconfigured"
        stage.end(draft)
    finally:
        ended.set()
        thread.join()
        gripper.close()
        driver.close()
