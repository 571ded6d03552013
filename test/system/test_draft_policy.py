"""The draft policy node between a robot and a verifier that are both played by the test."""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adahi_msgs.msg import TaskState
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState

from adahi_ros.nodes.messages import describe, to_stamp
from adahi_ros.nodes.observer import Observer
from adahi_ros.nodes.verifier_client import DESCRIBE_RETRY_S, MISSES_UNTIL_LOST
from adahi_ros.policy.backends import load_policy
from adahi_ros.policy.checkpoint import load_decoder
from adahi_ros.speculation.records import Reason


class HeldVerifier:
    """A verifier that answers when the test says so, and what it says; one question after the other."""

    def __init__(self, stage: Any, description: DescribeTarget.Response) -> None:
        self.description = description
        self._stage = stage
        self._asked: list[VerifyDraft.Request] = []
        self._answers: queue.Queue[VerifyDraft.Response] = queue.Queue()
        self._stop = threading.Event()
        self._observer = Observer(stage.domain, "held_verifier")
        node = self._observer.node
        node.create_service(DescribeTarget, "describe_target", lambda request, response: self.description)
        node.create_service(VerifyDraft, "verify_draft", self._verify)
        self._thread = threading.Thread(target=self._spin)
        self._thread.start()

    def _spin(self) -> None:
        self._observer.wait_until(self._stop.is_set, 1e6, "end")

    def _verify(self, request: VerifyDraft.Request, response: VerifyDraft.Response) -> VerifyDraft.Response:
        self._asked.append(request)
        return self._answers.get(timeout=60.0)

    def wait_for_question(self, episode: int, step: int) -> VerifyDraft.Request:
        """Return the request of a step."""
        self._stage.wait(lambda: bool(self.questions(episode, step)), f"question of step {step}")
        return self.questions(episode, step)[0]

    def questions(self, episode: int, step: int) -> list[VerifyDraft.Request]:
        """Return the requests of a step that have come."""
        return [
            request for request in self._asked if (request.episode_id, request.step_id) == (episode, step)
        ]

    def answer(self, response: VerifyDraft.Response) -> None:
        """Answer the oldest question without an answer."""
        self._answers.put(response)

    def close(self) -> None:
        if self._stop.is_set():
            return
        self._stop.set()
        self._answers.put(VerifyDraft.Response())
        self._thread.join()
        self._observer.close()


def right_answer(request: VerifyDraft.Request, **changes: Any) -> VerifyDraft.Response:
    """Keep one of the codes, and move far away."""
    fields: dict[str, Any] = {
        "episode_id": request.episode_id,
        "step_id": request.step_id,
        "codes": [request.codes[0], 0],
        "accepted": [True, False],
        "offset": [0.5, 0.5],
        **changes,
    }
    return VerifyDraft.Response(**fields)


class Scene:
    """A draft policy node that asks about every step, and everyone that it talks to."""

    def __init__(self, stage: Any, robot: Any, verifier: HeldVerifier, checkpoints: Path) -> None:
        self.stage, self.robot, self.verifier = stage, robot, verifier
        self.decoder = load_decoder(checkpoints)
        self.health: list[DiagnosticStatus] = []
        stage.node.create_subscription(
            DiagnosticArray, "/diagnostics", lambda message: self.health.extend(message.status), 10
        )
        self._set_client = stage.node.create_client(
            SetParametersAtomically, "draft_policy/set_parameters_atomically"
        )
        self.process = stage.start(
            "draft_policy_node",
            checkpoint=str(checkpoints / "draft"),
            gate__name="always",
            deadline_s=30.0,
            verifier_wait_s=60.0,
            max_age_s=1.0,
            qos_overrides={
                f"/{topic}": {"subscription": {"reliability": "reliable", "depth": 100}}
                for topic in ("joint_states", "task_state")
            },
        )
        assert stage.change_state("configure")
        assert stage.change_state("activate")
        self._episode = 0

    def set(self, **values: Any) -> str:
        """Set parameters while the node runs; return why not, or nothing."""
        parameters = [
            Parameter(name.replace("__", "."), value=value).to_parameter_msg()
            for name, value in values.items()
        ]
        request = SetParametersAtomically.Request(parameters=parameters)
        result = self.stage.call(self._set_client, request).result
        assert bool(result.reason) != result.successful
        return str(result.reason)

    def report(self, key: str) -> DiagnosticStatus:
        """Wait for diagnostics that have a figure; return the first since `health` was cleared."""

        def has_it(status: DiagnosticStatus) -> bool:
            return key in {pair.key for pair in status.values}

        self.stage.wait(lambda: any(map(has_it, self.health)), f"diagnostics with {key}")
        return next(filter(has_it, self.health))

    def state(self) -> str:
        return str(self.stage.observer.state("draft_policy", 30.0, self.stage.check))

    def new_episode(self) -> int:
        """Begin an episode whose step 0 is a draft, so that whatever comes next is step 1."""
        self._episode += 1
        assert not self.set(gate__name="never")
        self.robot.show_until_answered(self._episode)
        assert not self.set(gate__name="always")
        return self._episode


