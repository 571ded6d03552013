"""When the time of a goal begins, and what the policy runner hears of how it went."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from action_msgs.msg import GoalStatus, GoalStatusArray
from adahi_msgs.action import RunPolicy
from adahi_msgs.msg import EpisodeResult, SafetyState
from controller_manager_msgs.msg import ControllerState
from controller_manager_msgs.srv import ListControllers, SwitchController
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_action_status_default
from std_msgs.msg import Empty, String

from adahi_lab.nodes.observer import Observer
from adahi_ros.nodes.common.replies import NotRepliedError, elapsed
from adahi_ros.nodes.robot import policy_runner_node
from adahi_ros.nodes.robot.heartbeat_publisher import HeartbeatPublisher
from adahi_ros.nodes.robot.policy_client import NotStartedError
from adahi_ros.nodes.robot.policy_runner_node import PolicyRunnerNode
from adahi_ros.protocol.records import StepRecord
from adahi_ros.robot.policy_run import Attempt, AttemptLimits, End, NodeState, Preparation
from test.nodes.conftest import Make

NO_LIMITS = AttemptLimits(time_s=0.0, no_verifier_s=0.0, no_steps_s=0.0, stopped_s=0.0)
LIMITS = AttemptLimits(time_s=2.0, no_verifier_s=2.0, no_steps_s=2.0, stopped_s=0.0)
GOAL: Any = SimpleNamespace(request=SimpleNamespace(policy="", instruction=""), is_cancel_requested=False)
KEPT = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def test_error_codes_are_those_of_the_action() -> None:
    for end in End:
        assert getattr(RunPolicy.Result, "NONE" if end is End.SUCCESS else end.name) == end


@pytest.fixture
def runner(observer: Observer, make_node: Make) -> PolicyRunnerNode:
    node: PolicyRunnerNode = make_node(PolicyRunnerNode)
    observer._executor.add_node(node)
    return node


def begin(runner: PolicyRunnerNode, record: StepRecord, started_ns: int) -> Attempt:
    attempt = Attempt(NO_LIMITS, time.monotonic())
    attempt.stepped(record, time.monotonic())
    runner._attempt, runner._started_ns = attempt, started_ns
    return attempt


def ended(observer: Observer, attempt: Attempt) -> End:
    observer.wait_until(lambda: attempt.ended(time.monotonic()) is not None, 20.0, "the end")
    found = attempt.ended(time.monotonic())
    assert found is not None
    return found[0]


def test_a_judge_that_dds_finds_late_counts_but_not_of_the_goal_before(
    observer: Observer, step_record: Callable[..., StepRecord], request: pytest.FixtureRequest
) -> None:
    """The runner meets its publisher only after it has spoken, of a goal before and of this one."""
    judge = observer.node.create_publisher(EpisodeResult, "episode_result", KEPT)
    judge.publish(EpisodeResult(success=True))
    started_ns = time.time_ns()
    judge.publish(EpisodeResult(success=False))
    attempt = begin(request.getfixturevalue("runner"), step_record(), started_ns)
    assert ended(observer, attempt) is End.FAILURE


def test_a_judge_that_keeps_nothing_counts(
    observer: Observer, runner: PolicyRunnerNode, step_record: Callable[..., StepRecord]
) -> None:
    judge = observer.node.create_publisher(EpisodeResult, "episode_result", 10)
    attempt = begin(runner, step_record(), time.time_ns())
    observer.wait_until(lambda: judge.get_subscription_count() > 0, 20.0, "the runner")
    judge.publish(EpisodeResult(success=True))
    assert ended(observer, attempt) is End.SUCCESS


def test_what_it_takes_to_activate_the_policy_is_not_of_the_goals_time(
    runner: PolicyRunnerNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0

    async def state(*arguments: Any) -> int:
        return NodeState.INACTIVE

    async def change(how: Preparation) -> None:
        nonlocal now_s
        assert how is Preparation.ACTIVATE
        assert runner._attempt is not None  # what the node says as it becomes active is heard
        runner._attempt.linked(True, now_s)
        now_s += 30.0

    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    monkeypatch.setattr(HeartbeatPublisher, "received", True)
    monkeypatch.setattr(runner._policy, "state", state)
    monkeypatch.setattr(runner._policy, "change", change)
    with pytest.raises(StopIteration):
        runner._start(GOAL, LIMITS).send(None)
    attempt = runner._attempt
    assert attempt is not None
    assert attempt.ended(now_s + 1.9) is None
    assert attempt.elapsed_s(now_s + 1.9) == pytest.approx(1.9)
    assert attempt.ended(now_s + 2.0) is not None


def test_a_policy_that_would_outlive_the_runner_is_not_activated(
    observer: Observer, runner: PolicyRunnerNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = AsyncMock()
    observer.node.create_subscription(Empty, "run_policy_heartbeat", lambda message: None, 1)  # a recorder
    observer.wait_until(lambda: runner.count_subscribers("run_policy_heartbeat") > 0, 20.0, "the recorder")
    monkeypatch.setattr(policy_runner_node, "REACHED_S", 0.2)
    monkeypatch.setattr(runner._policy, "state", AsyncMock(return_value=NodeState.INACTIVE))
    monkeypatch.setattr(runner._policy, "deactivate", AsyncMock(return_value=NodeState.INACTIVE))
    monkeypatch.setattr(runner._policy, "change", change)
    handle = Mock(request=RunPolicy.Goal(), is_cancel_requested=False)
    over = observer._executor.create_task(runner._execute(handle))
    observer.wait_until(over.done, 20.0, "the result")
    assert over.result().error_code == End.NOT_STARTED
    assert "run_policy_heartbeat" in over.result().error_msg
    change.assert_not_called()


@pytest.mark.parametrize("rests", [True, False])
def test_held_waits_until_the_arm_is_at_rest(
    observer: Observer, runner: PolicyRunnerNode, monkeypatch: pytest.MonkeyPatch, rests: bool
) -> None:
    async def deactivate(wait_s: float) -> int:
        return NodeState.INACTIVE

    monkeypatch.setattr(runner._policy, "deactivate", deactivate)
    monkeypatch.setattr(policy_runner_node, "REST_S", 20.0 if rests else 0.2)
    safety = observer.node.create_publisher(SafetyState, "safety_state", 10)
    observer.wait_until(lambda: safety.get_subscription_count() > 0, 20.0, "the runner")
    safety.publish(SafetyState(holding=True, at_rest=True))  # before it was deactivated
    observer.wait_until(lambda: runner._rest_ns > 0, 20.0, "the first word")
    runner._left_ns = time.time_ns()
    safety.publish(SafetyState(holding=True, message="at rest"))
    observer.wait_until(lambda: runner._rest_ns == 0, 20.0, "the second word")
    held = observer._executor.create_task(runner._hold())
    observer._executor.spin_once(timeout_sec=0.1)
    assert not held.done()
    if rests:
        safety.publish(SafetyState(holding=True, at_rest=True))
    observer.wait_until(held.done, 20.0, "the hold")
    assert bool(held.result()) is not rests


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_goal_that_fails_on_an_active_policy_waits_for_the_arm_to_rest(
    observer: Observer, runner: PolicyRunnerNode, monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    """Someone else activated the policy's node: the arm still moves when the goal deactivates it."""

    async def active(*arguments: Any) -> int:
        return NodeState.ACTIVE

    async def deactivate(wait_s: float) -> int:
        return NodeState.INACTIVE

    monkeypatch.setattr(runner._policy, "state", active)
    monkeypatch.setattr(runner._policy, "deactivate", deactivate)
    monkeypatch.setattr(policy_runner_node, "REST_S", 20.0)
    monkeypatch.setattr(HeartbeatPublisher, "received", True)
    safety = observer.node.create_publisher(SafetyState, "safety_state", 10)
    observer.wait_until(lambda: safety.get_subscription_count() > 0, 20.0, "the runner")
    request = RunPolicy.Goal(policy="" if cancelled else "/nowhere/draft")
    handle = Mock(request=request, is_cancel_requested=cancelled)
    runner._rest_ns = 1  # the arm was at rest once
    over = observer._executor.create_task(runner._execute(handle))
    for _ in range(5):
        observer._executor.spin_once(timeout_sec=0.1)
    assert not over.done()
    safety.publish(SafetyState(holding=True, at_rest=True))
    observer.wait_until(over.done, 20.0, "the result")
    expected = End.CANCELED if cancelled else End.NOT_STARTED
    assert (over.result().error_code, over.result().held) == (expected, True)


