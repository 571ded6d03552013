# SPDX-License-Identifier: Apache-2.0
"""Drives an arm by LeRobot's own classes: publishes joint states and images, and takes commands.

All numbers are LeRobot's: its units, its calibration, its names. The arm is held where it is measured at the
start, when commands stop, and at the end; it moves by commands on `joint_trajectory` alone. A leader arm of
LeRobot's is published as `teleop_command`.
"""

from __future__ import annotations

import importlib
import pkgutil
import signal
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, make_dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CompressedImage, Image, JointState
from trajectory_msgs.msg import JointTrajectory

from adahi_ros.contract.sinks.joint_trajectory import JointTrajectorySink
from adahi_ros.core.signals import leaving_on
from adahi_ros.nodes.common.messages import to_image, to_joint_state
from adahi_ros.nodes.common.parameters import ParameterError, Parameters, parameter
from adahi_ros.nodes.common.qos import command_qos
from adahi_ros.nodes.common.spin import run
from adahi_ros.nodes.common.throttled_log import ThrottledLog
from adahi_ros.nodes.common.timers import steady_timer
from adahi_ros.nodes.robot.camera_messages import to_compressed
from adahi_ros.safety.commanded_arm import CommandedArm
from adahi_ros.safety.takeover import COMMAND

POSITION = ".pos"  # the end of LeRobot's names of positions
TYPED = ("--robot.type", "--robot", "--config_path", "--help", "-h")  # with one of them, no type is missing
TORQUE = "disable_torque_on_disconnect"
FAULTS = (OSError, RuntimeError, ValueError, termios.error)  # LeRobot's own errors are ConnectionErrors
Devices = Callable[[bool], tuple[Any, Any]]


@dataclass(frozen=True)
class LeRobotArmParameters:
    """Parameters of the node."""

    rate_hz: float = parameter(50.0, "Joint states per second", 1.0, 500.0)
    silence_s: float = parameter(0.5, "After so long without a command the arm is held", 0.05, 10.0)
    max_step: float = parameter(
        30.0, "A joint is sent at most so far from its measured position, in LeRobot's unit", 0.1, 360.0
    )
    torque_off: bool = parameter(False, "Switch the motors off at the end: the arm falls")


class LeRobotArm(Node):
    """A ROS 2 driver around a robot of LeRobot's.

    Args:
        devices: returns the robot, and the leader arm or None, not connected; its argument is whether to
            switch the motors off at the end.

    Raises:
        ParameterError: a device cannot be used; says why.
    """

    def __init__(self, devices: Devices, **options: Any) -> None:
        super().__init__("lerobot_arm", **options)
        self._connected: list[Any] = []
        self._log = ThrottledLog(self)
        self._reader = JointTrajectorySink()
        try:
            values = Parameters(self, LeRobotArmParameters).read()
            self._arm = CommandedArm(values.silence_s, values.max_step)
            self._robot, self._leader = devices(values.torque_off)
            self._joints = _joints(self._robot)
            self._led = _led(self._leader, self._joints)
            for device in filter(None, (self._leader, self._robot)):
                self._connect(device)
            self._observe()  # at once: the motors are on
        except (ImportError, *FAULTS) as error:
            self.destroy_node()
            raise ParameterError(" ".join(str(error).split())) from error
        self._states = self.create_publisher(JointState, "joint_states", QoSProfile(depth=10))
        self._teleop = self.create_publisher(JointState, COMMAND, QoSProfile(depth=1)) if self._led else None
        self._cameras: dict[str, tuple[Publisher, Publisher]] = {
            name: (
                self.create_publisher(Image, f"{name}/image_raw", QoSProfile(depth=1)),
                self.create_publisher(CompressedImage, f"{name}/image_raw/compressed", QoSProfile(depth=1)),
            )
            for name, shape in self._robot.observation_features.items()
            if isinstance(shape, tuple) and shape[2:] == (3,)
        }
        for name, shape in self._robot.observation_features.items():
            if isinstance(shape, tuple) and name not in self._cameras:
                self.get_logger().warning(f"camera {name} is not published: {shape}, must have 3 channels")
        self._shown: dict[str, Any] = {}
        self._commands = self.create_subscription(
            JointTrajectory, "joint_trajectory", self._on_command, command_qos()
        )
        steady_timer(self, 1.0 / values.rate_hz, self._measure)
        cameras = ", ".join(self._cameras) or "none"
        self.get_logger().info(
            f"{self._robot}: joints {', '.join(self._joints)}; cameras {cameras}; "
            f"commands on {self._commands.topic_name}"
        )

    def hold(self) -> None:
        """Hold the arm where it was measured last."""
        self._send(self._arm.hold())

    def destroy_node(self) -> None:
        """End the node and the devices."""
        while self._connected:
            with suppress(*FAULTS):  # it was unplugged
                self._connected.pop().disconnect()
        super().destroy_node()

    def _connect(self, device: Any) -> None:
        fault = ValueError(f"{device}: not calibrated; run lerobot-calibrate with its type, port and id")
        if bus := getattr(device, "bus", None):
            bus.connect()
            calibrated = device.is_calibrated
            bus.disconnect(False)
            if not calibrated:  # `connect` would switch the motors on, and leave them on with former goals
                raise fault
        device.connect(calibrate=False)
        self._connected.append(device)
        if not device.is_calibrated:
            raise fault

    def _observe(self) -> tuple[dict[str, Any], np.ndarray]:
        """Return what the robot observes, and its positions (J,); hold it there if it is due."""
        seen: dict[str, Any] = self._robot.get_observation()
        positions = np.array([seen[f"{joint}{POSITION}"] for joint in self._joints], np.float64)
        self._send(self._arm.measured(positions, time.monotonic()))
        return seen, positions

    def _measure(self) -> None:
        try:
            seen, positions = self._observe()
        except FAULTS as error:
            self._log.warning("measure", f"cannot read the arm: {error}")
            return
        stamp_ns = self.get_clock().now().nanoseconds
        self._states.publish(to_joint_state(self._joints, positions, np.empty(0), stamp_ns))
        for name, (raw, compressed) in self._cameras.items():
            if self._shown.get(name) is not seen[name]:  # LeRobot's cameras return their newest frame again
                self._shown[name] = seen[name]
                if raw.get_subscription_count():
                    raw.publish(to_image(seen[name], stamp_ns))
                if compressed.get_subscription_count():
                    compressed.publish(to_compressed(seen[name], stamp_ns))
        if self._teleop is not None:
            self._lead(self._teleop, stamp_ns)

    def _lead(self, out: Publisher, stamp_ns: int) -> None:
        try:
            action = self._leader.get_action()
        except FAULTS as error:
            self._log.warning("teleop", f"cannot read the leader: {error}")
            return
        positions = np.array([action[f"{joint}{POSITION}"] for joint in self._led], np.float64)
        out.publish(to_joint_state(self._led, positions, np.empty(0), stamp_ns))

    def _on_command(self, message: JointTrajectory) -> None:
        try:
            wanted = self._reader.action(message, self._joints, "positions")
            publishers = self.count_publishers(self._commands.topic_name)
            self._send(self._arm.command(wanted, publishers, time.monotonic()))
        except ValueError as error:
            self._log.warning("command", f"ignored command: {error}")

    def _send(self, positions: np.ndarray | None) -> None:
        if positions is None:
            return
        named = zip(self._joints, positions.tolist(), strict=True)
        try:
            self._robot.send_action({f"{joint}{POSITION}": value for joint, value in named})
        except FAULTS as error:
            self._log.warning("send", f"cannot command the arm: {error}")


