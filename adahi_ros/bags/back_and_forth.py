# SPDX-License-Identifier: Apache-2.0
"""Joints in a bag that two publishers measure: their positions jump back and forth as no joint can.

A bag does not have the publisher of a message, nor its sequence number.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adahi_ros.contract.fields import NANOSECONDS, stamp_ns

NOISE = 0.02  # rad or m; a smaller change is no jump
MOST_TURNS = 4 * math.pi  # rad; further from 0, positions are in degrees or in shares of a range
FASTEST = 10.0  # rad/s or m/s, of any joint
RETURNS = 0.2  # of a jump: how near to where it began the next one ends
FEWEST, LEAST_SHARE = (
    5,
    0.005,
)  # jumps of a joint, and their share of its messages; fewer are a fault of a sensor


@dataclass
class _Joint:
    """The messages that name a joint.

    Attributes:
        at: the last position.
        at_ns: its time.
        jump: to it from the one before; 0 where a joint could have moved so.
        messages, jumps: how many.
        largest: of the jumps.
        furthest: from 0.
    """

    at: float
    at_ns: int
    jump: float = 0.0
    messages: int = 1
    jumps: int = 0
    largest: float = 0.0
    furthest: float = 0.0

    def take(self, at: float, at_ns: int) -> bool:
        """Take the next position; return whether it has the time of the last one."""
        change, passed_s = at - self.at, abs(at_ns - self.at_ns) / NANOSECONDS
        jump = change if abs(change) > NOISE + FASTEST * passed_s else 0.0
        returns = jump * self.jump < 0.0 and abs(jump + self.jump) <= RETURNS * abs(jump)
        if returns or (jump and not passed_s):
            self.jumps += 1
            self.largest = max(self.largest, abs(jump))
        self.at, self.at_ns, self.jump = at, at_ns, jump
        self.messages, self.furthest = self.messages + 1, max(self.furthest, abs(at))
        return not passed_s


class BackAndForth:
    """Looks for jumps in the states of commanded joints.

    Attributes:
        repeated: by topic, the messages that have the stamp of the one before.

    Args:
        topics: of the joints, by their names; as the contract names them.
    """

    def __init__(self, topics: Mapping[str, str]) -> None:
        self._topics = topics
        self._joints: dict[str, _Joint] = {}
        self.repeated: Counter[str] = Counter()

    def take(self, topic: str, message: Any, received_ns: int) -> None:
        """Take a message of any topic."""
        if topic not in self._topics.values():
            return
        at_ns = stamp_ns(message.header.stamp) or received_ns
        repeats = False
        for name, position in zip(message.name, message.position, strict=False):
            if self._topics.get(name) != topic:
                continue
            joint = self._joints.get(name)
            if joint is None:
                self._joints[name] = _Joint(float(position), at_ns)
            else:
                repeats |= joint.take(float(position), at_ns)
        self.repeated[topic] += repeats

    def faults(self) -> tuple[str, ...]:
        """Return a line for each joint that two publishers measure."""
        degrees = {self._topics[name] for name, joint in self._joints.items() if joint.furthest > MOST_TURNS}
        noise = {topic: math.degrees(NOISE) if topic in degrees else NOISE for topic in self.repeated}
        return tuple(
            f"{self._topics[name]}: {name} jumps back and forth in {joint.jumps} of {joint.messages} "
            f"messages, by up to {joint.largest:.3g}: two publishers measure it, end one of them"
            for name, joint in self._joints.items()
            if joint.jumps >= max(FEWEST, LEAST_SHARE * joint.messages)
            and joint.largest > noise[self._topics[name]]
        )