@pytest.mark.parametrize("seen", [False, True])
def test_held_is_not_reported_of_a_policy_node_killed_and_restarted(
    observer: Observer, runner: PolicyRunnerNode, monkeypatch: pytest.MonkeyPatch, seen: bool
) -> None:
    """The new process is unconfigured, and knows nothing of the arm, which may still move."""

    async def deactivate(wait_s: float) -> int:
        return NodeState.UNCONFIGURED

    monkeypatch.setattr(runner._policy, "deactivate", deactivate)
    monkeypatch.setattr(policy_runner_node, "REST_S", 0.2)
    runner._moved, runner._left_ns = True, time.time_ns() if seen else 0
    held = observer._executor.create_task(runner._hold())
    observer.wait_until(held.done, 20.0, "the hold")
    assert bool(held.result()) is not seen


def test_a_goals_instruction_comes_before_the_policy_and_ends_with_it(
    observer: Observer, runner: PolicyRunnerNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[str] = []

    def receive(message: String) -> None:
        received.append(message.data)

    observer.node.create_subscription(String, "instruction", receive, LATCHED)
    before: list[list[str]] = []

    state = AsyncMock(side_effect=[NotRepliedError("not connected yet"), *[NodeState.INACTIVE] * 2])

    async def change(how: Preparation) -> None:
        await elapsed(runner, 0.1)  # for the observer's callback: the message is here
        before.append(list(received))
        raise NotStartedError("enough")

    async def deactivate(wait_s: float) -> int:
        return NodeState.INACTIVE

    monkeypatch.setattr(policy_runner_node, "MATCHED_S", 5.0)
    monkeypatch.setattr(HeartbeatPublisher, "received", True)
    monkeypatch.setattr(runner._policy, "state", state)
    monkeypatch.setattr(runner._policy, "change", change)
    monkeypatch.setattr(runner._policy, "deactivate", deactivate)
    for instruction in ("pick the red cube", ""):
        goal = Mock(request=RunPolicy.Goal(instruction=instruction), is_cancel_requested=False)
        over = observer._executor.create_task(runner._execute(goal))
        observer.wait_until(over.done, 20.0, "the result")
        assert runner.count_publishers("instruction") == 0
    assert received == ["pick the red cube"]
    assert before == [received, received]


def test_a_result_says_why_the_arm_was_held(
    observer: Observer, runner: PolicyRunnerNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def deactivate(wait_s: float) -> int:
        return NodeState.UNCONFIGURED

    monkeypatch.setattr(runner._policy, "deactivate", deactivate)
    safety = observer.node.create_publisher(SafetyState, "safety_state", 10)
    observer.wait_until(lambda: safety.get_subscription_count() > 0, 20.0, "the runner")
    safety.publish(SafetyState(holding=True, message="at rest: driver: the controller has ended"))
    observer.wait_until(lambda: bool(runner._held), 20.0, "the state")
    attempt = Attempt(NO_LIMITS, time.monotonic())
    attempt.end(End.TIME_LIMIT, "8 s are over")
    over = observer._executor.create_task(runner._over(Mock(), attempt))
    observer.wait_until(over.done, 20.0, "the result")
    said = "8 s are over; held: at rest: driver: the controller has ended"
    assert over.result().error_msg.startswith(said)


POLICYS, MOVEITS = "policy_controller", "moveit_controller"
THERE, BACK = ([POLICYS], [MOVEITS]), ([MOVEITS], [POLICYS])


@pytest.mark.parametrize(
    ("first", "refused", "switches"),
    [(MOVEITS, False, [THERE, BACK]), (MOVEITS, True, [THERE]), (POLICYS, False, [BACK])],
)
def test_a_goal_switches_to_its_own_controller_and_back(
    observer: Observer,
    make_node: Make,
    monkeypatch: pytest.MonkeyPatch,
    first: str,
    refused: bool,
    switches: list[Any],
) -> None:
    """A runner that was killed in a goal has left its controller active."""
    switched: list[tuple[list[str], list[str]]] = []
    states: list[int] = []
    active = {first}

    def switch(request: SwitchController.Request, reply: SwitchController.Response) -> Any:
        assert request.strictness == SwitchController.Request.STRICT
        switched.append((list(request.activate_controllers), list(request.deactivate_controllers)))
        reply.ok, reply.message = not refused, "claimed" if refused else ""
        if reply.ok:
            assert not active & set(request.activate_controllers)  # STRICT
            assert active >= set(request.deactivate_controllers)
            active.difference_update(request.deactivate_controllers)
            active.update(request.activate_controllers)
        return reply

    def listed(request: ListControllers.Request, reply: ListControllers.Response) -> Any:
        is_in = {name: "active" if name in active else "inactive" for name in (MOVEITS, POLICYS)}
        reply.controller = [ControllerState(name=name, state=state) for name, state in is_in.items()]
        return reply

    async def state(*arguments: Any) -> int:
        return NodeState.INACTIVE

    async def change(how: Preparation) -> None:
        states.append(len(switched))
        raise NotStartedError("enough")

    async def deactivate(wait_s: float) -> int:
        states.append(len(switched))
        return NodeState.INACTIVE

    observer.node.create_service(SwitchController, "controller_manager/switch_controller", switch)
    observer.node.create_service(ListControllers, "controller_manager/list_controllers", listed)
    given = {"controller": POLICYS, "instead_of": MOVEITS}
    runner: PolicyRunnerNode = make_node(PolicyRunnerNode, given=given)
    observer._executor.add_node(runner)
    monkeypatch.setattr(HeartbeatPublisher, "received", True)
    monkeypatch.setattr(policy_runner_node, "REST_S", 0.0)
    for name, replaced in (("state", state), ("change", change), ("deactivate", deactivate)):
        monkeypatch.setattr(runner._policy, name, replaced)
    runner._rest_ns = time.time_ns() + 10**12  # the arm rests
    goal = Mock(request=RunPolicy.Goal(), is_cancel_requested=False)
    over = observer._executor.create_task(runner._execute(goal))
    observer.wait_until(over.done, 20.0, "the result")
    assert switched == switches
    begun = switches.count(THERE)
    assert states == ([begun] if refused else [begun, begun])
    said = "policy_controller cannot be switched on: claimed" if refused else "enough"
    assert over.result().error_msg.startswith(said)


def test_a_goal_that_executes_on_the_other_controller_is_not_cut(observer: Observer, make_node: Make) -> None:
    given = {"controller": POLICYS, "instead_of": MOVEITS}
    runner: PolicyRunnerNode = make_node(PolicyRunnerNode, given=given)
    observer._executor.add_node(runner)
    topic = "moveit_controller/follow_joint_trajectory/_action/status"
    out = observer.node.create_publisher(GoalStatusArray, topic, qos_profile_action_status_default)
    out.publish(GoalStatusArray(status_list=[GoalStatus(status=GoalStatus.STATUS_EXECUTING)]))
    observer.wait_until(lambda: bool(runner._switch._goals.executing()), 20.0, "the goal")
    begun = observer._executor.create_task(runner._switch.begin, 0.1)
    observer.wait_until(begun.done, 20.0, "the refusal")
    action = "/moveit_controller/follow_joint_trajectory"
    assert begun.result() == f"a goal of a client executes on {action}; end it first"


def test_a_controller_that_the_manager_does_not_have_is_named(observer: Observer, make_node: Make) -> None:
    runner: PolicyRunnerNode = make_node(PolicyRunnerNode, given={"controller": "policy"})
    observer._executor.add_node(runner)

    def listed(request: ListControllers.Request, reply: ListControllers.Response) -> Any:
        reply.controller = [ControllerState(name=POLICYS, state="active")]
        return reply

    observer.node.create_service(ListControllers, "controller_manager/list_controllers", listed)
    begun = observer._executor.create_task(runner._switch.begin, 20.0)
    observer.wait_until(begun.done, 20.0, "the refusal")
    assert begun.result() == f"controller_manager has no policy, it has {POLICYS}"
