# SPDX-License-Identifier: Apache-2.0
"""Records the topics of a contract into a rosbag2: observations, actions, and what the policy reports.

Subscribes every topic of the contract, and where they exist `draft_status`, `link_state`, `safety_state`,
`episode_result`, `instruction`, `assignments` and `/diagnostics`. Writes messages as they arrive, with the
node's time, and flushes them to the disk every second. Ends after `duration_s`, on SIGINT or SIGTERM, or when
the clock goes back, for example because a simulator was restarted; the bag is then complete. The exit code is
1 when the clock went back, when no message of the contract arrived, or when the bag could not be written.
"""

from __future__ import annotations

import signal
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy
from rclpy.task import Future
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime

from adahi_ros.bags.bag_writer import STORAGES, BagWriter
from adahi_ros.bags.definitions import types_of
from adahi_ros.bags.recording import Listening, Recording, recorded_kinds
from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.contract.parsing import load_contract
from adahi_ros.nodes.common.parameters import ParameterError, Parameters, parameter
from adahi_ros.nodes.common.qos import message_type
from adahi_ros.nodes.common.spin import run
from adahi_ros.nodes.common.timers import steady_timer

DEPTH = 10_000  # so that the recorder loses no message
LOOK_PERIOD_S = 0.05  # between searches for publishers
FLUSH_PERIOD_S = 1.0  # a killed recorder loses at most this time
SAY_PERIOD_S = 5.0


@dataclass(frozen=True)
class BagRecorderParameters:
    """Parameters of the node."""

    contract: str = parameter(
        "",
        "What to record: a shipped contract's name, or a YAML file; must be given",
        optional=True,
    )
    out: str = parameter("bag", "The bag to write: a new folder")
    storage: str = parameter("mcap", "Format of the bag", choices=tuple(STORAGES))
    duration_s: float = parameter(0.0, "How long to record, s; 0 until SIGINT or SIGTERM", 0.0, 1e9)


