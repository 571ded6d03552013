# SPDX-License-Identifier: Apache-2.0
"""What becomes a bag: which topics, how they are subscribed, what is left out, and how it ends."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rosbags.interfaces import Qos, QosDurability, QosReliability

from adahi_ros.bags.bag_writer import BagWriter
from adahi_ros.bags.definitions import BagError, how_to_recover
from adahi_ros.bags.recorded_topics import (
    BESIDE_A_RUN,
    DIAGNOSTICS,
    DRAFT_STATUS,
    INSTRUCTION,
    Kinds,
    topics_of,
)
from adahi_ros.contract.contract import Channel, Contract
from adahi_ros.contract.fields import NANOSECONDS

MOMENT_S = 1.0  # a clock that goes back further has begun anew
AHEAD_S = 60.0  # a stamp that lies further in the future is of another clock
STAMP = struct.Struct("<iI"), struct.Struct(">iI")  # s and ns of a header, which follow the four bytes of CDR


class Listening(NamedTuple):
    """What a subscription asks of publishers: that they send again what was lost, and what they kept."""

    reliable: bool
    kept: bool

    def fits(self, wanted: Listening) -> bool:
        """Whether it gets along with the publishers that another would be made for."""
        return self.reliable <= wanted.reliable and self.kept <= wanted.kept


def fitting(offered: Sequence[Qos], channel: Channel | None = None) -> Listening:
    """Return the most that all publishers offer, but no less than the robot's node asks for.

    So a bag has nothing that the node, for its QoS, would never hear.

    Args:
        offered: by the publishers.
        channel: that a contract observes; None for what it does not.
    """
    reliable = all(each.reliability == QosReliability.RELIABLE for each in offered)
    if channel is None:
        return Listening(reliable, all(each.durability == QosDurability.TRANSIENT_LOCAL for each in offered))
    return Listening(reliable or channel.reliability == "reliable", channel.durability == "transient_local")


def recorded_kinds(contract: Contract) -> Kinds:
    """Return the topics that are recorded where somebody publishes them, with their types."""
    return {**DRAFT_STATUS, **BESIDE_A_RUN, **DIAGNOSTICS, **INSTRUCTION, **topics_of(contract)}


def stamp_of(data: bytes | memoryview) -> int | None:
    """Return the stamp, ns, of a message in CDR that begins with a header; None where it is too short."""
    order = STAMP[data[1:2] == b"\0"]
    if len(data) < 4 + order.size:
        return None
    seconds, nanoseconds = order.unpack_from(data, 4)
    return seconds * NANOSECONDS + nanoseconds


class Recording:
    """A bag, from the first publisher to the last word about it.

    It is over where the bag cannot be written any more, and where the clock begins anew: a bag has one time,
    by which its readers sort. What comes after that is counted, and left out.

    Args:
        contract: what must come.
        names: full names of the topics, by what `recorded_kinds` calls them.
        bag: to write.

    Attributes:
        over: as above.
    """

    def __init__(self, contract: Contract, names: Mapping[str, str], bag: BagWriter) -> None:
        self._observed = contract.channels
        self._kinds = recorded_kinds(contract)
        self._names = names
        self._needed = {topic: names[topic] for topic in topics_of(contract)}
        self._stamped = {each.channel.topic for each in contract.observed if each.align.timeline == "header"}
        self._ahead_s: dict[str, float] = {}
        self._bag = bag
        self._subscribed: dict[str, Listening] = {}
        self._strangers: defaultdict[str, set[str]] = defaultdict(set)
        self._fault = ""
        self._left_out = 0

    @property
    def over(self) -> bool:
        return bool(self._fault or self._left_out)

    def subscription(self, topic: str, publishers: Sequence[tuple[str, Qos]]) -> Listening | None:
        """Return how to subscribe a topic, from now on; None where what there is will do.

        Args:
            topic: as `recorded_kinds` calls it.
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
        self._subscribed[topic] = wanted
        return wanted

    def strangers(self, topic: str, publishers: Sequence[tuple[str, Qos]]) -> list[str]:
        """Say of what DDS does not bring here, for its type, that it is not recorded: once of each type."""
        name, kind = self._names[topic], self._kinds[topic]
        new = sorted({other for other, _ in publishers} - {kind} - self._strangers[topic])
        self._strangers[topic].update(new)
        return [f"{name}: somebody publishes {other}, expected {kind}; not recorded" for other in new]

    def write(self, topic: str, data: bytes | memoryview, now_ns: int) -> str:
        """Take a message, serialized as CDR.

        Returns:
            Why the recording is over with it, for people, where the clock has begun anew; else nothing.
        """
        if self._fault:
            return ""
        back_s = (self._bag.newest_ns - now_ns) / NANOSECONDS
        begun_anew = back_s > MOMENT_S and not self._left_out
        if begun_anew or self._left_out:
            self._left_out += 1
        else:
            with self._noting_faults():
                self._bag.write(self._names[topic], data, now_ns)
            stamp_ns = stamp_of(data) if topic in self._stamped else None
            if stamp_ns is not None:
                self._ahead_s[topic] = (stamp_ns - now_ns) / NANOSECONDS
        return f"the clock went back by {back_s:.1f} s: the bag ends where it did" if begun_anew else ""

    def flush(self) -> None:
        """Put on the disk what has come."""
        with self._noting_faults():
            self._bag.flush()

    def close(self) -> None:
        """Make the bag whole, unless it cannot be written any more."""
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
        """What must come, and where it goes, for people."""
        return f"waiting for {', '.join(self._needed)}; bag {self._bag.path}"

    def progress(self, passed_s: float) -> str:
        """Say what has come in so many seconds."""
        counts = ", ".join(f"{name} {count}" for name, count in self._bag.counts.items())
        return f"{passed_s:.0f} s: {counts or 'nobody publishes any of the topics'}"

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
        """What is in the bag, once that is closed; nothing where it could not be written."""
        counts = self._bag.counts
        made = f"{self._bag.path}: {sum(counts.values())} messages of {len(counts)} topics"
        return "" if self._fault else made

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the bag."""
        if self._fault:
            return [f"{self._fault}; {how_to_recover(self._bag.path)}"]
        path, found = self._bag.path, []
        missing = [topic for topic, name in self._needed.items() if not self._bag.counts[name]]
        if not self._came:
            names = ", ".join(self._needed.values())
            found.append(f"{path}: nothing came of the contract; expected somebody to publish {names}")
        elif missing:
            found.append(f"{path}: nothing came on {', '.join(missing)}")
        if self.other_clock:
            found.append(f"{path}: {self.other_clock}")
        if self._left_out:
            found.append(
                f"{path}: ends where the clock began anew; {self._left_out} messages that came later are not "
                "in it: record them as a bag of their own"
            )
        return found

    @property
    def _came(self) -> bool:
        """Whether anything came that the contract names."""
        return any(self._bag.counts[name] for name in self._needed.values())

    @property
    def exit_code(self) -> int:
        """1 where nothing of the contract came, or something that came is not in the bag."""
        return int(self.over or not self._came)
