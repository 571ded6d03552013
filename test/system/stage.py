"""Real nodes in processes of their own over DDS, and a robot, a verifier and a scene that a test plays."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from adahi_msgs.msg import DraftStatus, TaskState
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from adahi_lab.nodes.observer import Observer
from adahi_lab.nodes.task_state import to_task_state
from adahi_ros.nodes.common.messages import from_stamp, from_status, to_joint_state
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.launching.child_processes import NodeProcess, NodeProcesses
from adahi_ros.nodes.server.robot_messages import describe
from adahi_ros.policies.backends import load_policy
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.records import StepRecord
from test.ball_contract import ball_contract

DEADLINE_S = 60.0  # only a broken node is slower, on a busy machine too
JOINTS = ("plate_roll_joint", "plate_pitch_joint")

FAR_AWAY = [0.5, -0.25]  # an action of a verifier that the test plays
DEEP = QoSProfile(depth=1000)
BEST_EFFORT = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
PATIENT: Mapping[str, Any] = {
    "gate__name": "always",
    "deadline_s": 5.0,
    "command__lockstep": True,
    "verifier_wait_s": 30.0,
    "safety__hold_after_s": 60.0,
    "safety__require_enable": False,
    "safety__require_limits": False,
    "fallback": "draft",
}
"""Of a simulated robot that sends each draft, and waits for each command, on a machine of any load."""


def reliable_input(*topics: str) -> dict[str, Any]:
    """Return the parameter that loses no message of these topics."""
    return {
        f"/{topic}": {
            "subscription": {"reliability": "reliable", "depth": 100}
        }  # each its own: no alias in YAML
        for topic in ("joint_states", "task_state", *topics)
    }


class Stage:
    """A domain with the processes in it, and a place to watch them from."""

    def __init__(self, domain: int, observer: Observer, processes: NodeProcesses) -> None:
        self.domain = domain
        self.observer = observer
        self.processes = processes

    @property
    def node(self) -> Any:
        return self.observer.node

    def start(self, module: str, **parameters: Any) -> NodeProcess:
        """Start a node; a double underscore in a parameter's name stands for a dot."""
        namespace = parameters.pop("namespace", "")
        named = {name.replace("__", "."): value for name, value in parameters.items()}
        return self.processes.start(module, named, namespace=namespace)

    def start_draft(self, checkpoints: Path, **parameters: Any) -> NodeProcess:
        """Start a draft policy that is `PATIENT`, with changes; the test activates it."""
        checkpoint = str(checkpoints / "draft")
        own = {"checkpoint": checkpoint, "contract": "ball"}
        return self.start("draft_policy_node", **{**own, **PATIENT, **parameters})

    def start_verifier(self, checkpoints: Path, **parameters: Any) -> NodeProcess:
        return self.start("target_verifier_node", checkpoint=str(checkpoints / "target"), **parameters)

    def start_simulator(self, **parameters: Any) -> NodeProcess:
        return self.start("adahi_lab.nodes.robot_simulator_node", **parameters)

    def check(self) -> None:
        """Raise if a node has ended that nobody ended."""
        self.processes.check()

    def wait(self, done: Callable[[], bool], what: str) -> None:
        self.observer.wait_until(done, DEADLINE_S, what, self.check)

    def call(self, client: Any, request: Any) -> Any:
        return self.observer.call(client, request, DEADLINE_S, self.check)

    def client(self, kind: Any, name: str, **options: Any) -> Callable[[Any], Any]:
        """Return a function that calls a service and returns its response."""
        client = self.node.create_client(kind, name, **options)
        return lambda request: self.call(client, request)

    def awaited(self, coroutine: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Run a coroutine in the node's executor, as a callback does; return its result."""
        task = self.observer._executor.create_task(coroutine, *arguments, **named)
        self.wait(task.done, "an answer")
        return task.result()

    def received(self, kind: Any, topic: str, qos: Any = DEEP) -> list[Any]:
        """Return the list to which all messages of a topic are added."""
        messages: list[Any] = []
        self.node.create_subscription(kind, topic, messages.append, qos)
        return messages

    def change_state(self, label: str, name: str = "draft_policy") -> bool:
        return self.observer.change_state(name, label, DEADLINE_S, self.check)

    def activate(self) -> None:
        """Configure the draft policy, and activate it."""
        assert self.change_state("configure")
        assert self.change_state("activate")

    def state(self) -> str:
        """Return the state of the draft policy."""
        return self.observer.state("draft_policy", DEADLINE_S, self.check)

    def await_end(self, process: NodeProcess, code: int = 0) -> str:
        """Wait until a process ends by itself; return its output."""
        self.processes.all.remove(process)
        try:
            self.wait(lambda: process.exit_code is not None, "end")
        finally:
            process.kill()
        assert process.exit_code == code, process.output
        assert "Traceback" not in process.output
        return process.output

    def end(self, process: NodeProcess) -> str:
        """End a process as a launch does; return its output."""
        process.ask_to_end()
        return self.await_end(process)

    def clear(self) -> None:
        """End all processes."""
        self.processes.end()
        self.processes.all.clear()


class Robot:
    """What a robot shows to the draft policy, and what it is told by it."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.step = stage, 0
        self.commands: list[JointTrajectory] = stage.received(JointTrajectory, "command")
        self.steps: list[StepRecord] = []
        node = stage.node
        self.joints_out = node.create_publisher(JointState, "joint_states", DEEP)
        self.state_out = node.create_publisher(TaskState, "task_state", DEEP)
        node.create_subscription(
            DraftStatus, "draft_status", lambda message: self.steps.append(from_status(message)), DEEP
        )

    def now(self) -> int:
        return int(self.stage.node.get_clock().now().nanoseconds)

    def joints(self, stamp_ns: int) -> JointState:
        return to_joint_state(JOINTS, np.array([0.01, -0.02]), np.zeros(2), stamp_ns)

    def state(self, episode: int, step: int, stamp_ns: int) -> TaskState:
        return to_task_state(np.full(4, 0.01 * step), np.array([0.1, 0.1]), episode, step, stamp_ns)

    def show(self, episode: int, step: int) -> int:
        """Publish one observation; return its stamp."""
        stamp = self.now()
        self.joints_out.publish(self.joints(stamp))
        self.state_out.publish(self.state(episode, step, stamp))
        return stamp

    def next(self) -> StepRecord:
        """Show the next observation of episode 1; return the record of its step."""
        self.step += 1
        self.show(1, self.step)
        return self.answer_to(1, self.step)

    def answer_to(self, episode: int, step: int) -> StepRecord:
        """Wait for the record of a step."""

        def found() -> list[StepRecord]:
            return [record for record in self.steps if (record.episode, record.step) == (episode, step)]

        self.stage.wait(lambda: bool(found()), f"status of step {step}")
        return found()[0]

    def wait_for_step(self, what: str, right: Callable[[StepRecord], bool]) -> None:
        """Wait for the record of a step from now on."""
        self.steps.clear()
        self.stage.wait(lambda: any(right(record) for record in self.steps), what)

    def command_to(self, stamp_ns: int) -> tuple[float, ...]:
        """Wait for the command that belongs to an observation; return its positions as float32."""

        def found() -> list[JointTrajectory]:
            return [command for command in self.commands if from_stamp(command.header.stamp) == stamp_ns]

        self.stage.wait(lambda: bool(found()), "command")
        return tuple(map(float, np.float32(found()[0].points[0].positions)))

    def show_until_answered(self, episode: int) -> None:
        """Show step 0 of an episode again and again: until discovery is through, nobody may hear it."""
        next_show = 0

        def answered() -> bool:
            nonlocal next_show
            if self.now() >= next_show:
                self.show(episode, 0)
                next_show = self.now() + 200_000_000
            return any(record.episode == episode for record in self.steps)

        self.stage.wait(answered, "first status")

    def show_until_commanded(self, episode: int) -> None:
        """Show step 0 of an episode until there is a command for it, and no other one in flight."""
        self.show_until_answered(episode)
        self.command_to(self.show(episode, 0))  # one writer, in order


def describe_policy(path: Path) -> DescribeTarget.Response:
    """Return what a verifier says whose target is this checkpoint."""
    signature = load_policy(path, "onnxruntime").signature
    return describe(Description("held", "speculative", signature))


class HeldVerifier:
    """A verifier that replies when the test says so, and what it says; one request after the other."""

    def __init__(
        self, stage: Stage, description: DescribeTarget.Response, reliability: str = "reliable"
    ) -> None:
        self.description = description
        self._stage = stage
        self._received: list[VerifyDraft.Request] = []
        self._replies: queue.Queue[VerifyDraft.Response] = queue.Queue()
        self._stop = threading.Event()
        self._observer = Observer(stage.domain, "held_verifier")
        node = self._observer.node
        node.create_service(DescribeTarget, "describe_target", lambda request, response: self.description)
        node.create_service(VerifyDraft, "verify_draft", self._verify, qos_profile=verify_qos(reliability))
        self._thread = threading.Thread(target=self._spin)
        self._thread.start()

    def _spin(self) -> None:
        self._observer.wait_until(self._stop.is_set, 1e6, "end")

    def _verify(self, request: VerifyDraft.Request, response: VerifyDraft.Response) -> VerifyDraft.Response:
        self._received.append(request)
        return self._replies.get(timeout=60.0)

    def wait_for_request(self, episode: int, step: int) -> VerifyDraft.Request:
        """Return the request of a step."""
        self._stage.wait(lambda: bool(self.requests(episode, step)), f"request of step {step}")
        return self.requests(episode, step)[0]

    def requests(self, episode: int, step: int) -> list[VerifyDraft.Request]:
        """Return the requests of a step that have come."""
        return [
            request for request in self._received if (request.episode_id, request.step_id) == (episode, step)
        ]

    def reply(self, request: VerifyDraft.Request, **changes: Any) -> None:
        """Reply to the oldest request without a reply: keep one of the codes, and move far away."""
        fields: dict[str, Any] = {
            "episode_id": request.episode_id,
            "step_id": request.step_id,
            "first_step": request.first_step,
            "actions": FAR_AWAY,
            "accepted": [True, False],
            "window_kept": True,
            **changes,
        }
        self._replies.put(VerifyDraft.Response(**fields))

    def close(self) -> None:
        if self._stop.is_set():
            return
        self._stop.set()
        self._replies.put(VerifyDraft.Response())
        self._thread.join()
        self._observer.close()


class Scene:
    """A draft policy node that sends every draft, and everyone that it talks to."""

    def __init__(self, stage: Stage, robot: Robot, verifier: HeldVerifier, checkpoints: Path) -> None:
        self.stage, self.robot, self.verifier = stage, robot, verifier
        self.health: list[DiagnosticStatus] = []
        stage.node.create_subscription(
            DiagnosticArray, "/diagnostics", lambda message: self.health.extend(message.status), 10
        )
        self._set = stage.client(SetParametersAtomically, "draft_policy/set_parameters_atomically")
        self.process = stage.start_draft(
            checkpoints,
            deadline_s=30.0,
            verifier_wait_s=60.0,
            verification__reliability="reliable",
            contract=ball_contract(max_age_s=1.0),
            command__lockstep=True,
            qos_overrides=reliable_input(),
        )
        stage.activate()
        self._episode = 0

    def set(self, **values: Any) -> str:
        """Set parameters while the node runs; return why not, or nothing."""
        parameters = [
            Parameter(name.replace("__", "."), value=value).to_parameter_msg()
            for name, value in values.items()
        ]
        result = self._set(SetParametersAtomically.Request(parameters=parameters)).result
        assert bool(result.reason) != result.successful
        return str(result.reason)

    def report(self, key: str) -> DiagnosticStatus:
        """Wait for diagnostics that have a figure; return the first since `health` was cleared."""

        def has_it(status: DiagnosticStatus) -> bool:
            return key in {pair.key for pair in status.values}

        self.stage.wait(lambda: any(map(has_it, self.health)), f"diagnostics with {key}")
        return next(filter(has_it, self.health))

    def new_episode(self) -> int:
        """Begin an episode whose step 0 is a draft, so that whatever comes next is step 1."""
        self._episode += 1
        assert not self.set(gate__name="never")
        self.robot.show_until_commanded(self._episode)
        assert not self.set(gate__name="always")
        return self._episode
