# SPDX-License-Identifier: Apache-2.0
"""Decides which requests are accepted: by a quota per robot, and by the server's capacity.

A client may send for several robots, and has the quota of each that it serves in time. A robot counts for it
only after a while, so that fresh names give no quota; and not while its replies are late and there are other
clients, so that the quota shrinks under overload, for their sake.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Hashable, Sequence
from typing import NamedTuple

BURST_S = 0.5  # this much of the quota may arrive at once
ROBOTS_KEPT = 4096  # robots with a counted quota; beyond that the least recent is dropped
SMOOTHING = 0.1  # weight of the newest time per request
FIRST_GUESS_S = 0.01  # time per request before the first
RETRY_MOST_S = 2.0
RECENT_S = 1.0  # time constant of a sender's used computing time
SETTLED_S = 0.5  # from a robot's first reply until it counts for its client
ABSENT_S = 5.0  # a robot without a reply for this time is forgotten


class Refusal(NamedTuple):
    """Reason why a request is not accepted.

    Attributes:
        why: for people.
        retry_after_s: when to send the next request.
        repeated: the robot got this refusal before, and did not wait. It gets no further reply, because
            replies to a flood would delay the other robots.
    """

    why: str
    retry_after_s: float
    repeated: bool = False


class Admission:
    """Keeps a token bucket for each robot's name and each sender, and measures the time per request.

    Args:
        quota_hz: requests per second of one robot, and of a sender for each of its robots; 0 for any number.
    """

    def __init__(self, quota_hz: float) -> None:
        self._quota_hz = quota_hz
        # Tokens, when they were counted, and until when the robot should wait.
        self._buckets: OrderedDict[Hashable, tuple[float, float, float]] = OrderedDict()
        self._used: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()  # seconds, and when counted
        # Of each sender and name: first and last reply, and whether it counts; the least recent first.
        self._robots: OrderedDict[tuple[Hashable, str], tuple[float, float, bool]] = OrderedDict()
        self._counts: Counter[Hashable] = Counter()  # of each sender the robots that count
        self._each_s = FIRST_GUESS_S

    def over_quota(self, robot_id: str, now_s: float, sender: Hashable = None) -> Refusal | None:
        """Count a request; refuse it if its robot or its sender has sent too many.

        Args:
            robot_id: name of the robot, which the sender chooses.
            now_s: monotonic time.
            sender: the client as the middleware identifies it; None or the name if it does not.
        """
        if not self._quota_hz:
            return None
        refusal = None
        if sender not in (None, robot_id):  # first, so that it does not use up the quota of other names
            rate_hz = self._quota_hz * self.robots(sender, now_s)
            refusal = self._over(("sender", sender), "sender", rate_hz, now_s)
        return refusal or self._over(robot_id, "robot_id", self._quota_hz, now_s)

    def _over(self, key: Hashable, kind: str, rate_hz: float, now_s: float) -> Refusal | None:
        """Count a request of a robot or a sender that may send so many per second."""
        burst = max(1.0, BURST_S * rate_hz)
        tokens, since_s, until_s = self._buckets.get(key, (burst, now_s, now_s))
        tokens = min(burst, tokens + rate_hz * (now_s - since_s))
        refused, warned = tokens < 1.0, now_s < until_s
        retry_s = (1.0 - tokens) / rate_hz
        if refused and not warned:
            until_s = now_s + retry_s
        self._buckets[key] = (tokens if refused else tokens - 1.0), now_s, until_s
        self._buckets.move_to_end(key)
        if len(self._buckets) > ROBOTS_KEPT:
            self._buckets.popitem(last=False)
        if not refused:
            return None
        why = f"{kind}: too many requests, must be at most {rate_hz:g} per second"
        return Refusal(why, retry_s, warned)

    def full(self, waiting: int) -> Refusal:
        """Refuse a request because the queue is full; it may be sent again when half of it is served."""
        return Refusal(f"the queue is full: {waiting} wait", min(RETRY_MOST_S, waiting * self._each_s / 2))

    def late(self, waiting: int) -> Refusal:
        """Refuse a request that is past its deadline."""
        retry_s = min(RETRY_MOST_S, max(FIRST_GUESS_S, waiting * self._each_s / 2))
        return Refusal("its reply was needed before its turn came", retry_s)

    def robots(self, sender: Hashable, now_s: float) -> int:
        """Return how many robots a sender serves in time; at least 1."""
        while self._robots and (
            len(self._robots) > ROBOTS_KEPT or next(iter(self._robots.values()))[1] < now_s - ABSENT_S
        ):
            self._forget(next(iter(self._robots)))
        return max(1, self._counts[sender])

    def replied(self, sender: Hashable, robot_id: str, in_time: bool, now_s: float) -> None:
        """Note a reply, after `served`.

        Args:
            sender: of the request.
            robot_id: its robot.
            in_time: the request was verified, and the reply came by its deadline.
            now_s: monotonic time.
        """
        first_s = self._forget((sender, robot_id), now_s)
        other_s = next((at_s for it, (_, at_s) in reversed(self._used.items()) if it != sender), -math.inf)
        counts = now_s - first_s >= SETTLED_S and (in_time or now_s - other_s > RECENT_S)
        self._robots[sender, robot_id] = first_s, now_s, counts
        self._counts[sender] += counts

    def _forget(self, key: tuple[Hashable, str], now_s: float = 0.0) -> float:
        """Forget a robot of a sender; return when it got its first reply, now if it is unknown."""
        first_s, _, counts = self._robots.pop(key, (now_s, now_s, False))
        self._counts[key[0]] -= counts
        if not self._counts[key[0]]:
            del self._counts[key[0]]
        return first_s

    def served(self, senders: Sequence[Hashable], took_s: float, now_s: float) -> None:
        """Count how long a batch of requests took.

        Args:
            senders: of each request.
            took_s: for the whole batch.
            now_s: monotonic time.
        """
        each_s = took_s / len(senders)
        self._each_s += SMOOTHING * (each_s - self._each_s)
        for sender in senders:
            self._used[sender] = self.used_s(sender, now_s) * self.robots(sender, now_s) + each_s, now_s
            self._used.move_to_end(sender)
            if len(self._used) > ROBOTS_KEPT:
                self._used.popitem(last=False)

    def used_s(self, sender: Hashable, now_s: float) -> float:
        """Return how much computing a sender used recently for each of its robots, in seconds."""
        used_s, since_s = self._used.get(sender, (0.0, now_s))
        return used_s * math.exp((since_s - now_s) / RECENT_S) / self.robots(sender, now_s)