@pytest.fixture(scope="module")
def scene(stage: Any, make_robot: Callable[[Any], Any], exported: Path) -> Iterator[Scene]:
    verifier = HeldVerifier(stage, describe(load_policy(exported / "draft", "onnxruntime")))
    try:
        scene = Scene(stage, make_robot(stage), verifier, exported)
        yield scene
        stage.processes.end()
        assert scene.process.exit_code == 0
        assert "Traceback" not in scene.process.output
    finally:
        verifier.close()


def test_the_answer_is_executed(scene: Scene) -> None:
    episode, robot = scene.new_episode(), scene.robot
    stamp = robot.show(episode, 1)
    request = scene.verifier.wait_for_question(episode, 1)
    assert request.observation_window[-6:].tolist() == pytest.approx([0.01, -0.02, *[0.01] * 4])
    assert request.robot_id == "robot"
    scene.verifier.answer(right_answer(request, compute_time_ms=0.25))
    record = robot.answer_to(episode, 1)
    expected = scene.decoder.decode(np.array([[request.codes[0], 0]]))[0, 0] + np.float32(0.5)
    assert record.action == tuple(map(float, expected)) == robot.command_to(stamp)
    assert record.action != record.draft_action
    assert record.stamp_ns == stamp
    assert (record.transmitted, record.verified, record.reason) == (True, True, Reason.NONE)
    assert record.accepted == (True, False)
    assert record.target_compute_ms == 0.25
    assert record.request_bytes > 0 < record.response_bytes


def test_a_late_answer_moves_nothing(scene: Scene) -> None:
    episode, robot = scene.new_episode(), scene.robot
    assert not scene.set(deadline_s=0.1)
    stamp = robot.show(episode, 1)
    request = scene.verifier.wait_for_question(episode, 1)
    record = robot.answer_to(episode, 1)
    assert (record.transmitted, record.verified, record.reason) == (True, False, Reason.DEADLINE)
    assert robot.command_to(stamp) == record.action == record.draft_action
    assert not scene.set(deadline_s=30.0)
    commands = len(robot.commands)
    scene.verifier.answer(right_answer(request))
    # The answer to the next question comes after the late one: both from one writer, in order.
    next_stamp = robot.show(episode, 2)
    next_request = scene.verifier.wait_for_question(episode, 2)
    scene.verifier.answer(right_answer(next_request, offset=[0.25, 0.25]))
    next_record = robot.answer_to(episode, 2)
    assert next_record.verified
    assert robot.command_to(next_stamp) == next_record.action
    assert len(robot.commands) == commands + 1


def test_a_newer_observation_executes_the_draft_of_the_one_that_waits(scene: Scene) -> None:
    episode, robot = scene.new_episode(), scene.robot
    stamp = robot.show(episode, 1)
    superseded = scene.verifier.wait_for_question(episode, 1)
    robot.show(episode, 2)
    record = robot.answer_to(episode, 1)
    assert record.reason is Reason.SUPERSEDED
    assert robot.command_to(stamp) == record.action == record.draft_action
    superseded.step_id = 2
    scene.verifier.answer(right_answer(superseded))  # names step 2, but answers the question of step 1
    request = scene.verifier.wait_for_question(episode, 2)
    scene.verifier.answer(right_answer(request, offset=[0.125, 0.125]))
    expected = scene.decoder.decode(np.array([[request.codes[0], 0]]))[0, 0] + np.float32(0.125)
    assert robot.answer_to(episode, 2).action == tuple(map(float, expected))


