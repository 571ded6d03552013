# SPDX-License-Identifier: Apache-2.0
"""Looks at a robot and at what is around it, for `adahi doctor`: it publishes nothing, and moves nothing."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from adahi_msgs.srv import DescribeTarget
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.parameter import Parameter
from rclpy.utilities import get_rmw_implementation_identifier

from adahi_ros.contract.commanded import commanded
from adahi_ros.contract.contract import Contract
from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.core.health_level import Level
from adahi_ros.nodes.common.executors import with_info
from adahi_ros.nodes.common.graph import endpoints, node_of
from adahi_ros.nodes.common.listener import Listener
from adahi_ros.nodes.common.parameters import Parameters
from adahi_ros.nodes.common.qos import LISTENING, message_type, observation_qos
from adahi_ros.nodes.common.verifier_messages import from_described
from adahi_ros.nodes.robot import draft_policy_parts as parts
from adahi_ros.nodes.robot.dds_transport import VerifierClients
from adahi_ros.nodes.robot.draft_policy_parameters import DraftPolicyParameters
from adahi_ros.nodes.robot.driver_monitor import DriverMonitor
from adahi_ros.nodes.robot.other_publishers import OtherPublishers
from adahi_ros.protocol.description import Described
from adahi_ros.robot.checks import BOOL, Robot
from adahi_ros.safety.holds import Holds
from adahi_ros.safety.named_limits import limits_warning, named_command_limits

TRIPS, AGAIN_S = 5, 1.0  # requests for a description, and after how long without an answer another one
VENDOR_BYTES = 2  # with which DDS begins a GID
CLOCK = "rosgraph_msgs/msg/Clock"
MOST_REPORTED = 200  # names of nodes and their parts in /diagnostics


class Examination(Listener):
    """Listens to a robot, and asks its verifier for its description.

    Args:
        namespace: of the robot.
        given: the robot's parameters by name.
        verifier_namespace: of the verifier's services.
    """

    def __init__(self, namespace: str, given: Mapping[str, object], verifier_namespace: str) -> None:
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        super().__init__("doctor", namespace=namespace.strip("/"), parameter_overrides=overrides)
        self._opened = ExitStack()
        self._verifier = verifier_namespace
        self._clients: VerifierClients | None = None
        self._times_s: dict[str, list[float]] = defaultdict(list)
        self._leads_s: dict[str, float] = {}
        self._health: dict[str, tuple[Level, str]] = {}
        self._described: Described | None = None
        self._trips_s: list[float] = []
        self._driver = self._measured_twice = ""
        called = with_info(self._on_diagnostics)
        self.node.create_subscription(DiagnosticArray, "/diagnostics", called, LISTENING)

    def __exit__(self, *raised: Any) -> None:
        self._opened.close()
        super().__exit__(*raised)

    def robot(self) -> Robot:
        """Return the robot of the given parameters.

        Raises:
            ValueError: the robot's node could not be configured with them; names the parameter.
        """
        values = Parameters(self.node, DraftPolicyParameters).read()
        policy, contract = parts.policy_and_contract(values)
        encoder, _ = parts.encoder_of(values, contract)
        limits, what = parts.limits_of(values, contract), commanded(contract.action)
        named_command_limits(values.safety.limits, what)
        controller = parts.controller_of(values, policy, contract)
        self._clients = VerifierClients(self.node, values.verification.reliability, self._verifier)
        resolved = self.node.resolve_topic_name
        return Robot(
            resolved("draft_policy"),
            contract,
            {resolved(topic): channel for topic, channel in contract.channels.items()},
            {resolved(sink.channel.topic): sink.channel.kind for sink in contract.action.sinks},
            parts.wants_of_robot(values, contract, policy.signature, encoder, controller, limits),
            limits_warning(values.safety.limits, what, contract.measured(what.names)) or "",
            str(self._clients.describing.service_name),
            values.wait_policy == "ahead",
            values.execution_horizon,
            values.deadline_s,
            bool(self.node.get_parameter("use_sim_time").value),
            values.safety.shared_command,
            resolved("enable") if values.safety.require_enable else "",
        )

    def messages(self, contract: Contract, seconds: float, target: str) -> Iterator[tuple[str, Any, int]]:
        """Yield topic, as in the contract, message and time of arrival in ns, of all that is observed.

        Raises:
            ParameterError: a message type is not installed.
        """
        arrived: list[tuple[str, Any, int]] = []
        joints = contract.measured(contract.commanded_names).topics
        ignored = lambda: False, Holds(), lambda: None, lambda topic: None
        others = OtherPublishers(self.node, {}, joints, *ignored, self._opened)

        def received(topic: str, compared: Callable[..., None], message: Any, info: Any) -> None:
            name = self.node.resolve_topic_name(topic)
            self._times_s[name].append(time.monotonic())
            self._compare_clock(name, info)
            compared((message, info))
            arrived.append((topic, message, self.node.get_clock().now().nanoseconds))

        def on_driver(fault: str, known: bool) -> None:
            self._driver = fault

        for topic, channel in contract.channels.items():
            called = with_info(partial(received, topic, others.watched(topic, lambda taken: None)))
            kind = message_type(channel.kind)
            self.node.create_subscription(kind, topic, called, observation_qos(channel))
        if contract.driver:
            self._opened.callback(DriverMonitor(self.node, contract.driver, on_driver).close)
        assert self._clients is not None
        client = self._clients.describing
        end_s, asked_s, asked = time.monotonic() + seconds, 0.0, None
        while (now_s := time.monotonic()) < end_s:
            if asked is not None and asked.done():
                self._trips_s.append(now_s - asked_s)
                self._described, asked = from_described(0, asked.result()), None
            waits = asked is not None and now_s < asked_s + AGAIN_S
            if not waits and len(self._trips_s) < TRIPS and client.service_is_ready():
                asked, asked_s = client.call_async(DescribeTarget.Request(target=target)), now_s
            self.serve()
            yield from arrived
            arrived.clear()
        self._measured_twice = others.measured_twice() or ""

    def _compare_clock(self, name: str, info: Mapping[str, int]) -> None:
        sent_ns, received_ns = info.get("source_timestamp", 0), info.get("received_timestamp", 0)
        if sent_ns and received_ns:  # the quickest message says most of the clocks
            lead_s = (sent_ns - received_ns) / NANOSECONDS
            self._leads_s[name] = max(lead_s, self._leads_s.get(name, lead_s))

    def _on_diagnostics(self, message: DiagnosticArray, info: Mapping[str, int]) -> None:
        for status in message.status:
            if len(self._health) >= MOST_REPORTED and status.name not in self._health:
                continue
            level = Level(min(int.from_bytes(status.level, "little"), Level.ERROR))
            self._health[status.name] = level, status.message
            self._compare_clock(status.name.partition(":")[0], info)

    def seen(self, robot: Robot | None) -> dict[str, Any]:
        """Return the arguments of `Surroundings` that ROS knows."""
        node = self.node
        nodes = node.get_node_names_and_namespaces()
        commands = set() if robot is None else set(robot.commands.values())
        observed = set() if robot is None else {channel.kind for channel in robot.topics.values()}
        events = node.get_publishers_info_by_topic("/parameter_events")
        vendors = {node_of(each): bytes(each.endpoint_gid)[:VENDOR_BYTES] for each in events}
        own = vendors.get(node.get_fully_qualified_name())
        times_s = self._times_s.items()
        return {
            "domain": self.domain,
            "nodes": sorted(f"{space.rstrip('/')}/{name}" for name, space in nodes if name[0] != "_"),
            "middleware": get_rmw_implementation_identifier(),
            "other_vendors": sorted(name for name, vendor in vendors.items() if own not in (vendor, None)),
            "leads_s": self._leads_s,
            "published": endpoints(node, commands | observed | {CLOCK, BOOL}),
            "subscribed": endpoints(node, commands, subscriptions=True),
            "services": {
                name: kinds for name, kinds in node.get_service_names_and_types() if node.count_services(name)
            },
            "health": self._health,
            "rates": {topic: (len(each) - 1) / max(each[-1] - each[0], 1e-9) for topic, each in times_s},
            "described": self._described,
            "absence": self._clients.absence if self._clients else "",
            "trips_s": self._trips_s,
            "measured_twice": self._measured_twice,
            "driver": self._driver,
        }
