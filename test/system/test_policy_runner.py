"""A robot's policy as a ROS action: started, fed back, cancelled, and ended by all that may end it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from action_msgs.msg import GoalStatus
from adahi_msgs.action import RunPolicy
from builtin_interfaces.msg import Duration
from lifecycle_msgs.msg import TransitionEvent
from rcl_interfaces.srv import ListParameters
from rclpy.action import ActionClient  # type: ignore[attr-defined]
from std_msgs.msg import Float32
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from adahi_ros.nodes.launching.child_processes import NodeProcess
from adahi_ros.robot.policy_run import End
from test.system.stage import HeldVerifier, Stage, describe_policy

Result = RunPolicy.Result


class Client:
    """A behaviour tree's leaf."""

    def __init__(self, stage: Stage, verifier: NodeProcess) -> None:
        self.stage, self.verifier = stage, verifier
        self.feedback: list[RunPolicy.Feedback] = []
        self._client = ActionClient(stage.node, RunPolicy, "run_policy")
        # Made after the action's client, so that a server that answers it knows both.
        self._list = stage.client(ListParameters, "policy_runner/list_parameters")

    def start_runner(self, no_verifier_s: float = 5.0) -> None:
        self.stage.wait(lambda: not self._client.server_is_ready(), "that no other is there")
        self.runner = self.stage.start(
            "policy_runner_node", no_verifier_s=no_verifier_s, no_steps_s=20.0, feedback_period_s=0.05
        )
        # One that is told to end while Python still starts does not end as a node does.
        self.stage.wait(self._client.server_is_ready, "the action's server")
        # A server that has not discovered its client yet drops the answer to a goal. This call is repeated.
        self._list(ListParameters.Request())

    def end_runner(self) -> None:
        """Ask it to end; it may still have something to say."""
        self.stage.processes.all.remove(self.runner)
        self.runner.ask_to_end()

    def check_end(self) -> None:
        self.runner.end()
        assert self.runner.exit_code == 0, self.runner.output
        assert "Traceback" not in self.runner.output

    def send(self, **goal: Any) -> Any:
        """Send a goal; return its handle, or None where it is refused."""
        self.stage.wait(self._client.server_is_ready, "the action's server")
        future = self._client.send_goal_async(
            RunPolicy.Goal(**goal), feedback_callback=lambda message: self.feedback.append(message.feedback)
        )
        self.stage.wait(future.done, "whether the goal is taken")
        handle = future.result()
        return handle if handle.accepted else None

    def active(self, handle: Any) -> None:
        """Wait until the policy is active; a goal that ends sooner shows why."""
        over = handle.get_result_async()
        self.stage.wait(lambda: over.done() or self.stage.state() == "active", "that it is active")
        assert not over.done(), over.result().result.error_msg

    def result_of(self, handle: Any) -> tuple[int, Any]:
        return self.result(handle.get_result_async())

    def result(self, future: Any) -> tuple[int, Any]:
        self.stage.wait(future.done, "the goal's end")
        return future.result().status, future.result().result

    def configure(self) -> None:
        """Let the node have the policy of its parameters; the tests come in any order."""
        handle = self.send()
        handle.cancel_goal_async()
        self.result_of(handle)
        assert self.stage.state() == "inactive"

    def kill_verifier(self) -> None:
        """Nobody verifies any more, in this test and those after it."""
        if self.verifier in self.stage.processes.all:
            self.stage.processes.kill(self.verifier)


@pytest.fixture(scope="module")
def client(stage: Stage, exported: Path) -> Iterator[Client]:
    """A robot whose policy waits for goals, in a world that ends its episodes."""
    verifier = stage.start_verifier(exported)
    stage.start_draft(exported)
    client = Client(stage, verifier)
    client.start_runner()
    yield client
    stage.processes.end()
    client.check_end()


def test_a_goal_that_is_cancelled_before_the_policy_acts_lets_it_not_act(client: Client) -> None:
    handle = client.send()
    handle.cancel_goal_async()  # sooner than the policy is loaded
    status, result = client.result_of(handle)
    assert (status, result.error_code, result.held) == (GoalStatus.STATUS_CANCELED, Result.CANCELED, True)
    assert "before the policy was activated" in result.error_msg
    assert client.stage.state() == "inactive"