def test_an_episode_that_is_over_moves_nothing(scene: Scene) -> None:
    episode, robot = scene.new_episode(), scene.robot
    robot.show(episode, 1)
    late = scene.verifier.wait_for_question(episode, 1)
    commands = len(robot.commands)
    robot.show(episode + 1, 0)
    scene.verifier.answer(right_answer(late))
    request = scene.verifier.wait_for_question(episode + 1, 0)
    scene.verifier.answer(right_answer(request))
    assert robot.answer_to(episode + 1, 0).verified
    assert len(robot.commands) == commands + 1
    assert not any((record.episode, record.step) == (episode, 1) for record in robot.steps)
    scene.new_episode()  # past the one that was begun here


def test_an_episode_that_starts_again_drops_the_step_that_waits(scene: Scene) -> None:
    episode, robot = scene.new_episode(), scene.robot
    robot.show(episode, 1)
    scene.verifier.answer(right_answer(scene.verifier.wait_for_question(episode, 1)))
    robot.answer_to(episode, 1)
    robot.show(episode, 3)
    late = scene.verifier.wait_for_question(episode, 3)
    commands = len(robot.commands)
    stamp = robot.show(episode, 2)
    scene.verifier.answer(right_answer(late))
    request = scene.verifier.wait_for_question(episode, 2)
    window = np.reshape(request.observation_window, (-1, 6))
    assert (window == window[-1]).all()  # nothing of before is left
    scene.verifier.answer(right_answer(request))
    robot.command_to(stamp)
    assert len(robot.commands) == commands + 1
    assert not any((record.episode, record.step) == (episode, 3) for record in robot.steps)


def test_a_status_names_the_gate_that_decided(scene: Scene) -> None:
    episode, robot = scene.new_episode(), scene.robot
    threshold = robot.steps[-1].threshold
    robot.show(episode, 1)
    request = scene.verifier.wait_for_question(episode, 1)
    assert not scene.set(gate__name="never", gate__threshold=threshold + 1.0)
    robot.show(episode, 2)
    record = robot.answer_to(episode, 1)
    assert (record.gate, record.threshold, record.reason) == ("always", threshold, Reason.SUPERSEDED)
    assert robot.answer_to(episode, 2).gate == "never"
    scene.verifier.answer(right_answer(request))
    assert not scene.set(gate__threshold=threshold)


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        ({"status": 3, "message": "goal[0]: nan"}, Reason.REFUSED, "goal[0]: nan"),
        ({"step_id": 999}, Reason.BAD_ANSWER, "episode_id, step_id"),
        ({"codes": [1, 8]}, Reason.BAD_ANSWER, "codes"),
        ({"codes": []}, Reason.BAD_ANSWER, "codes"),
        ({"accepted": [True]}, Reason.BAD_ANSWER, "accepted"),
        ({"offset": [math.nan, 0.0]}, Reason.BAD_ANSWER, "offset"),
        ({"offset": [0.0, -1e30]}, Reason.BAD_ANSWER, "action[1]"),
    ],
)
def test_an_answer_that_is_no_good_executes_the_draft(
    scene: Scene, changes: dict[str, Any], reason: Reason, message: str
) -> None:
    episode, robot = scene.new_episode(), scene.robot
    stamp = robot.show(episode, 1)
    request = scene.verifier.wait_for_question(episode, 1)
    scene.verifier.answer(right_answer(request, **changes))
    record = robot.answer_to(episode, 1)
    assert record.reason is reason
    assert record.message.startswith(message)
    assert not record.verified
    assert robot.command_to(stamp) == record.action == record.draft_action


def test_a_repeated_observation_gets_the_same_command_again(scene: Scene) -> None:
    episode, robot = scene.new_episode(), scene.robot
    assert not scene.set(gate__name="never")
    first = robot.command_to(robot.show(episode, 1))
    assert robot.command_to(robot.show(episode, 1)) == first
    robot.command_to(robot.show(episode, 2))
    robot.answer_to(episode, 2)
    assert sum((record.episode, record.step) == (episode, 1) for record in robot.steps) == 1


