"""Real nodes in processes of their own, whom the trial plays robot and verifier."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from adahi_msgs.msg import TaskState
from rclpy.qos import QoSProfile
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import Bool
from trajectory_msgs.msg import JointTrajectory

from adahi_ros.nodes.common.messages import from_stamp, to_image, to_joint_state, to_task_state
from adahi_ros.nodes.launching.child_processes import NodeProcess, NodeProcesses, node_processes
from adahi_ros.nodes.launching.domain import exclusive_domain, loopback_environment
from adahi_ros.nodes.launching.observer import Observer

from .envelope import CommandWatch, limits_file

JOINTS = ("plate_roll_joint", "plate_pitch_joint")
START_S = 60.0
ANSWER_S = 0.4  # for a command; then a new episode begins, for the window may be full of garbage
ATTEMPTS = 25
SEEN = 400  # stamps of commands that are remembered


class Stage:
    """A domain, the nodes in it, and a place to watch them from."""

    def __init__(self, domain: int, processes: NodeProcesses) -> None:
        self.domain = domain
        self.processes = processes
        self.observer = Observer(domain, "garbage")

    def faults(self) -> list[str]:
        """Say what is wrong with nodes that have ended, or have shown a traceback."""
        found = []
        for process in self.processes.all:
            code, output = process.exit_code, process.output
            if code is not None or "Traceback" in output:
                last = output[output.find("Traceback") :] if "Traceback" in output else output
                found.append(f"{process.module}, exit code {code}: {last[-600:]}")
        return found

    def close(self) -> list[str]:
        """End the nodes; say what is wrong with how they ended."""
        found = self.faults()
        if not found:
            self.processes.end()
            for process in self.processes.all:
                if process.exit_code != 0 or "Traceback" in process.output:
                    found.append(f"{process.module}, exit code {process.exit_code} at its end")
        self.observer.close()
        return found


@contextmanager
def stage() -> Iterator[Stage]:
    """Hold a domain with no nodes yet."""
    with exclusive_domain() as domain, node_processes(loopback_environment(domain)) as processes:
        yield Stage(domain, processes)


class Robot:
    """A draft policy node within limits, and the robot that it drives.

    Args:
        stage: where.
        period_s: of its control.
        camera: whether its policy sees images.
        parameters: of the node, beside those that every trial has.
    """

    def __init__(self, stage: Stage, period_s: float, camera: bool = False, **parameters: Any) -> None:
        self.stage = stage
        self.camera = camera
        self.watch = CommandWatch(JOINTS, period_s)
        self.unanswered = 0
        self.refused = 0
        self.setting: Any = None  # the client that sets parameters, once there is one
        self._draw = np.random.default_rng(0)
        self._episode, self._step = 1, 0
        self._joints = [0.0] * len(JOINTS)  # where the last command has put them
        self._answered: dict[int, None] = {}
        self._open = ExitStack()
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="adahi_ros_")))
        limits = folder / "limits.yaml"
        limits.write_text(yaml.safe_dump(limits_file(JOINTS)))
        topics = ("joint_states", "task_state", "camera/image_raw")
        self.process: NodeProcess = stage.processes.start(
            "draft_policy_node",
            {
                "checkpoint": "ball_camera/draft" if camera else "ball/draft",
                "gate.name": "never",
                "verifier_wait_s": 0.0,
                "safety.limits": str(limits),
                "safety.hold_after_s": 0.4,
                "qos_overrides": {
                    f"/{topic}": {"subscription": {"reliability": "reliable", "depth": 100}}
                    for topic in topics[: 3 if camera else 2]
                },
                **({"contract": "ball_camera"} if camera else {"control_rate_hz": 1.0 / period_s}),
                **parameters,
            },
        )
        node, deep = stage.observer.node, QoSProfile(depth=1000)
        self.publishers = {
            "joint_states": node.create_publisher(JointState, "joint_states", deep),
            "task_state": node.create_publisher(TaskState, "task_state", deep),
            "camera/image_raw": node.create_publisher(Image, "camera/image_raw", deep),
            "enable": node.create_publisher(Bool, "enable", deep),
        }
        node.create_subscription(JointTrajectory, "command", self._commanded, deep)
        for label in ("configure", "activate"):
            if not stage.observer.change_state("draft_policy", label, START_S, self.check):
                raise self.process.fault(f"does not {label}")

    def _commanded(self, message: JointTrajectory, info: dict[str, int]) -> None:
        self.watch.take(message, info)
        self._joints = list(message.points[0].positions)
        self._answered[from_stamp(message.header.stamp)] = None
        if len(self._answered) > SEEN:
            del self._answered[next(iter(self._answered))]

    def check(self) -> None:
        """Raise if the node has ended."""
        if self.process.exit_code is not None:
            raise self.process.fault(f"ended with code {self.process.exit_code}")

    def now_ns(self) -> int:
        return int(self.stage.observer.node.get_clock().now().nanoseconds)

    def observation(self) -> dict[str, Any]:
        """Make the messages of the next observation, in the order that they are to be sent."""
        self._step += 1
        stamp_ns, draw = self.now_ns(), self._draw
        joints = to_joint_state(JOINTS, np.array(self._joints), np.zeros(2), stamp_ns)
        goal = draw.uniform(-0.3, 0.3, 2)
        state = np.zeros(0) if self.camera else draw.normal(scale=0.3, size=4)
        messages: dict[str, Any] = {"joint_states": joints}
        if self.camera:
            pixels = draw.integers(0, 256, (64, 64, 3), dtype=np.uint8)
            messages["camera/image_raw"] = to_image(pixels, stamp_ns)
        messages["task_state"] = to_task_state(state, goal, self._episode, self._step, stamp_ns)
        return messages

    def send(self, messages: dict[str, Any]) -> None:
        """Publish messages, or what is serialized already."""
        for topic, message in messages.items():
            with suppress(RuntimeError) if isinstance(message, bytes) else nullcontext():
                self.publishers[topic].publish(message)  # what no middleware sends reaches nobody

    def show(self) -> bool:
        """Show a good observation; return whether its command came."""
        messages = self.observation()
        stamp_ns = from_stamp(messages["task_state"].header.stamp)
        self.send(messages)
        return self.wait(lambda: stamp_ns in self._answered, ANSWER_S)

    def expect(self) -> None:
        """Show good observations until one is answered.

        Raises:
            TimeoutError: none is.
            DdsRunError: the node has ended.
        """
        for _ in range(ATTEMPTS):
            if self.show():
                return
            self.check()
            self.unanswered += 1
            self._episode = self._episode % (2**31) + 1
            self._step = 0
        raise TimeoutError(f"no command for {ATTEMPTS} good observations")

    def flood(self, count: int) -> None:
        """Show good observations as fast as they can be sent."""
        for _ in range(count):
            self.send(self.observation())
        self.expect()

    def wait(self, done: Callable[[], bool], limit_s: float) -> bool:
        """Listen until something is so, or it is too late."""
        try:
            self.stage.observer.wait_until(done, limit_s, "")
        except TimeoutError:
            return False
        return True

    def listen(self, duration_s: float) -> None:
        """Take what comes in so long a time."""
        end = time.monotonic() + duration_s
        self.wait(lambda: time.monotonic() >= end, duration_s)

    def on_close(self, close: Callable[[], None]) -> None:
        """Have something closed with the robot."""
        self._open.callback(close)

    def close(self) -> None:
        self._open.close()


class Thread:
    """A place in a domain that is spun by a thread of its own."""

    def __init__(self, domain: int, name: str) -> None:
        self.observer = Observer(domain, name)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._spin, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _spin(self) -> None:
        self.observer.wait_until(self._stop.is_set, 1e6, "end")

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self.observer.close()
