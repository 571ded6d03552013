"""A real controller_manager of ros2_control with mock hardware, and what its trajectory controller does."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml
from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String

from adahi_lab.nodes.domain import loopback_environment
from adahi_ros.core.assets import asset
from adahi_ros.core.signals import with_parent
from adahi_ros.nodes.common.messages import from_stamp, to_stamp
from test.system.stage import DEADLINE_S, DEEP, JOINTS, Stage

INSTALL = "apt install ros-$ROS_DISTRO-ros2-control ros-$ROS_DISTRO-ros2-controllers"
PROGRAM = "ADAHI_CONTROLLER_MANAGER"  # names another ros2_control_node


def program() -> str:
    """Return the path of ros2_control_node; skips the module where it is not installed."""
    if PROGRAM in os.environ:
        return os.environ[PROGRAM]
    try:
        return f"{get_package_prefix('controller_manager')}/lib/controller_manager/ros2_control_node"
    except PackageNotFoundError:
        pytest.skip(INSTALL, allow_module_level=True)


NODE = program()
srv = pytest.importorskip("controller_manager_msgs.srv", reason=INSTALL)
control_msgs = pytest.importorskip("control_msgs.msg", reason=INSTALL)

BROADCASTER, CONTROLLER = "joint_state_broadcaster", "joint_trajectory_controller"
TOPIC = f"{CONTROLLER}/joint_trajectory"
RATE_HZ, TICK_NS = 250, 4_000_000
LOST_S = 0.5
JOINT = """
  <link name="of_{name}"/>
  <joint name="{name}" type="revolute"><parent link="base"/><child link="of_{name}"/><axis xyz="0 0 1"/>
    <limit lower="-100" upper="100" velocity="100" effort="100"/></joint>
  <ros2_control name="{name}" type="system">
    <hardware><plugin>mock_components/GenericSystem</plugin></hardware>
    <joint name="{name}"><command_interface name="position"/><state_interface name="velocity"/>
      <state_interface name="position"><param name="initial_value">{at}</param></state_interface></joint>
  </ros2_control>
"""


class Output(NamedTuple):
    """What the controller has put out in one tick.

    Attributes:
        stamp_ns: of the controller's clock.
        passed_ns: since the trajectory began, as the controller counts.
        places: (A,), of `JOINTS` as far as it has them.
        measured: (A,), before it.
    """

    stamp_ns: int
    passed_ns: int
    places: np.ndarray
    measured: np.ndarray


class Manager:
    """A controller_manager in a process of its own.

    Args:
        stage: the domain.
        folder: for its files.

    Attributes:
        outputs: of the controller, by ticks; also those of an earlier process.
        beside: called again and again while one of its services is.
        now_ns: simulated time.
    """

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.outputs: list[Output] = []
        self.beside: Callable[[], None] = stage.check
        self.now_ns, self._simulated = 1_000_000_000_000, False
        self._stage, self._file, self._log = stage, folder / "controllers.yaml", folder / "manager.log"
        self._command = [NODE, "--ros-args", "--params-file", str(self._file)]
        self._process: subprocess.Popen[bytes]
        node, latched = stage.node, QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._description = node.create_publisher(String, "robot_description", latched)
        self._clock = node.create_publisher(Clock, "clock", DEEP)
        state, topic = control_msgs.JointTrajectoryControllerState, f"{CONTROLLER}/controller_state"
        node.create_subscription(state, topic, self._received, DEEP)

    def start(
        self,
        at: float,
        joints: Sequence[str] = JOINTS,
        from_desired_state: bool = True,
        simulated: bool = False,
    ) -> None:
        """Start it with its controllers, as its spawner does.

        Args:
            at: where its joints are, rad.
            joints: of the controller; its other parameters are those that are shipped for a Panda.
            from_desired_state: its parameter `interpolate_from_desired_state`.
            simulated: its time is what `tick` says.
        """
        parts = '<link name="base"/>' + "".join(JOINT.format(name=name, at=at) for name in JOINTS)
        self._description.publish(String(data=f'<robot name="arm">{parts}</robot>'))
        values = yaml.safe_load(asset("config/controllers/panda.yaml").read_text())
        manager, controller = (values[name]["ros__parameters"] for name in ("controller_manager", CONTROLLER))
        manager |= {"update_rate": RATE_HZ, "use_sim_time": simulated}
        controller |= {"joints": list(joints), "interpolate_from_desired_state": from_desired_state}
        self._file.write_text(yaml.safe_dump(values))
        self._simulated = simulated
        with self._log.open("ab") as log:
            ends, environment = partial(with_parent, signal.SIGKILL), loopback_environment(self._stage.domain)
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, env={**os.environ, **environment}, preexec_fn=ends
            )
        for name in (BROADCASTER, CONTROLLER):
            self._call("load_controller", srv.LoadController, name=name)
            self._call("configure_controller", srv.ConfigureController, name=name)
        self.switch(activate_controllers=[BROADCASTER, CONTROLLER])

    def _call(self, service: str, kind: Any, **values: Any) -> bool:
        client = self._stage.node.create_client(kind, f"controller_manager/{service}")
        called = self._stage.observer.call(client, kind.Request(**values), DEADLINE_S, self._go_on)
        self._stage.node.destroy_client(client)
        return bool(called.ok)

    def switch(self, **controllers: Sequence[str]) -> None:
        strict = {"strictness": srv.SwitchController.Request.STRICT}
        assert self._call("switch_controller", srv.SwitchController, **strict, **controllers), (
            self._log.read_text()
        )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def tick(self) -> Output | None:
        """Let a tick of simulated time pass; return what the controller puts out, or None if that is lost.

        The controller drops it where its last message is still being sent.
        """
        self.now_ns += TICK_NS
        with suppress(TimeoutError):
            self._stage.observer.wait_until(self._is_put_out, LOST_S, "a tick", self._say_time)
            return self.outputs[-1]
        return None

    def _is_put_out(self) -> bool:
        return bool(self.outputs) and self.outputs[-1].stamp_ns >= self.now_ns

    def _go_on(self) -> None:
        assert self._process.poll() is None, self._log.read_text()
        self.beside()
        if self._simulated:
            self.now_ns += TICK_NS
            self._say_time()

    def _say_time(self) -> None:
        self._clock.publish(Clock(clock=to_stamp(self.now_ns)))

    def _received(self, message: Any) -> None:
        stamp_ns, passed_ns = from_stamp(message.header.stamp), from_stamp(message.reference.time_from_start)
        places, measured = (np.array(each.positions) for each in (message.output, message.feedback))
        self.outputs.append(Output(stamp_ns, passed_ns, places, measured))


def span(outputs: Sequence[Output]) -> float:
    """Return how far apart the places are."""
    return float(np.ptp([each.places for each in outputs], axis=0).max())


def speeds(outputs: Sequence[Output], ticks: int = 1) -> np.ndarray:
    """Return mean speeds of so many ticks (T - ticks, A) per s.

    After a tick that was late, the next one samples the trajectory later than its stamp says.
    """
    times_ns = np.array([(each.stamp_ns, each.passed_ns) for each in outputs])
    lasts_s = 1e-9 * np.maximum(np.diff(times_ns, axis=0).max(axis=1), TICK_NS)
    times_s = np.append(0.0, np.cumsum(lasts_s))
    places = np.array([each.places for each in outputs])
    found: np.ndarray = (places[ticks:] - places[:-ticks]) / (times_s[ticks:] - times_s[:-ticks])[:, None]
    return found
