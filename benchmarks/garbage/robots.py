"""Garbage to a robot's node that runs: messages, answers, parameters, amid good ones that are answered."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from adahi_msgs.srv import DescribeTarget, VerifyDraft
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParametersAtomically
from std_msgs.msg import Bool

from adahi_ros.assets import asset
from adahi_ros.nodes.common.messages import describe
from adahi_ros.nodes.common.parameters import rows
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.robot.draft_policy_parameters import DraftPolicyParameters
from adahi_ros.policy.backends import load_policy
from adahi_ros.robot.session import OF_ANOTHER
from adahi_ros.wire.description import Description

from .envelope import APART_S
from .messages import damaged, mutated
from .outcome import Outcome
from .scene import Robot, Thread, stage
from .values import Garbage

PERIOD_S, CAMERA_PERIOD_S = 0.01, 0.05
FLOOD = 30
SILENCE_S = 0.6  # longer than a robot goes on without an observation
CALL_S = 20.0
DEPTH = "qos_overrides./command.publisher.depth"
DIAGNOSTICS_S = 1.5

Give = Callable[[Robot, Garbage], None]
"""Gives one input to a robot."""


def messages_to(topic: str) -> Give:
    """Return what puts garbage on a topic that makes observations."""

    def give(robot: Robot, garbage: Garbage) -> None:
        messages = robot.observation()
        torn = garbage.chance(0.25)
        messages[topic] = damaged(messages[topic], garbage) if torn else mutated(messages[topic], garbage)
        if garbage.chance(0.3):
            messages = dict(reversed(messages.items()))
        robot.send(messages)

    return give


def enable(robot: Robot, garbage: Garbage) -> None:
    """Press and release the deadman, and send what is no press."""
    for _ in range(garbage.count(1, 10)):
        robot.send({"enable": Bool(data=garbage.chance(0.5))})
        robot.send({"enable": damaged(Bool(data=True), garbage)})
        robot.send(robot.observation())
    robot.send({"enable": Bool(data=True)})


def parameters(robot: Robot, garbage: Garbage) -> None:
    """Set parameters of the node, live ones most of all."""
    declared = rows(DraftPolicyParameters)
    live = [row.name for row in declared if row.live]
    every = [*(row.name for row in declared), "use_sim_time", "nowhere", DEPTH]
    names = [garbage.pick(live if garbage.chance(0.7) else every) for _ in range(garbage.count(1, 3))]
    _set(robot, [Parameter(name=name, value=_parameter(garbage)) for name in names])
    if "use_sim_time" in names:  # nobody publishes that time
        by_the_clock = ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=False)
        _set(robot, [Parameter(name="use_sim_time", value=by_the_clock)])


def _parameter(garbage: Garbage) -> ParameterValue:
    kind = garbage.count(0, 9)
    return ParameterValue(
        type=kind,
        bool_value=garbage.chance(0.5),
        integer_value=garbage.integer(-(2**63), 2**63 - 1),
        double_value=garbage.float(),
        string_value=garbage.pick((garbage.text(), "always", "deviation", "random", "uncertainty")),
        byte_array_value=[b"\x00", b"\xff"],
        bool_array_value=[garbage.chance(0.5)],
        integer_array_value=array("q", [garbage.integer(-(2**63), 2**63 - 1)]),
        double_array_value=array("d", [garbage.float()] * garbage.count(0, 3)),
        string_array_value=[garbage.text()] * garbage.count(0, 3),
    )


def _set(robot: Robot, values: Sequence[Parameter]) -> None:
    observer = robot.stage.observer
    if robot.setting is None:
        robot.setting = observer.node.create_client(
            SetParametersAtomically, "draft_policy/set_parameters_atomically"
        )
    request = SetParametersAtomically.Request(parameters=list(values))
    robot.refused += not observer.call(robot.setting, request, CALL_S, robot.check).result.successful


class Verifier(Thread):
    """Answers questions: as it should, or with garbage where there is some."""

    def __init__(self, domain: int) -> None:
        super().__init__(domain, "garbage_verifier")
        signature = load_policy(asset("checkpoints/ball") / "draft", "onnxruntime").signature
        self.garbage: Garbage | None = None
        self.asked = 0
        self._description = describe(Description("ball", "speculative", signature))
        self._actions = array("f", bytes(4 * signature.horizon * signature.action_dim))
        node = self.observer.node
        node.create_service(DescribeTarget, "describe_target", self._describe)
        qos = verify_qos("best_effort")
        node.create_service(VerifyDraft, "verify_draft", self._verify, qos_profile=qos)
        self.start()

    def _describe(
        self, request: DescribeTarget.Request, response: DescribeTarget.Response
    ) -> DescribeTarget.Response:
        return self._description

    def _verify(self, request: VerifyDraft.Request, response: VerifyDraft.Response) -> VerifyDraft.Response:
        self.asked += 1
        response.episode_id, response.step_id = request.episode_id, request.step_id
        response.first_step = request.first_step
        response.accepted = [True] * len(request.codes)
        response.actions = self._actions
        response.window_kept = True
        garbage, self.garbage = self.garbage, None
        if garbage is None:
            return response
        response = mutated(response, garbage)
        if garbage.chance(0.9):  # else the robot asks who that is, which takes a second
            forgiving = response.status not in OF_ANOTHER
            response.status = response.status if forgiving else VerifyDraft.Response.STATUS_OK
        return response


class Answers:
    """Has a verifier answer each input's question with garbage."""

    def __init__(self) -> None:
        self._verifier: Verifier | None = None

    def __call__(self, robot: Robot, garbage: Garbage) -> None:
        if self._verifier is None:
            self._verifier = Verifier(robot.stage.domain)
            robot.on_close(self._verifier.close)
            verifier = self._verifier
            while not verifier.asked:
                robot.expect()
        self._verifier.garbage = garbage
        robot.expect()