def test_another_observation_of_the_same_number_moves_nothing(scene: Scene) -> None:
    episode, robot = scene.new_episode(), scene.robot
    assert not scene.set(gate__name="never")
    first = robot.command_to(robot.show(episode, 1))
    commands = len(robot.commands)
    scene.health.clear()
    stamp = robot.now()
    other = robot.state(episode, 1, stamp)
    other.state[0] += 0.001
    robot.joints_out.publish(robot.joints(stamp))
    robot.state_out.publish(other)
    assert robot.command_to(robot.show(episode, 1)) == first
    assert len(robot.commands) == commands + 1
    first_report = scene.report("ignored.task_state.step_id")
    assert (first_report.level, first_report.message) == (DiagnosticStatus.WARN, "input ignored")
    robot.command_to(robot.show(episode, 2))


def test_what_overflows_the_policy_moves_nothing(scene: Scene) -> None:
    """The next good observation is answered as if the one too large had never been."""
    episode, robot = scene.new_episode(), scene.robot
    commands = len(robot.commands)
    scene.health.clear()
    stamp = robot.now()
    huge = robot.state(episode, 1, stamp)
    huge.state = [1e38] * 4
    robot.joints_out.publish(robot.joints(stamp))
    robot.state_out.publish(huge)
    scene.stage.wait(lambda: any(h.level == DiagnosticStatus.ERROR for h in scene.health), "ERROR")
    report = next(health for health in scene.health if health.level == DiagnosticStatus.ERROR)
    assert report.message == "no sound action for an observation, no command"
    assert {pair.key: pair.value for pair in report.values}["undrafted"] == "1"
    assert "no command: " in scene.process.output
    robot.show(episode, 1)
    request = scene.verifier.wait_for_question(episode, 1)
    assert max(request.observation_window) < 1.0
    scene.verifier.answer(right_answer(request))
    assert robot.answer_to(episode, 1).verified
    robot.command_to(robot.answer_to(episode, 1).stamp_ns)
    assert len(robot.commands) == commands + 1
    assert np.isfinite([command.points[0].positions for command in robot.commands]).all()


JOINTS = ["plate_roll_joint", "plate_pitch_joint"]


@pytest.mark.parametrize(
    ("topic", "change"),
    [
        ("joint_states", {"position": [math.nan, 0.0]}),
        ("joint_states", {"position": [0.0]}),
        ("joint_states", {"position": []}),
        ("joint_states", {"position": [1e300, 0.0]}),
        ("joint_states", {"name": ["elbow_joint", "plate_roll_joint"]}),
        ("joint_states", {"name": []}),
        ("joint_states", {"age_s": 5.0}),
        ("joint_states", {"age_s": -5.0}),
        ("joint_states", {"age_s": 0.01}),  # fresh, but of another time than the task state
        ("task_state", {"state": [0.0, math.inf, 0.0, 0.0]}),
        ("task_state", {"state": []}),
        ("task_state", {"goal": [0.0]}),
        ("task_state", {"goal": [math.nan, 0.0]}),
        ("task_state", {"age_s": 5.0}),
    ],
)
def test_garbage_moves_nothing(scene: Scene, topic: str, change: dict[str, Any]) -> None:
    episode, robot = scene.new_episode(), scene.robot
    assert not scene.set(gate__name="never")
    commands = len(robot.commands)
    stamp = robot.now()
    messages: dict[str, JointState | TaskState] = {
        "joint_states": robot.joints(stamp),
        "task_state": robot.state(episode, 1, stamp),
    }
    for name, value in change.items():
        if name == "age_s":
            messages[topic].header.stamp = to_stamp(stamp - round(value * 1e9))
        else:
            setattr(messages[topic], name, value)
    robot.joints_out.publish(messages["joint_states"])
    robot.state_out.publish(messages["task_state"])
    robot.command_to(robot.show(episode, 2))
    assert robot.answer_to(episode, 2)
    assert len(robot.commands) == commands + 1
    assert not any((record.episode, record.step) == (episode, 1) for record in robot.steps)


