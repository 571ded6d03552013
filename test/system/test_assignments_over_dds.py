"""From an operator's assignment to the robot's request, and its reply, between real nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from adahi_msgs.msg import Assignments
from adahi_msgs.srv import Assign

from adahi_ros.bags.bag_reader import read_bag
from adahi_ros.bags.recorded_topics import ASSIGNMENTS
from adahi_ros.nodes.common.assignment_messages import to_assignments
from adahi_ros.nodes.common.qos import notice_qos
from adahi_ros.policies.backends import load_policy
from adahi_ros.protocol.notice import Notice
from test.system.recorder import Recorder
from test.system.stage import Robot, Stage
from test.tiny_intents import tiny_intents

GOAL = [0.5, -0.5]


class Fleet:
    """A verifier and an operator; a robot that only a notice makes send requests."""

    def __init__(self, stage: Stage, checkpoints: Path, **verifier: Any) -> None:
        self.stage, self.checkpoints, self._of_verifier = stage, checkpoints, verifier
        self.robot = Robot(stage)
        self._assign = stage.client(Assign, "target_verifier/assign")
        self.start_verifier()

    def start_verifier(self) -> None:
        self.verifier = self.stage.start_verifier(self.checkpoints, assigns=True, **self._of_verifier)

    def start_robot(self, **parameters: Any) -> None:
        given = {"gate__name": "never", "command__lockstep": True, **parameters}
        self.draft = self.stage.start_draft(self.checkpoints, robot_id="arm", **given)
        self.stage.activate()
        self.robot.show_until_commanded(1)

    def assign(self, robot: str, goal: list[float]) -> int:
        response = self._assign(Assign.Request(robot_id=robot, goal=goal))
        assert response.success, response.message
        return int(response.revision)

    def wait_for_log(self, text: str) -> None:
        self.stage.wait(lambda: text in self.draft.output, text)

    def requested(self, steps: int) -> list[bool]:
        """Show the next observations; return which of them made a request."""
        records = [self.robot.next() for _ in range(steps)]
        assert all(record.verified == record.transmitted for record in records)
        return [record.transmitted for record in records]


AHEAD: dict[str, Any] = {
    "proposer__name": "plan",
    "wait_policy": "ahead",
    "gate__name": "age",
    "gate__threshold": 100.0,
    "fallback_limit": 1000,
}


@pytest.fixture
def fleet(stage: Stage, exported: Path) -> Iterator[Fleet]:
    yield Fleet(stage, exported)
    stage.clear()


def test_a_notice_makes_one_request_and_no_other_robot_is_concerned(fleet: Fleet) -> None:
    fleet.start_robot()
    assert fleet.requested(3) == [False] * 3
    revision = fleet.assign("arm", GOAL)
    fleet.wait_for_log(f"assignment {revision} of the verifier")
    assert fleet.requested(3) == [True, False, False]
    fleet.assign("leg", GOAL)
    fleet.stage.observer.wait_until(lambda: True, 1.0, "time")
    assert fleet.requested(3) == [False] * 3


def test_a_robot_that_joins_late_requests_for_its_assignment(fleet: Fleet) -> None:
    revision = fleet.assign("arm", GOAL)
    fleet.start_robot()
    fleet.wait_for_log(f"assignment {revision} of the verifier")
    assert fleet.requested(3)[1:] == [False] * 2  # the notice comes before the first step, or after it
    assert [each.verified for each in fleet.robot.steps].count(True) == 1


def test_a_restart_of_the_verifier_is_noticed(fleet: Fleet) -> None:
    fleet.start_robot()
    fleet.assign("arm", GOAL)
    fleet.wait_for_log("assignment 1 of the verifier")
    assert fleet.requested(2) == [True, False]
    fleet.stage.end(fleet.verifier)
    fleet.start_verifier()
    fleet.wait_for_log("assignment 0 of the verifier")
    fleet.stage.wait(lambda: fleet.draft.output.count("verifier ready") == 2, "the verifier")
    assert fleet.requested(2) == [True, False]
    fleet.assign("arm", GOAL)
    fleet.stage.wait(lambda: fleet.draft.output.count("assignment 1 of the verifier") == 2, "the notice")
    assert fleet.requested(2) == [True, False]


def test_a_robot_with_an_intent_requests_another_for_its_assignment(
    stage: Stage, make_checkpoints: Callable[..., Path]
) -> None:
    checkpoints = make_checkpoints(chunk_length=8)
    load_policy(checkpoints / "draft", "onnxruntime")
    tiny_intents(checkpoints, "intent", load_policy(checkpoints / "target", "onnxruntime").signature)
    intent = str(checkpoints / "intent")
    fleet = Fleet(stage, checkpoints, rule__name="replace", intent=intent)
    fleet.start_robot(**{**AHEAD, "proposer__name": "intent"}, proposer__file=intent)
    robot = fleet.robot
    stage.wait(lambda: robot.next().plan_left > 8, "an intent")
    assert fleet.requested(3) == [False] * 3
    revision = fleet.assign("arm", GOAL)
    fleet.wait_for_log(f"assignment {revision} of the verifier")
    assert robot.next().transmitted
    stage.wait(lambda: robot.next().plan_left > 8, "an intent for the assignment")
    assert fleet.requested(3) == [False] * 3
    stage.clear()


def test_a_bag_has_the_notices_of_a_verifier_in_another_namespace(
    stage: Stage, recorders: Callable[..., Recorder], tmp_path: Path
) -> None:
    robot, topic = Robot(stage), "/server/assignments"
    publisher = stage.node.create_publisher(Assignments, topic, notice_qos())
    publisher.publish(to_assignments(1, 2, {"arm": 2}))  # before the recorder starts
    recorder = recorders(
        tmp_path, "--contract", "ball", "--out", "bag", "--namespace", "/", "--verifier-namespace", "server"
    )
    for each in (topic, "joint_states", "task_state"):
        recorder.wait_until_it_records(each)
    robot.show(1, 0)
    recorder.end()
    (notice,) = [Notice.from_message(each.message, "arm") for each in read_bag(tmp_path / "bag", ASSIGNMENTS)]
    assert notice == Notice(1, 2, 2)