def to_robot(kind: str, give: Give, numbers: Sequence[int], seed: int) -> Outcome:
    """Give inputs to a robot's node, each followed by a good observation that must be answered."""
    outcome = Outcome(kind)
    camera = kind == "images"
    answering = {"gate.name": "always", "deadline_s": 0.05} if kind == "answers" else {}
    with stage() as here:
        robot = Robot(here, CAMERA_PERIOD_S if camera else PERIOD_S, camera, **answering)
        health = _Health(robot)
        try:
            robot.expect()
            for number in numbers:
                _one(outcome, robot, give, Garbage(seed, number))
                if outcome.crashes:
                    break
            _apart(robot)  # so that some acceleration can be told of every node
            robot.listen(DIAGNOSTICS_S)
        except (RuntimeError, TimeoutError) as error:  # the node has ended, or answers no more
            outcome.crashes.append(f"{numbers[max(0, outcome.inputs - 1)]}: {error}")
        robot.close()
        outcome.crashes += [f"{numbers[-1]}: {fault}" for fault in here.close()]
        outcome.commands, outcome.compared = robot.watch.commands, robot.watch.compared
        outcome.named = health.named + robot.refused
    for count, what in ((outcome.commands, "command came"), (outcome.compared, "acceleration could be told")):
        if not count:
            outcome.crashes.append(f"{numbers[0]}: not one {what}, so the trial says nothing")
    return outcome


def _apart(robot: Robot) -> None:
    """Have commands come so far apart that their acceleration can be told."""
    for _ in range(3):
        robot.listen(robot.watch.period_s + APART_S + 0.005)
        robot.expect()


def _one(outcome: Outcome, robot: Robot, give: Give, garbage: Garbage) -> None:
    outcome.inputs += 1
    outside = len(robot.watch.outside)
    give(robot, garbage)
    robot.expect()
    what = garbage.draw.random()
    if what < 0.05:
        robot.flood(FLOOD)
    elif what < 0.08:
        _apart(robot)
    elif what < 0.09:
        robot.listen(SILENCE_S)
    outcome.outside += [f"{garbage.number}: {fault}" for fault in robot.watch.outside[outside:]]


class _Health:
    """Counts what a node says that it has ignored or refused."""

    def __init__(self, robot: Robot) -> None:
        self.named = 0
        robot.stage.observer.node.create_subscription(DiagnosticArray, "/diagnostics", self._hear, 10)

    def _hear(self, message: DiagnosticArray) -> None:
        told = ("ignored.", "undrafted", "fallbacks.refused", "fallbacks.bad_answer")
        for status in message.status:
            counts: dict[str, Any] = {pair.key: pair.value for pair in status.values}
            named = sum(int(value) for key, value in counts.items() if key.startswith(told))
            self.named = max(self.named, named)
