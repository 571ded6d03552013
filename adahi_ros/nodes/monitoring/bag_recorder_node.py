"""Records what a contract names into a rosbag2: observations, actions, and what became of them.

Subscribes every topic of the contract, and where somebody publishes them `draft_status`, `link_state`,
`safety_state`, `episode_result` and `/diagnostics`; writes the messages as they come, with the node's time,
and puts them on the disk every second. Ends, and the bag is whole, after `duration_s`, on SIGINT or SIGTERM,
or where the clock begins anew, as that of a simulator that was restarted. Its exit code is 1 where that was
so, where nothing of the contract came, or where the bag could not be written.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy
from rclpy.task import Future
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime

from adahi_ros.bags.definitions import BagError, how_to_recover, types_of
from adahi_ros.bags.topics import BESIDE_A_RUN, DIAGNOSTICS, DRAFT_STATUS, topics_of
from adahi_ros.bags.writer import STORAGES, BagWriter
from adahi_ros.contract.contract import Channel
from adahi_ros.contract.parsing import load_contract
from adahi_ros.contract.times import NANOSECONDS
from adahi_ros.nodes.common.message_types import message_type
from adahi_ros.nodes.common.parameters import ParameterError, Parameters, parameter
from adahi_ros.nodes.common.qos import observation_qos
from adahi_ros.nodes.common.spin import run

DEPTH = 10_000  # what is recorded must not be lost here
LOOK_PERIOD_S = 0.05  # for publishers
FLUSH_PERIOD_S = 1.0  # what a recorder that is killed loses
SAY_PERIOD_S = 5.0
MOMENT_S = 1.0  # a clock that goes back further has begun anew


@dataclass(frozen=True)
class BagRecorderParameters:
    """What the node is told."""

    contract: str = parameter("ball", "What to record: a shipped contract's name, or a YAML file")
    out: str = parameter("bag", "The bag to make: a folder that is not there yet")
    storage: str = parameter("mcap", "Format of the bag", choices=tuple(STORAGES))
    duration_s: float = parameter(0.0, "How long to record; 0 until SIGINT or SIGTERM", 0.0, 1e9)


class BagRecorderNode(Node):
    """See the module.

    Raises:
        ParameterError: names the parameter, its value and what is allowed.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("bag_recorder", **options)
        parameters = Parameters(self, BagRecorderParameters)
        values = parameters.read()
        parameters.frozen = True
        self.finished: Future = Future()
        """Done when the duration is over, or a signal was heard."""
        self._asked_to_end = False
        self._left_out = 0
        self._fault = ""
        self._others: defaultdict[str, set[str]] = defaultdict(set)
        self._recorded: dict[str, tuple[QoSProfile, Any]] = {}
        try:
            contract = load_contract(values.contract)
            self._observed = contract.channels
            needed = topics_of(contract)
            self._needed = {topic: self.resolve_topic_name(topic) for topic in needed}
            self._kinds = {**DRAFT_STATUS, **BESIDE_A_RUN, **DIAGNOSTICS, **needed}
            self._types = {kind: message_type(kind) for kind in self._kinds.values()}
            types_of(self._kinds.values())
            self._bag = BagWriter(Path(values.out).expanduser(), values.storage)
        except ParameterError:
            raise
        except ValueError as error:
            raise ParameterError(str(error)) from None
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._started = time.monotonic()
        self.create_timer(LOOK_PERIOD_S, self._look, clock=self._steady)
        self.create_timer(FLUSH_PERIOD_S, self._flush, clock=self._steady)
        self.create_timer(SAY_PERIOD_S, self._say, clock=self._steady)
        if values.duration_s:
            self.create_timer(values.duration_s, self._end, clock=self._steady)
        self.get_logger().info(f"waiting for {', '.join(self._needed)}; bag {self._bag.path}")

    def _look(self) -> None:
        """Subscribe what somebody publishes; anew where that does not fit all publishers any more."""
        if self._asked_to_end:
            self._end()
        for topic, kind in self._kinds.items():
            name = self.resolve_topic_name(topic)
            publishers = self.get_publishers_info_by_topic(name)
            self._tell_others(name, kind, {each.topic_type for each in publishers} - {kind})
            offered = [each.qos_profile for each in publishers if each.topic_type == kind]
            if not offered:
                continue
            wanted = fitting(offered, self._observed.get(topic))
            if name in self._recorded:
                before, subscription = self._recorded[name]
                if _fits(before, wanted):
                    continue
                self.destroy_subscription(subscription)
            with self._ending_on_faults():
                self._bag.add(name, kind, [to_recorded(each) for each in offered])
            subscription = self.create_subscription(
                self._types[kind], topic, partial(self._on_message, name), wanted, raw=True
            )
            self._recorded[name] = wanted, subscription
            self.get_logger().info(f"{name}: somebody publishes it, recording")

    def _tell_others(self, name: str, kind: str, others: set[str]) -> None:
        """Say once that somebody publishes what DDS does not bring here."""
        for other in others - self._others[name]:
            self.get_logger().warning(f"{name}: somebody publishes {other}, expected {kind}; not recorded")
        self._others[name] |= others

    def _on_message(self, name: str, data: bytes) -> None:
        now_ns = self.get_clock().now().nanoseconds
        if self._fault:
            return
        if self._left_out or now_ns < self._bag.newest_ns - round(MOMENT_S * NANOSECONDS):
            self._leave_out(now_ns)
        else:
            with self._ending_on_faults():
                self._bag.write(name, data, now_ns)

    def _flush(self) -> None:
        with self._ending_on_faults():
            self._bag.flush()

    @contextmanager
    def _ending_on_faults(self) -> Iterator[None]:
        """End where the bag cannot be written any more."""
        try:
            yield
        except BagError as error:
            self._fault = self._fault or str(error)
            self._end()

    def _leave_out(self, now_ns: int) -> None:
        """End where the clock has begun anew: a bag has one time, by which its readers sort."""
        if not self._left_out:
            back_s = (self._bag.newest_ns - now_ns) / NANOSECONDS
            self.get_logger().error(f"the clock went back by {back_s:.1f} s: the bag ends where it did")
            self._end()
        self._left_out += 1

    def _take_what_has_come(self) -> None:
        """Write what still waits: a signal may come while the executor is behind."""
        waiting = {name: subscription for name, (_, subscription) in self._recorded.items()}
        while waiting:
            for name, subscription in list(waiting.items()):  # a message of each in turn, as they came
                with subscription.handle:
                    taken = subscription.handle.take_message(subscription.msg_type, True)
                if taken is None:
                    del waiting[name]
                else:
                    self._on_message(name, taken[0])

    def _say(self) -> None:
        counts = ", ".join(f"{name} {count}" for name, count in self._bag.counts.items())
        passed_s = time.monotonic() - self._started
        self.get_logger().info(f"{passed_s:.0f} s: {counts or 'nobody publishes any of the topics'}")

    def hear(self, number: int, frame: object) -> None:
        """Note a signal."""
        self._asked_to_end = True

    def _end(self) -> None:
        if not self.finished.done():
            self.finished.set_result(None)

    def destroy_node(self) -> None:
        """Close the bag, and tell what is in it."""
        self._take_what_has_come()
        if not self._fault:
            with self._ending_on_faults():
                self._bag.close()
        self._tell()
        super().destroy_node()

    def _tell(self) -> None:
        if self._fault:
            _warn(f"{self._fault}; {how_to_recover(self._bag.path)}")
            return
        counts, path = self._bag.counts, self._bag.path
        missing = [topic for topic, name in self._needed.items() if not counts[name]]
        print(f"{path}: {sum(counts.values())} messages of {len(counts)} topics", flush=True)
        if self._came:
            if missing:
                _warn(f"{path}: nothing came on {', '.join(missing)}")
        else:
            names = ", ".join(self._needed.values())
            _warn(f"{path}: nothing came of the contract; expected somebody to publish {names}")
        if self._left_out:
            _warn(
                f"{path}: ends where the clock began anew; {self._left_out} messages that came later are not "
                "in it: record them as a bag of their own"
            )

    @property
    def _came(self) -> bool:
        """Whether anything came that the contract names."""
        return any(self._bag.counts[name] for name in self._needed.values())

    @property
    def exit_code(self) -> int:
        """1 where nothing of the contract came, or something that came is not in the bag."""
        return int(bool(self._fault or self._left_out) or not self._came)


