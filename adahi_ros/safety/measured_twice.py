# SPDX-License-Identifier: Apache-2.0
"""Joints that two publishers measure, by the sequence numbers of the messages that name them.

A middleware gives no identity of the publisher with a message, but each publisher counts its messages. Where
two name one joint, these numbers fall again and again. It has no clock and no ROS.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

AGAIN_S = 5.0  # numbers that fall twice within this time belong to two publishers
LOST = 3  # messages at most between one publisher's, if those of another one are between


class MeasuredTwice:
    """Finds the joints of one topic that two publishers measure.

    Two publishers of different joints are normal. A publisher that starts again counts from 1: its numbers
    fall once, and the publishers on the topic change. Numbers that go on from before the fall, twice, belong
    to two publishers whatever changes.

    Args:
        joints: that count.
    """

    def __init__(self, joints: Iterable[str]) -> None:
        self._joints = tuple(joints)
        self._wanted = frozenset(self._joints)
        self._last: dict[str, int] = {}
        self._fell_s: dict[str, float] = {}
        self._before: dict[str, int] = {}  # the number before the last fall
        self._returned_s: dict[str, float] = {}  # when numbers went on from before it
        self._certain: set[str] = set()
        self._suspected: set[str] = set()  # since the publishers changed
        self._found: dict[str, frozenset[bytes]] = {}  # and who published then
        self._publishers: frozenset[bytes] = frozenset()
        self._changed_s = -math.inf

    def received(self, names: Iterable[str], sequence: int, now_s: float) -> bool:
        """Take the names in a message and its sequence number.

        Returns:
            Whether another joint seems to be measured twice, so that they must be compared now.
        """
        before = len(self._suspected) + len(self._certain)
        for name in self._wanted.intersection(names):
            last, high = self._last.get(name, 0), self._before.get(name, 0)
            if sequence <= last:
                if now_s - self._fell_s.get(name, -math.inf) <= AGAIN_S:
                    self._suspected.add(name)
                self._fell_s[name], self._before[name] = now_s, last
            elif last < high < sequence <= high + LOST:
                if now_s - self._returned_s.get(name, -math.inf) <= AGAIN_S:
                    self._certain.add(name)
                self._returned_s[name] = now_s
            self._last[name] = sequence
        return len(self._suspected) + len(self._certain) > before

    def joints_measured_twice(self, publishers: Collection[bytes], now_s: float) -> Sequence[str]:
        """Return the joints that two publishers measure; call it several times a second.

        Args:
            publishers: identities of those on the topic now.
            now_s: the time.
        """
        there = frozenset(publishers)
        if self._publishers - there:
            self._before.clear()  # what goes on now may be alone
        if there != self._publishers:
            self._publishers, self._changed_s = there, now_s
            self._fell_s.clear()
            self._suspected.clear()
        if len(there) < 2:
            self._found.clear()
            self._certain.clear()
            return ()
        settled = now_s - self._changed_s > AGAIN_S
        self._found = {
            name: then for name, then in self._found.items() if then <= there or not settled
        } | dict.fromkeys(self._suspected | self._certain, there)
        self._certain.clear()
        return [name for name in self._joints if name in self._found]