class BagRecorderNode(Node):
    """The node that records.

    Raises:
        ParameterError: names the parameter, its value and what is allowed.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("bag_recorder", **options)
        parameters = Parameters(self, BagRecorderParameters)
        values = parameters.read()
        parameters.frozen = True
        self.finished: Future = Future()
        """Done when the duration is over, or a signal was received."""
        self._ending = False
        self._recorded: dict[str, Any] = {}
        self._received: set[str] = set()
        try:
            contract = load_contract(values.contract)
            kinds = recorded_kinds(contract)
            self._types = {topic: message_type(kind) for topic, kind in kinds.items()}
            types_of(kinds.values())
            bag = BagWriter(Path(values.out).expanduser(), values.storage)
        except ParameterError:
            raise
        except ValueError as error:
            raise ParameterError(str(error)) from None
        self._names = {topic: self.resolve_topic_name(topic) for topic in kinds}
        self._recording = Recording(contract, self._names, bag)
        self._started = time.monotonic()
        steady_timer(self, LOOK_PERIOD_S, self._subscribe_to_published)
        steady_timer(self, FLUSH_PERIOD_S, self._flush)
        steady_timer(self, SAY_PERIOD_S, self._say)
        if values.duration_s:
            steady_timer(self, values.duration_s, self._end)
        self.get_logger().info(self._recording.waiting_for)

    def _subscribe_to_published(self) -> None:
        """Subscribe to published topics; subscribe again if the QoS does not fit all publishers."""
        if self._ending:
            self._end()
        for topic, name in self._names.items():
            found = self.get_publishers_info_by_topic(name)
            publishers = [(each.topic_type, to_recorded(each.qos_profile)) for each in found]
            for warning in self._recording.other_types(topic, publishers):
                self.get_logger().warning(warning)
            wanted = self._recording.subscription(topic, publishers)
            if wanted is not None:
                self._subscribe(topic, wanted)
        self._end_where_over()

    def _subscribe(self, topic: str, wanted: Listening) -> None:
        if topic in self._recorded:
            self.destroy_subscription(self._recorded[topic])
        qos = QoSProfile(
            depth=DEPTH,
            reliability=ReliabilityPolicy.RELIABLE if wanted.reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if wanted.kept else DurabilityPolicy.VOLATILE,
        )
        self._recorded[topic] = self.create_subscription(
            self._types[topic], topic, partial(self._on_message, topic), qos, raw=True
        )
        self.get_logger().info(f"{self._names[topic]}: found a publisher, recording")

    def _on_message(self, topic: str, data: bytes) -> None:
        if topic not in self._received:
            self._received.add(topic)
            self.get_logger().info(first_message(self._names[topic]))
        why_over = self._recording.write(topic, data, self.get_clock().now().nanoseconds)
        if why_over:
            self.get_logger().error(why_over)
        self._end_where_over()

    def _flush(self) -> None:
        self._recording.flush()
        self._end_where_over()

    def _take_what_has_come(self) -> None:
        """Write the waiting messages: a signal may arrive while the executor is behind."""
        waiting = dict(self._recorded)
        while waiting:
            for topic, subscription in list(waiting.items()):  # one message of each topic in turn
                with subscription.handle:
                    taken = subscription.handle.take_message(subscription.msg_type, True)
                if taken is None:
                    del waiting[topic]
                else:
                    self._on_message(topic, taken[0])

    def _say(self) -> None:
        self.get_logger().info(self._recording.progress(time.monotonic() - self._started))
        if self._recording.other_clock:
            self.get_logger().warning(self._recording.other_clock)

    def hear(self, number: int, frame: object) -> None:
        """Note a signal."""
        self._ending = True

    def _end_where_over(self) -> None:
        if self._recording.over:
            self._end()

    def _end(self) -> None:
        if not self.finished.done():
            self.finished.set_result(None)

    def destroy_node(self) -> None:
        """Close the bag, and print its summary."""
        self._take_what_has_come()
        self._recording.close()
        if self._recording.summary:
            print(self._recording.summary, flush=True)
        for warning in self._recording.warnings:
            print(warning, file=sys.stderr, flush=True)
        super().destroy_node()

    @property
    def exit_code(self) -> int:
        """Exit code of the process; see `Recording`."""
        return self._recording.exit_code


def first_message(name: str) -> str:
    """Return what the node logs with the first message of a topic: it and its publisher know each other."""
    return f"{name}: first message"


def to_recorded(qos: QoSProfile) -> Qos:
    """Return a QoS in the form of bags, so that playback offers the same."""

    def time_of(duration: Any) -> QosTime:
        return QosTime(*divmod(duration.nanoseconds, NANOSECONDS))

    return Qos(
        getattr(QosHistory, HistoryPolicy(qos.history).name, QosHistory.UNKNOWN),
        qos.depth,
        getattr(QosReliability, ReliabilityPolicy(qos.reliability).name, QosReliability.UNKNOWN),
        getattr(QosDurability, DurabilityPolicy(qos.durability).name, QosDurability.UNKNOWN),
        time_of(qos.deadline),
        time_of(qos.lifespan),
        getattr(QosLiveliness, LivelinessPolicy(qos.liveliness).name, QosLiveliness.UNKNOWN),
        time_of(qos.liveliness_lease_duration),
        qos.avoid_ros_namespace_conventions,
    )


def recorder() -> BagRecorderNode:
    """Make the node with handlers that only record signals, so that the bag is always complete."""
    node = BagRecorderNode()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, node.hear)
    return node


def main() -> None:
    """Run the node as a process."""
    made: list[BagRecorderNode] = []

    def finished(node: BagRecorderNode) -> Future:
        made.append(node)
        return node.finished

    failed = run(recorder, __doc__ or "", BagRecorderParameters, finished)
    sys.exit(failed or max((node.exit_code for node in made), default=0))


if __name__ == "__main__":
    main()