def _warn(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def fitting(offered: Sequence[QoSProfile], channel: Channel | None = None) -> QoSProfile:
    """Return the strictest QoS that fits all that is offered, but no laxer than the robot's node asks for.

    So a bag has nothing that the node, for its QoS, would never hear.

    Args:
        offered: by the publishers.
        channel: that a contract observes; None for what it does not.
    """
    reliable = all(each.reliability == ReliabilityPolicy.RELIABLE for each in offered)
    durability = DurabilityPolicy.VOLATILE
    if all(each.durability == DurabilityPolicy.TRANSIENT_LOCAL for each in offered):
        durability = DurabilityPolicy.TRANSIENT_LOCAL
    if channel is not None:
        reliable |= channel.reliability == "reliable"
        durability = observation_qos(channel).durability
    return QoSProfile(
        depth=DEPTH,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=durability,
    )


def _fits(before: QoSProfile, wanted: QoSProfile) -> bool:
    """Whether a subscription gets along with publishers that another would be made for."""
    reliable = before.reliability in (wanted.reliability, ReliabilityPolicy.BEST_EFFORT)
    return reliable and before.durability in (wanted.durability, DurabilityPolicy.VOLATILE)


def to_recorded(qos: QoSProfile) -> Qos:
    """Return a QoS as bags note it, so that what plays them back offers the same."""

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
    """Make the node, and have it hear signals between two messages: the bag is whole however many come."""
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
