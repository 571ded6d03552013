# SPDX-License-Identifier: Apache-2.0
"""Records the topics of a contract into a rosbag2: observations, actions, and what the policy reports.

Subscribes every topic of the contract, and where they exist `draft_status`, `link_state`, `safety_state`,
`episode_result`, `instruction`, `assignments` and `/diagnostics`. Writes messages as they arrive, with the
node's time, and flushes them to the disk every second. Ends after `duration_s`, on SIGINT or SIGTERM, or when
the clock goes back, for example because a simulator was restarted; the bag is then complete. The exit code is
1 when the clock went back, when no message of the contract arrived, or when the bag could not be written.

With `episodes`, keys and services start and end bags in a folder. A running episode is saved when the node
ends, after `duration_s`, and when the clock goes back.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rclpy.task import Future
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from sensor_msgs.msg import Image
from std_msgs.msg import String

from adahi_ros.bags.bag_writer import STORAGES, BagWriter, UnwrittenBag
from adahi_ros.bags.definitions import types_of
from adahi_ros.bags.recorded_topics import topics_of
from adahi_ros.bags.recording import INSTRUCTION_TOPIC, Listening, RawImages, Recording, recorded_kinds
from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.contract.parsing import load_contract
from adahi_ros.core.texts import INSTRUCTION_LENGTH
from adahi_ros.nodes.common.parameters import ParameterError, Parameters, parameter
from adahi_ros.nodes.common.qos import message_type
from adahi_ros.nodes.common.spin import run
from adahi_ros.nodes.common.timers import steady_timer
from adahi_ros.nodes.monitoring.episode_control import EpisodeControl

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
    out: str = parameter("bag", "The bag to write: a new folder; with `episodes` a folder of bags")
    storage: str = parameter("mcap", "Format of the bag", choices=tuple(STORAGES))
    duration_s: float = parameter(
        0.0, "How long to record, s; 0 until SIGINT or SIGTERM; with `episodes`, of each", 0.0, 1e9
    )
    episodes: bool = parameter(False, "Write a bag for each episode")
    instruction: str = parameter(
        "",
        "Sentence in the bags, until the topic instruction has another",
        optional=True,
        longest=INSTRUCTION_LENGTH,
    )


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
        try:
            contract = load_contract(values.contract)
            kinds = recorded_kinds(contract)
            self._types = {topic: message_type(kind) for topic, kind in kinds.items()}
            types_of(kinds.values())
            path = Path(values.out).expanduser()
            self._names = {topic: self.resolve_topic_name(topic) for topic in kinds}
            self._recording = Recording(contract, self._names, UnwrittenBag(path))
            if values.instruction:
                self._recording.instruct(values.instruction)
            self._received = Counter(dict.fromkeys(topics_of(contract), 0))
            how = values.storage, values.duration_s, self._received
            acts = self._switch, self._recording.instruct, self._end
            self._control = EpisodeControl(self, path, *how, *acts) if values.episodes else None
            if self._control is None:
                self._switch(BagWriter(path, values.storage))
        except ParameterError:
            raise
        except ValueError as error:
            raise ParameterError(str(error)) from None
        self._log: Any = self.get_logger()
        if self._control is not None:
            self._control.instruction = values.instruction
            self._log = self._control.terminal or self._log
        self._raw = RawImages()
        self._started = time.monotonic()
        steady_timer(self, LOOK_PERIOD_S, self._subscribe_to_published)
        steady_timer(self, FLUSH_PERIOD_S, self._flush)
        steady_timer(self, SAY_PERIOD_S, self._say)
        if values.duration_s and self._control is None:
            steady_timer(self, values.duration_s, self._end)
        self._log.info(self._recording.waiting_for)

    def _switch(self, bag: BagWriter | UnwrittenBag) -> Recording:
        """Go on with another bag; see `Switch`."""
        self._take_what_has_come()
        ended = self._recording
        self._recording = ended.following(bag, self.get_clock().now().nanoseconds)
        ended.close()
        return ended

    def _subscribe_to_published(self) -> None:
        """Subscribe to published topics; subscribe again if the QoS does not fit all publishers."""
        if self._ending:
            self._end()
        elif self._control is not None:
            self._control.take_keys()
        # DDS announces a node's publishers in the order in which it made them. Looked at from the last to the
        # first, an earlier one is never missed beside a later one, so subscriptions are in that order, too.
        info = self.get_publishers_info_by_topic
        found = {topic: info(self._names[topic]) for topic in reversed(self._names)}
        for topic in self._names:
            publishers = [(each.topic_type, to_recorded(each.qos_profile)) for each in found[topic]]
            for warning in self._recording.other_types(topic, publishers):
                self._log.warning(warning)
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
        self._log.info(f"{self._names[topic]}: found a publisher, recording")

    def _on_message(self, topic: str, data: bytes) -> None:
        self._received[topic] += 1
        if self._received[topic] == 1:
            self._log.info(first_message(self._names[topic]))
        now_ns = self.get_clock().now().nanoseconds
        why_over = self._recording.write(topic, data, now_ns)
        if why_over:
            self._log.error(why_over)
        if self._types[topic] is Image and (warning := self._raw.take(self._names[topic], len(data), now_ns)):
            self._log.warning(warning)
        if topic == INSTRUCTION_TOPIC and self._control is not None:
            self._control.instruction = deserialize_message(data, String).data
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
        passed_s = time.monotonic() - self._started
        status = self._control.status if self._control else [self._recording.progress(passed_s)]
        self._log.info("; ".join(status))
        if self._recording.other_clock:
            self._log.warning(self._recording.other_clock)

    def hear(self, number: int, frame: object) -> None:
        """Note a signal."""
        self._ending = True

    def _end_where_over(self) -> None:
        if self._recording.over and self._control is not None:
            self._control.interrupted()
        elif self._recording.over:
            self._end()

    def _end(self) -> None:
        if not self.finished.done():
            self.finished.set_result(None)

    def destroy_node(self) -> None:
        """Close the bag, and print its summary."""
        if self._control is not None:
            self._control.close()
        else:
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
        return self._recording.exit_code if self._control is None else int(self._control.failed)


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
