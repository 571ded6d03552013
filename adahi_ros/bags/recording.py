# SPDX-License-Identifier: Apache-2.0
"""Recording of a bag: its topics, their subscriptions, the messages left out, and its end."""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rosbags.interfaces import Qos, QosDurability, QosReliability

from adahi_ros.bags.bag_writer import BagWriter, UnwrittenBag
from adahi_ros.bags.definitions import BagError, how_to_recover, types_of
from adahi_ros.bags.recorded_topics import (
    ASSIGNMENTS,
    BESIDE_A_RUN,
    DIAGNOSTICS,
    DRAFT_STATUS,
    INSTRUCTION,
    Kinds,
    topics_of,
)
from adahi_ros.contract.contract import Channel, Contract
from adahi_ros.contract.fields import NANOSECONDS

MOMENT_S = 1.0  # a clock that goes back further was reset
AHEAD_S = 60.0  # a stamp further in the future is of another clock
HINT = "check the names, and --namespace where the robot has one"
STAMP = struct.Struct("<iI"), struct.Struct(">iI")  # s and ns of a header, which follow the four bytes of CDR
MEASURED_S = 2.0  # of a raw topic, before its rate is known
(INSTRUCTION_TOPIC,) = INSTRUCTION


class Listening(NamedTuple):
    """Reliability and durability of a subscription: resent lost messages, and stored messages."""

    reliable: bool
    kept: bool

    def fits(self, wanted: Listening) -> bool:
        """Whether it is compatible with the publishers that another one fits."""
        return self.reliable <= wanted.reliable and self.kept <= wanted.kept


def fitting(offered: Sequence[Qos], channel: Channel | None = None) -> Listening:
    """Return the strongest QoS that all publishers offer, but at least that of the robot's node.

    So a bag has no messages that the node never receives for its QoS.

    Args:
        offered: by the publishers.
        channel: of a contract's observation; None for other topics.
    """
    reliable = all(each.reliability == QosReliability.RELIABLE for each in offered)
    if channel is None:
        return Listening(reliable, all(each.durability == QosDurability.TRANSIENT_LOCAL for each in offered))
    return Listening(reliable or channel.reliability == "reliable", channel.durability == "transient_local")


def recorded_kinds(contract: Contract) -> Kinds:
    """Return the topics that are recorded where they are published, with their types."""
    beside = {**BESIDE_A_RUN, **DIAGNOSTICS, **INSTRUCTION, **ASSIGNMENTS}
    return {**DRAFT_STATUS, **beside, **topics_of(contract)}


def stamp_of(data: bytes | memoryview) -> int | None:
    """Return the stamp, ns, of a message in CDR that begins with a header; None where it is too short."""
    order = STAMP[data[1:2] == b"\0"]
    if len(data) < 4 + order.size:
        return None
    seconds, nanoseconds = order.unpack_from(data, 4)
    return seconds * NANOSECONDS + nanoseconds


class RawImages:
    """Measures topics of raw images, for a warning: a camera fills a disk within an hour."""

    def __init__(self) -> None:
        self._began_ns: dict[str, int] = {}
        self._bytes: Counter[str] = Counter()

    def take(self, name: str, size: int, now_ns: int) -> str:
        """Take a message; return the warning when its topic has been measured, else nothing."""
        passed_s = (now_ns - self._began_ns.setdefault(name, now_ns)) / NANOSECONDS
        if passed_s < MEASURED_S:
            self._bytes[name] += size
        if passed_s < MEASURED_S or not self._bytes[name]:
            return ""
        size = self._bytes.pop(name)
        return (
            f"{name}: raw images, {size * 60e-6 / passed_s:.0f} MB a minute; for JPEG, name the topic "
            f"{name}/compressed of sensor_msgs/msg/CompressedImage in the contract, which image_transport "
            "publishes"
        )