def test_a_goal_without_a_robot_ends_by_its_limit_of_time(client: Client) -> None:
    """Observations do not come, so there are no steps: the goal ends first by its time."""
    assert client.send(time_limit=Duration(sec=-1)) is None
    handle = client.send(time_limit=Duration(sec=1))
    assert client.send() is None  # one at a time
    status, result = client.result_of(handle)
    assert (status, result.error_code, result.held) == (GoalStatus.STATUS_ABORTED, Result.TIME_LIMIT, True)
    assert (result.steps, result.duration.sec >= 1) == (0, True)
    assert client.stage.state() == "inactive"


def test_a_policy_that_cannot_be_had_is_no_run(client: Client) -> None:
    before = client.stage.state()
    status, result = client.result_of(client.send(policy="/nowhere/draft"))
    assert (status, result.error_code) == (GoalStatus.STATUS_ABORTED, Result.NOT_STARTED)
    assert "policy: '/nowhere/draft', must name a checkpoint" in result.error_msg
    assert client.stage.state() == before


def test_a_policy_that_cannot_be_loaded_leaves_the_node_as_it_was(client: Client, tmp_path: Path) -> None:
    """The result says why, and the next goal runs the former policy."""
    client.configure()
    (tmp_path / "draft.yaml").write_text("kind: nonsense\n")
    status, result = client.result_of(client.send(policy=str(tmp_path / "draft")))
    assert (status, result.error_code) == (GoalStatus.STATUS_ABORTED, Result.NOT_STARTED)
    assert "draft_policy cannot be configured: checkpoint: " in result.error_msg
    assert "nonsense" in result.error_msg
    assert client.stage.state() == "inactive"
    handle = client.send(time_limit=Duration(sec=1))
    assert client.result_of(handle)[1].error_code == Result.TIME_LIMIT


def test_a_goal_that_is_cancelled_while_it_is_configured_activates_nothing(
    client: Client, exported: Path
) -> None:
    received: list[TransitionEvent] = client.stage.received(TransitionEvent, "draft_policy/transition_event")
    handle = client.send(policy=str(exported / "draft"))
    handle.cancel_goal_async()
    status, result = client.result_of(handle)
    assert (status, result.error_code, result.held) == (GoalStatus.STATUS_CANCELED, Result.CANCELED, True)
    assert client.stage.state() == "inactive"
    client.stage.wait(
        lambda: "inactive" in [each.goal_state.label for each in received], "that it is configured"
    )
    assert "active" not in [each.goal_state.label for each in received]


def test_feedback_comes_until_the_goal_is_cancelled_and_the_robot_is_held(
    client: Client, exported: Path
) -> None:
    estimate = client.stage.node.create_publisher(Float32, "success_estimate", 1)
    handle = client.send(policy=str(exported / "draft"))
    # In time with the clock: where the world waits for replies alone, its episode is over in 0.3 s.
    simulator = client.stage.start_simulator(episodes=0, task="ball")
    client.feedback.clear()

    def fed_back() -> bool:
        estimate.publish(Float32(data=0.25))
        newest = client.feedback[-1:]
        return any(each.steps > 3 and each.calls > 0 and each.success_estimate == 0.25 for each in newest)

    client.stage.wait(fed_back, "feedback of steps")
    handle.cancel_goal_async()
    status, result = client.result_of(handle)
    assert (status, result.error_code, result.held) == (GoalStatus.STATUS_CANCELED, Result.CANCELED, True)
    assert result.steps > 3
    assert client.stage.state() == "inactive"
    client.stage.processes.kill(simulator)


def test_any_judge_ends_it(client: Client) -> None:
    handle = client.send()
    simulator = client.stage.start_simulator(lockstep=True, episodes=1)
    client.stage.processes.may_end = simulator
    status, result = client.result_of(handle)
    succeeded = result.error_code == Result.NONE
    assert result.error_code in (Result.NONE, Result.FAILURE)
    assert status == (GoalStatus.STATUS_SUCCEEDED if succeeded else GoalStatus.STATUS_ABORTED)
    word = "success" if succeeded else "failure"
    client.stage.wait(lambda: word in simulator.output, "the simulator's word")
    assert result.steps > 0


