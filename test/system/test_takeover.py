"""A person takes over a node that runs, by a topic or a button, and gives the arm back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from action_msgs.msg import GoalStatus
from adahi_msgs.action import RunPolicy
from adahi_msgs.msg import SafetyState
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import ListParameters
from rclpy.action import ActionClient  # type: ignore[attr-defined]
from sensor_msgs.msg import JointState, Joy
from std_msgs.msg import Bool

from adahi_lab.evaluation.loaded_policies import PLANS, PolicyFiles
from adahi_ros.core.assets import asset
from adahi_ros.nodes.common.messages import to_joint_state
from adahi_ros.nodes.launching.child_processes import NodeProcess
from adahi_ros.policies.backends import load_policy
from adahi_ros.protocol.records import Reason, StepRecord
from test.system.stage import DEEP, JOINTS, Robot, Stage

BUTTON = 2
MOVED = 0.05  # rad, of the teleoperator in each step
MOST_STEPS = 400


class Person:
    """A person with a teleoperator that stands elsewhere than the arm."""

    def __init__(self, stage: Stage, robot: Robot, button: int) -> None:
        self._robot, self._button = robot, button
        self.at = np.array([2.0, 3.0])
        kind, topic = (Bool, "takeover") if button < 0 else (Joy, "joy")
        self._signal = stage.node.create_publisher(kind, topic, DEEP)
        self._command = stage.node.create_publisher(JointState, "teleop_command", DEEP)

    def leave(self) -> None:
        """End the publishers: two at once hold the arm."""
        for publisher in (self._signal, self._command):
            self._robot.stage.node.destroy_publisher(publisher)

    def press(self, value: bool) -> None:
        if self._button < 0:
            self._signal.publish(Bool(data=value))
        else:
            buttons = [0] * self._button + [int(value)]
            self._signal.publish(Joy(buttons=buttons))

    def command(self, moved: float = 0.0) -> None:
        self.at = self.at + moved
        self._command.publish(to_joint_state(JOINTS, self.at, np.zeros(2), self._robot.now()))


@pytest.fixture
def limits(tmp_path: Path) -> Path:
    path = tmp_path / "limits.yaml"
    limit = {"position": [-1.0, 1.0], "velocity": 1000.0, "max_step": float("inf")}
    path.write_text(yaml.safe_dump({"limits": {"default": limit}}))
    return path


def start(stage: Stage, files: PolicyFiles, **parameters: object) -> NodeProcess:
    for name in ("draft", f"{PLANS}/target"):
        load_policy(files.folder / name, "onnxruntime")  # exports it, which takes long
    return stage.start_draft(files.folder, **parameters)


def until(
    robot: Robot, each: Callable[[], None], right: Callable[[StepRecord], bool], what: str
) -> StepRecord:
    """Show observations until the record of a step is right; let the person act before each."""
    for _ in range(MOST_STEPS):
        each()
        record = robot.next()
        if right(record):
            return record
    pytest.fail(f"{what}: {record}")


@pytest.mark.parametrize("button", [-1, BUTTON])
def test_a_person_drives_and_the_policy_gets_the_arm_back(
    stage: Stage, files: PolicyFiles, limits: Path, button: int
) -> None:
    robot = Robot(stage)
    ahead = {"proposer__name": "plan", "wait_policy": "ahead", "safety__limits": str(limits)}
    person_of = {"takeover__command": "joint_state", "takeover__button": button}
    timeouts = {"safety__enable_timeout_s": 30.0}  # any machine repeats its messages within
    draft = start(stage, files, **ahead, **person_of, **timeouts)
    verifier = stage.start_verifier(files.folder / PLANS, rule__name="replace")
    stage.activate()
    robot.show_until_answered(1)
    person = Person(stage, robot, button)

    def presses() -> None:
        person.press(True)
        person.command()

    def drives() -> None:
        person.press(True)
        person.command(MOVED if robot.step % 2 else -MOVED)

    until(robot, lambda: None, lambda record: record.planned, "a plan")
    first = until(robot, presses, lambda record: record.by_person and bool(record.action), "a person drives")
    begin = np.array(first.action)
    left = next(record for record in reversed(robot.steps) if record.action and not record.by_person)
    np.testing.assert_allclose(begin, left.action, atol=1e-6)  # the arm's last command, not the teleoperator
    moved = until(
        robot,
        drives,
        lambda record: record.by_person and len(record.action) == 2 and record.action != first.action,
        "a motion",
    )
    np.testing.assert_allclose(np.abs(np.array(moved.action) - begin), MOVED, atol=1e-3)
    assert not moved.transmitted
    back = until(
        robot, lambda: person.press(False), lambda record: record.planned and bool(record.action), "back"
    )
    assert back.reason is Reason.NONE
    person.leave()
    output = stage.end(draft)
    assert "takeover: a person drives" in output
    assert "takeover: the policy gets the arm back" in output
    stage.end(verifier)


@pytest.mark.parametrize("through", ["transitions", "a goal"])
def test_a_person_who_is_silent_keeps_the_arm_through_cleanup(
    stage: Stage, files: PolicyFiles, limits: Path, through: str
) -> None:
    robot = Robot(stage)
    safety: list[SafetyState] = stage.received(SafetyState, "safety_state")
    health: list[DiagnosticArray] = stage.received(DiagnosticArray, "/diagnostics")
    ahead = {"proposer__name": "plan", "wait_policy": "ahead", "safety__limits": str(limits)}
    draft = start(stage, files, **ahead, takeover__command="joint_state", safety__enable_timeout_s=1.0)
    verifier = stage.start_verifier(files.folder / PLANS, rule__name="replace")
    stage.activate()
    robot.show_until_answered(1)
    person = Person(stage, robot, -1)
    until(robot, lambda: person.press(True), lambda record: record.by_person, "a person has the arm")
    stage.wait(lambda: bool(safety) and "at rest" in safety[-1].message, "rest")
    for label in ("deactivate", "cleanup"):
        assert stage.change_state(label)
    safety.clear()
    if through == "transitions":
        stage.activate()
    else:
        client = ActionClient(stage.node, RunPolicy, "run_policy")
        runner = stage.start("policy_runner_node", no_verifier_s=60.0, no_steps_s=60.0)
        stage.wait(client.server_is_ready, "the action's server")
        stage.client(ListParameters, "policy_runner/list_parameters")(ListParameters.Request())
        goal = client.send_goal_async(RunPolicy.Goal())

        def active() -> bool:
            nonlocal goal
            over = goal.done() and goal.result().status == GoalStatus.STATUS_ABORTED  # on a busy machine
            if over or (goal.done() and not goal.result().accepted):  # the runner has not discovered the node
                goal = client.send_goal_async(RunPolicy.Goal())
            return stage.state() == "active"

        stage.wait(active, "the policy is active")
    commands = len(robot.commands)
    robot.show_until_answered(1)
    steps = len(robot.steps)

    def shown() -> bool:
        robot.next()
        return len(robot.steps) >= steps + 60

    stage.wait(shown, "steps")
    stage.wait(lambda: bool(safety) and "~/give_back" in safety[-1].message, "the way out")
    held = "held: no takeover for 1 s; take over again, or call ~/give_back"
    stage.wait(lambda: any(each.status[0].message == held for each in health), "diagnostics")
    assert len(robot.commands) == commands
    assert not safety[-1].counts[SafetyState.INTERVENTION_DISABLED]
    until(robot, lambda: person.press(True), lambda record: record.by_person, "it is still the person's")
    until(robot, lambda: person.press(False), lambda record: record.planned and bool(record.action), "back")
    person.leave()
    if through == "a goal":
        goal.result().cancel_goal_async()
        stage.end(runner)
        client.destroy()
    stage.end(draft)
    stage.end(verifier)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"takeover__button": 3}, "takeover.button: 3, must be -1 without takeover.command"),
        ({"takeover__command": "joint_state"}, "safety.limits"),
    ],
)
def test_what_does_not_go_with_a_takeover_is_refused(
    stage: Stage, files: PolicyFiles, changes: dict[str, object], says: str
) -> None:
    draft = start(stage, files, **changes)
    assert not stage.change_state("configure")
    assert says in stage.end(draft)


def test_a_message_type_without_the_commanded_field_is_refused(
    stage: Stage, files: PolicyFiles, tmp_path: Path
) -> None:
    contract = asset("config/contracts/ball.yaml").read_text().replace("positions.", "accelerations.")
    (tmp_path / "arm.yaml").write_text(contract)
    given = {"contract": str(tmp_path / "arm.yaml"), "safety__limits": "none"}
    draft = start(stage, files, takeover__command="joint_state", **given)
    assert not stage.change_state("configure")
    assert "takeover.command: 'joint_state', must not be" in stage.end(draft)