class Recording:
    """A bag, from the first publisher to the final report.

    It ends where the bag cannot be written any more, and where the clock is reset: a bag has one time,
    by which readers sort. Later messages are counted, and left out.

    Args:
        contract: the required topics.
        names: full names of the topics, by their names in `recorded_kinds`.
        bag: to write.

    Attributes:
        over: whether it has ended.
    """

    def __init__(self, contract: Contract, names: Mapping[str, str], bag: BagWriter | UnwrittenBag) -> None:
        self._contract = contract
        self._observed = contract.channels
        self._kinds = recorded_kinds(contract)
        self._names = names
        self._needed = {topic: names[topic] for topic in topics_of(contract)}
        self._stamped = {each.channel.topic for each in contract.observed if each.align.timeline == "header"}
        self._ahead_s: dict[str, float] = {}
        self._bag = bag
        self._subscribed: dict[str, Listening] = {}
        self._offered: dict[str, Sequence[Qos]] = {}
        self._kept: dict[str, bytes | memoryview] = {}
        self._other_types: defaultdict[str, set[str]] = defaultdict(set)
        self._fault = ""
        self._left_out = 0

    @property
    def over(self) -> bool:
        return bool(self._fault or self._left_out)

    def subscription(self, topic: str, publishers: Sequence[tuple[str, Qos]]) -> Listening | None:
        """Return how to subscribe to a topic from now on; None where the present subscription suffices.

        Args:
            topic: as in `recorded_kinds`.
            publishers: type and QoS of each.
        """
        kind = self._kinds[topic]
        offered = [qos for other, qos in publishers if other == kind]
        if not offered:
            return None
        wanted = fitting(offered, self._observed.get(topic))
        if topic in self._subscribed and self._subscribed[topic].fits(wanted):
            return None
        with self._noting_faults():
            self._bag.add(self._names[topic], kind, offered)
        self._subscribed[topic], self._offered[topic] = wanted, offered
        return wanted

    def following(self, bag: BagWriter | UnwrittenBag, now_ns: int) -> Recording:
        """Return the recording of the next bag, by the same subscriptions.

        It begins with the newest latched messages, which arrive once per subscription, and the instruction.
        """
        made = Recording(self._contract, self._names, bag)
        made._subscribed, made._offered, made._kept = self._subscribed, self._offered, self._kept
        made._other_types = self._other_types
        with made._noting_faults():
            for topic, offered in self._offered.items():
                bag.add(self._names[topic], self._kinds[topic], offered)
        for topic, data in list(self._kept.items()):
            made.write(topic, data, now_ns)
        return made

    def instruct(self, instruction: str) -> None:
        """Take an instruction for the bags that follow, until the topic has another."""
        kind = self._kinds[INSTRUCTION_TOPIC]
        types = types_of([kind])
        self._offered.setdefault(INSTRUCTION_TOPIC, [])
        self._kept[INSTRUCTION_TOPIC] = types.serialize_cdr(types.types[kind](data=instruction), kind)

    def other_types(self, topic: str, publishers: Sequence[tuple[str, Qos]]) -> list[str]:
        """Return messages about publishers of another type, which are not recorded: once per type."""
        name, kind = self._names[topic], self._kinds[topic]
        new = sorted({other for other, _ in publishers} - {kind} - self._other_types[topic])
        self._other_types[topic].update(new)
        return [f"{name}: is published as {other}, expected {kind}; not recorded" for other in new]

    def write(self, topic: str, data: bytes | memoryview, now_ns: int) -> str:
        """Take a message, serialized as CDR.

        Returns:
            The reason, if the clock was reset and the recording ends; else nothing.
        """
        if topic == INSTRUCTION_TOPIC or self._subscribed[topic].kept:
            self._kept[topic] = data
        if self._fault:
            return ""
        back_s = (self._bag.newest_ns - now_ns) / NANOSECONDS
        restarted = back_s > MOMENT_S and not self._left_out
        if restarted or self._left_out:
            self._left_out += 1
        else:
            with self._noting_faults():
                self._bag.write(self._names[topic], data, now_ns)
            stamp_ns = stamp_of(data) if topic in self._stamped else None
            if stamp_ns is not None:
                self._ahead_s[topic] = (stamp_ns - now_ns) / NANOSECONDS
        return f"the clock went back by {back_s:.1f} s: the bag ends where it did" if restarted else ""

    def flush(self) -> None:
        """Write all messages to the disk."""
        with self._noting_faults():
            self._bag.flush()

    def close(self) -> None:
        """Close the bag, unless it cannot be written any more."""
        if not self._fault:
            with self._noting_faults():
                self._bag.close()

    @contextmanager
    def _noting_faults(self) -> Iterator[None]:
        try:
            yield
        except BagError as error:
            self._fault = self._fault or str(error)

    @property
    def waiting_for(self) -> str:
        """The required topics, and the bag, as text."""
        return f"waiting for {', '.join(self._needed)}; bag {self._bag.path}"

    def progress(self, passed_s: float) -> str:
        """Return the number of messages after this many seconds."""
        counts = ", ".join(f"{name} {count}" for name, count in self._bag.counts.items())
        return f"{passed_s:.0f} s: {counts or 'none of the topics is published'}"

    @property
    def other_clock(self) -> str:
        """Warn where the newest observations have stamps far in the future: no reader can use them."""
        ahead_s = {topic: by_s for topic, by_s in self._ahead_s.items() if by_s > AHEAD_S}
        if not ahead_s:
            return ""
        return (
            f"{', '.join(ahead_s)}: stamps lie {max(ahead_s.values()):.0f} s in the future, so no "
            "observation can be used; record with --use-sim-time only where something publishes /clock, "
            "and synchronise the clocks of the machines"
        )

    @property
    def summary(self) -> str:
        """The bag's content, once it is closed; nothing where it could not be written."""
        counts = self._bag.counts
        made = f"{self._bag.path}: {sum(counts.values())} messages of {len(counts)} topics"
        return "" if self._fault else made

    @property
    def warnings(self) -> list[str]:
        """The bag's faults."""
        if self._fault:
            return [f"{self._fault}; {how_to_recover(self._bag.path)}"]
        path, found = self._bag.path, []
        missing = [topic for topic, name in self._needed.items() if not self._bag.counts[name]]
        if not self._came:
            names = ", ".join(self._needed.values())
            found.append(f"{path}: no messages of the contract; expected publishers of {names}; {HINT}")
        observed = [self._names[topic] for topic in missing if topic in self._observed]
        if self._came and observed:
            found.append(f"{path}: no messages on {', '.join(observed)}; {HINT}")
        commanded = [self._names[topic] for topic in missing if topic not in self._observed]
        if self._came and commanded:
            found.append(f"{path}: no messages on {', '.join(commanded)}; right if nothing commanded it")
        if self.other_clock:
            found.append(f"{path}: {self.other_clock}")
        if self._left_out:
            found.append(
                f"{path}: ends where the clock was reset; {self._left_out} later messages are not "
                "in it: record them as a separate bag"
            )
        return found

    @property
    def _came(self) -> bool:
        """Whether any message of the contract arrived."""
        return any(self._bag.counts[name] for name in self._needed.values())

    @property
    def exit_code(self) -> int:
        """1 where no message of the contract arrived, or messages are missing in the bag."""
        return int(self.over or not self._came)