def test_a_stop_ends_the_goal_and_the_next_one_waits_until_enabled(client: Client) -> None:
    set_enabled = client.stage.client(SetBool, "draft_policy/set_enabled")

    def started(handle: Any) -> Any:
        client.active(handle)
        client.feedback.clear()
        client.stage.wait(lambda: bool(client.feedback), "feedback")
        return handle

    handle = started(client.send())
    assert set_enabled(SetBool.Request(data=False)).success
    _, result = client.result_of(handle)
    assert (result.error_code, result.held) == (Result.STOPPED, True)
    handle = started(client.send(time_limit=Duration(sec=3)))
    assert set_enabled(SetBool.Request(data=True)).success
    assert client.result_of(handle)[1].error_code == Result.TIME_LIMIT


def test_a_goal_that_names_a_policy_keeps_the_operators_stop(client: Client, exported: Path) -> None:
    """The stop outlasts that the goal configures the node again: no command moves the robot."""
    commands = client.stage.received(JointTrajectory, "command")
    set_enabled = client.stage.client(SetBool, "draft_policy/set_enabled")
    assert set_enabled(SetBool.Request(data=False)).success
    simulator = client.stage.start_simulator(episodes=0, task="ball")
    client.feedback.clear()
    handle = client.send(policy=str(exported / "draft"))
    client.stage.wait(lambda: any(each.steps > 0 for each in client.feedback), "a step")
    assert not commands
    assert set_enabled(SetBool.Request(data=True)).success  # for the tests after this one
    handle.cancel_goal_async()
    client.result_of(handle)
    client.stage.processes.kill(simulator)


def test_a_node_that_another_client_deactivates_ends_it_and_reports_that(client: Client) -> None:
    handle = client.send()
    client.active(handle)
    assert client.stage.change_state("deactivate")
    status, result = client.result_of(handle)
    assert (status, result.error_code, result.held) == (GoalStatus.STATUS_ABORTED, End.DEACTIVATED, True)
    assert "deactivated" in result.error_msg


@pytest.mark.parametrize("configuring", [False, True])
def test_a_runner_that_is_shut_down_ends_its_goal_and_holds_the_robot(
    client: Client, exported: Path, configuring: bool
) -> None:
    """Whatever it waits for: the goal has its result, before the process is gone."""
    handle = client.send(policy=str(exported / "draft") if configuring else "")
    future = handle.get_result_async()
    if not configuring:
        client.stage.wait(lambda: bool(client.feedback), "feedback")
    client.feedback.clear()
    client.end_runner()
    try:
        status, result = client.result(future)
    finally:  # for the tests after this one
        client.check_end()
        client.start_runner()
    assert result.error_msg == "the policy runner was shut down"
    assert (status, result.error_code, result.held) == (GoalStatus.STATUS_ABORTED, End.SHUT_DOWN, True)
    assert client.stage.state() != "active"


def test_a_runner_that_is_killed_stops_the_policy(client: Client) -> None:
    handle = client.send()
    client.feedback.clear()
    client.stage.wait(lambda: bool(client.feedback), "feedback")
    assert handle.accepted
    client.stage.processes.kill(client.runner)
    client.stage.wait(lambda: client.stage.state() == "inactive", "that the policy's node deactivates itself")
    client.start_runner()


def test_a_dead_verifier_ends_it(client: Client) -> None:
    client.kill_verifier()
    _, result = client.result_of(client.send())
    assert (result.error_code, result.held) == (Result.NO_VERIFIER, True)


def test_a_node_that_refuses_its_verifier_ends_it(client: Client, exported: Path) -> None:
    description = describe_policy(exported / "draft")
    description.tokenizer_fingerprint = 1
    client.kill_verifier()
    client.end_runner()
    client.check_end()
    client.start_runner(no_verifier_s=0.0)  # however long it takes to find one
    verifier = HeldVerifier(client.stage, description, "best_effort")
    try:
        status, result = client.result_of(client.send())
    finally:
        verifier.close()
    assert (status, result.error_code, result.held) == (GoalStatus.STATUS_ABORTED, End.DEACTIVATED, True)
    assert (result.steps, client.stage.state()) == (0, "inactive")
    assert "tokenizer_fingerprint" in result.error_msg  # why it refuses the verifier