def test_what_is_ignored_is_said_and_counted(scene: Scene) -> None:
    scene.new_episode()
    garbage = scene.robot.joints(scene.robot.now())
    garbage.position = [0.0, math.nan]
    scene.health.clear()
    scene.robot.joints_out.publish(garbage)
    first = scene.report("ignored.joint_states.position[1]")
    assert (first.level, first.message) == (DiagnosticStatus.WARN, "input ignored")
    assert "ignored: " in scene.process.output


def test_live_parameters(scene: Scene) -> None:
    episode, robot = scene.new_episode(), scene.robot
    assert "'sometimes', must be one of deviation" in scene.set(gate__name="sometimes")
    assert "gate.threshold: nan" in scene.set(gate__threshold=math.nan)
    assert "draft_temperature" in scene.set(draft_temperature=0.0)
    assert "unconfigured" in scene.set(checkpoint="ball/target")
    assert not scene.set(gate__name="deviation", gate__threshold=1e6)
    robot.show(episode, 1)
    record = robot.answer_to(episode, 1)
    assert (record.gate, record.threshold, record.transmitted) == ("deviation", 1e6, False)
    assert math.isfinite(record.deviation)
    assert record.score == record.deviation


def test_no_command_after_deactivation(scene: Scene) -> None:
    episode, robot = scene.new_episode(), scene.robot
    robot.show(episode, 1)
    request = scene.verifier.wait_for_question(episode, 1)
    commands = len(robot.commands)
    assert scene.stage.change_state("deactivate")
    scene.verifier.answer(right_answer(request))
    robot.show(episode, 2)
    assert scene.stage.change_state("activate")
    assert scene.new_episode() == episode + 1
    robot.command_to(robot.steps[-1].stamp_ns)
    assert all(record.step == 0 for record in robot.steps if record.episode == episode)
    repeats = [record for record in robot.steps if record.episode == episode + 1]
    assert len(robot.commands) - commands >= len(repeats)
    stamps = {(c.header.stamp.sec, c.header.stamp.nanosec) for c in robot.commands[commands:]}
    first = to_stamp(repeats[0].stamp_ns)
    assert min(stamps) == (first.sec, first.nanosec)


def test_diagnostics_of_an_idle_node(scene: Scene) -> None:
    scene.new_episode()
    scene.health.clear()
    scene.stage.wait(lambda: bool(scene.health), "report of the steps")

    def wait_for(message: str) -> DiagnosticStatus:
        scene.stage.wait(lambda: any(health.message == message for health in scene.health), message)
        return next(health for health in scene.health if health.message == message)

    assert scene.stage.change_state("deactivate")
    rates = {pair.key: pair.value for pair in wait_for("inactive").values}
    assert float(rates["rate_hz"]) == 0.0
    assert scene.stage.change_state("activate")
    assert wait_for("no observation").level == DiagnosticStatus.ERROR
    scene.new_episode()


def test_a_slow_verifier_is_asked_less_and_less_often(scene: Scene) -> None:
    episode, robot = scene.new_episode(), scene.robot
    assert not scene.set(deadline_s=0.05)
    ready = scene.process.output.count("verifier ready")
    bursts: list[list[int]] = [[]]
    step = 0
    while len(bursts) < 4:
        step += 1
        stamp = robot.show(episode, step)
        record = robot.answer_to(episode, step)
        assert not record.verified
        if record.transmitted:
            assert record.reason is Reason.DEADLINE
            scene.verifier.answer(right_answer(scene.verifier.wait_for_question(episode, step)))
            bursts[-1].append(stamp)
        else:
            assert record.reason is Reason.NO_VERIFIER
            assert "too slow" in record.message
            if bursts[-1]:
                bursts.append([])
    assert [len(burst) for burst in bursts] == [MISSES_UNTIL_LOST] * 3 + [0]
    pauses_ns = [after[0] - before[-1] for before, after in pairwise(bursts[:3])]
    assert pauses_ns[0] > DESCRIBE_RETRY_S * 1e9
    assert pauses_ns[1] > 2 * DESCRIBE_RETRY_S * 1e9
    assert scene.process.output.count("verifier ready") == ready
    assert scene.process.output.count("too slow, or gone") == 1
    assert not scene.set(deadline_s=30.0)
    asked: list[VerifyDraft.Request] = []
    while not asked:
        step += 1
        robot.show(episode, step)
        scene.stage.wait(
            lambda step=step: scene.verifier.questions(episode, step) or robot.steps[-1].step == step,
            "question or status",
        )
        asked = scene.verifier.questions(episode, step)
    scene.verifier.answer(right_answer(asked[0]))
    assert robot.answer_to(episode, step).verified
    scene.stage.wait(lambda: scene.process.output.count("verifier ready") == ready + 1, "ready again")