def _joints(robot: Any) -> list[str]:
    """Return the names of a robot's joints.

    Raises:
        ValueError: it takes other commands than positions that it measures.
    """
    for name in robot.action_features:
        if not name.endswith(POSITION) or name not in robot.observation_features:
            raise ValueError(f"{robot}: takes {name}, must take positions that it measures, such as NAME.pos")
    return [name.removesuffix(POSITION) for name in robot.action_features]


def _led(leader: Any, joints: list[str]) -> list[str]:
    """Return the joints that a leader arm leads; none without a leader.

    Raises:
        ValueError: it leads none of this robot.
    """
    if leader is None:
        return []
    found = [joint for joint in joints if f"{joint}{POSITION}" in leader.action_features]
    if not found:
        raise ValueError(f"{leader}: gives {', '.join(leader.action_features)}, must give {joints[0]}.pos")
    return found


def read_settings() -> Any:
    """Read the command line as LeRobot's own programs do; return the settings of robot and teleop.

    Raises:
        SystemExit: an argument is wrong or missing; with the reason.
    """
    from lerobot.configs import parser
    from lerobot.robots import RobotConfig
    from lerobot.teleoperators import TeleoperatorConfig
    from lerobot.utils.import_utils import register_third_party_plugins

    for package in map(
        importlib.import_module, ("lerobot.robots", "lerobot.teleoperators", "lerobot.cameras")
    ):
        for each in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            with suppress(ImportError):  # of a device that needs more packages
                importlib.import_module(each.name)  # it makes its types known
    register_third_party_plugins()
    words = [word for each in sys.argv for word in each.split("=", 1)]
    asked = dict(pairwise(words))
    if set(words).isdisjoint(TYPED):
        asked["--robot.type"] = "none"
    for option, config in (("--robot.type", RobotConfig), ("--teleop.type", TeleoperatorConfig)):
        if asked.get(option) not in (None, *config.get_known_choices()):
            types = ", ".join(config.get_known_choices())
            raise SystemExit(f"error: {option}: {asked[option]}, must be one of {types}")
    leader = ("teleop", TeleoperatorConfig | None, None)

    def read(settings: Any) -> Any:
        return settings

    read.__annotations__["settings"] = make_dataclass("Drive", [("robot", RobotConfig), leader])
    return parser.wrap()(read)()


def make_devices(settings: Any, torque_off: bool) -> tuple[Any, Any]:
    """Return LeRobot's robot and teleoperator, or None for that; see `Devices`."""
    from lerobot.robots import make_robot_from_config
    from lerobot.teleoperators import make_teleoperator_from_config

    _set_torque(settings.robot, torque_off)
    leader = None if settings.teleop is None else make_teleoperator_from_config(settings.teleop)
    return make_robot_from_config(settings.robot), leader


def _set_torque(config: Any, off: bool) -> None:
    """Set what happens to the motors at the end, for each arm of a robot."""
    for each in fields(config):
        if each.name == TORQUE:
            setattr(config, TORQUE, off)
        elif is_dataclass(inner := getattr(config, each.name)):
            _set_torque(inner, off)


def main() -> None:
    """Run the node as a process: arguments of LeRobot's before those of ROS."""
    at = [*sys.argv, "--ros-args"].index("--ros-args")
    sys.argv, given = ["adahi lerobot drive", *sys.argv[1:at]], sys.argv[at:]  # LeRobot's help names it
    try:
        with leaving_on(signal.SIGINT, signal.SIGTERM):
            make = partial(LeRobotArm, partial(make_devices, read_settings()))
    except KeyboardInterrupt:  # LeRobot's imports leave the signal to Python
        sys.exit(128 + signal.SIGINT)
    sys.argv[1:] = given
    sys.exit(run(make, __doc__ or "", LeRobotArmParameters, last_words=LeRobotArm.hold))


if __name__ == "__main__":
    main()