def test_a_verifier_of_another_tokenizer_is_refused_before_the_first_step(scene: Scene) -> None:
    right = scene.verifier.description
    assert scene.stage.change_state("deactivate")
    scene.verifier.description = DescribeTarget.Response(
        **{
            name: getattr(right, name)
            for name in right.get_fields_and_field_types()
            if name != "tokenizer_fingerprint"
        },
        tokenizer_fingerprint="feedfacefeedface",
    )
    assert scene.stage.change_state("activate")
    scene.stage.wait(lambda: "feedfacefeedface" in scene.process.output, "the reason in the log")
    assert f"tokenizer_fingerprint: the draft's is {right.tokenizer_fingerprint}" in scene.process.output
    assert scene.state() == "inactive"
    scene.health.clear()
    scene.stage.wait(lambda: any(h.level == DiagnosticStatus.ERROR for h in scene.health), "ERROR")
    assert "feedfacefeedface" in scene.health[-1].message
    scene.verifier.description = right
    assert scene.stage.change_state("activate")
    scene.new_episode()


def test_a_verifier_that_is_replaced_by_another_kind_is_not_asked(scene: Scene) -> None:
    """It is found out by its refusal; the drafts go on, and so does verification with the right one."""
    episode, robot, right = scene.new_episode(), scene.robot, scene.verifier.description
    scene.verifier.description = DescribeTarget.Response(tokenizer_fingerprint="feedfacefeedface")
    robot.show(episode, 1)
    request = scene.verifier.wait_for_question(episode, 1)
    scene.verifier.answer(right_answer(request, status=1, message="tokenizer_fingerprint: another"))
    assert robot.answer_to(episode, 1).reason is Reason.REFUSED
    scene.stage.wait(lambda: "drafts are executed: tokenizer_fingerprint" in scene.process.output, "error")
    robot.show(episode, 2)
    record = robot.answer_to(episode, 2)
    assert (record.reason, record.transmitted) == (Reason.REFUSED, False)
    assert "feedfacefeedface" in record.message
    assert record.action == record.draft_action
    assert scene.state() == "active"
    ready = scene.process.output.count("verifier ready")
    scene.verifier.description = right
    scene.stage.wait(lambda: scene.process.output.count("verifier ready") > ready, "ready again")
    robot.show(episode, 3)
    request = scene.verifier.wait_for_question(episode, 3)
    scene.verifier.answer(right_answer(request))
    assert robot.answer_to(episode, 3).verified


def test_a_verifier_of_another_kind_that_has_gone_is_none(scene: Scene) -> None:
    episode, robot, complaint = scene.new_episode(), scene.robot, "drafts are executed: tokenizer_fingerprint"
    complaints = scene.process.output.count(complaint)
    scene.verifier.description = DescribeTarget.Response(tokenizer_fingerprint="feedfacefeedface")
    robot.show(episode, 1)
    request = scene.verifier.wait_for_question(episode, 1)
    scene.verifier.answer(right_answer(request, status=1, message="tokenizer_fingerprint: another"))
    scene.stage.wait(lambda: scene.process.output.count(complaint) > complaints, "error")
    scene.health.clear()
    scene.stage.wait(lambda: len(scene.health) >= 3, "seconds in which it is asked again")
    scene.verifier.close()
    scene.stage.wait(lambda: "verifier lost" in scene.process.output, "loss")
    robot.show(episode, 2)
    assert robot.answer_to(episode, 2).reason is Reason.NO_VERIFIER
    assert scene.process.output.count(complaint) == complaints + 1
