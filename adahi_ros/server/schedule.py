# SPDX-License-Identifier: Apache-2.0
"""Serves the requests of all wires in batches: one queue, whatever carries them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from adahi_ros.core.registry import argument
from adahi_ros.protocol.request import OK, Reply, Request
from adahi_ros.server.admission import Admission, Refusal
from adahi_ros.server.engine import Batch
from adahi_ros.server.request_queue import (
    LATEST_S,
    SOONEST_S,
    UNSAID_S,
    WAITING_MOST,
    RequestQueue,
    Turn,
    needed_in_s,
)
from adahi_ros.server.service import Served, VerificationService

SIZE = 16
QUOTA_HZ = 100.0
LATE = ("answer", "refuse")
DISMISSING_S = 0.5  # longest time for last replies when the service ends


@dataclass(frozen=True)
class BatchParameters:
    """Batches, and which requests are accepted."""

    size: int = argument(SIZE, "Largest number of robots in a batch; 1 for one by one", 1, 1024)
    wait_s: float = argument(
        0.0,
        "How long a batch waits for more requests, s, from robots that had a reply or waited as the last "
        "batch ended",
        0.0,
        10.0,
    )
    waiting: int = argument(WAITING_MOST, "Requests that may wait; more get STATUS_BUSY", 1, 65536)
    quota_hz: float = argument(
        QUOTA_HZ,
        "Requests per second of one robot, and of a client for each robot that it serves in time; more "
        "get STATUS_BUSY. 0 for any number",
        0.0,
        1e6,
    )
    deadline_s: float = argument(
        UNSAID_S,
        "Deadline of requests that have none, s; the earliest deadline is served first",
        SOONEST_S,
        LATEST_S,
    )
    late: str = argument(
        "answer",
        "What happens to a request after its deadline. answer: a robot without a plan may still "
        "use the reply; refuse: STATUS_BUSY, without computing",
        choices=LATE,
    )


Sender = Callable[["Turn[Any]", Reply, float], object]
"""Sends the reply to a request; gets its turn, and how long its batch was computed, s (0 without one)."""


class BatchSchedule:
    """Queues requests, serves them in batches, and sends the replies; used by one thread at a time.

    Args:
        verification: makes the replies.
        batch: its parameters.
        served: called with log texts of a request: a refusal, and a shared name; either may be empty.
        wake: called, in any thread, when a batch that is verified elsewhere is ready.
        clock: in seconds, only goes forward.
    """

    def __init__(
        self,
        verification: VerificationService,
        batch: BatchParameters,
        served: Callable[[str, str], object],
        wake: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._verification = verification
        self._batch = batch
        self._served, self._wake, self._clock = served, wake, clock
        self._waiting: RequestQueue[Sender] = RequestQueue(batch.waiting)
        self._admission = Admission(batch.quota_hz)
        self._most_waited = 0
        self._all_held = False
        self._finished_s = -math.inf  # the end of the last batch, and how many robots may ask next
        self._expected = batch.size
        self._in_flight: list[tuple[Batch, list[Turn[Sender]], float]] = []
        self._refuses_late = batch.late == "refuse"

    def __len__(self) -> int:
        """Number of requests that wait."""
        return len(self._waiting)

    @property
    def wait_s(self) -> float:
        """Time until there is something to serve, if nothing arrives; infinite if nothing waits."""
        if any(batch.done for batch, _, _ in self._in_flight):
            return 0.0
        if not len(self._waiting) or self._all_held:
            return math.inf
        if len(self._waiting) >= min(self._batch.size, self._expected):
            return 0.0
        since_s = max(self._waiting.oldest_s, self._finished_s)
        return max(0.0, since_s + self._batch.wait_s - self._clock())

    def serve(self) -> bool:
        """Serve the next requests; return whether there were any."""
        if self.wait_s > 0.0:
            return False
        self._finish()
        if self.wait_s > 0.0:
            return True
        if self._refuses_late:
            for late in self._waiting.take_late(self._clock()):
                self._refuse(late, self._admission.late(len(self._waiting)))
        in_flight = [batch for batch, _, _ in self._in_flight]
        turns = self._waiting.take(self._batch.size, *self._verification.turns(in_flight))
        self._all_held = not turns
        self._most_waited = max(self._most_waited, len(self._waiting))
        if turns:
            self._begin(turns)
        self._finish()  # what is verified in this process is ready by now
        return True

    def _begin(self, turns: list[Turn[Sender]]) -> None:
        """Start verifying requests."""
        started_s = self._clock()
        until_s = started_s + LATEST_S
        if self._refuses_late:
            unsaid_s = self._batch.deadline_s
            until_s = max(turn.came_s + needed_in_s(turn.request, unsaid_s) for turn in turns)
        for places, batch in self._verification.begin([turn.request for turn in turns], until_s):
            self._in_flight.append((batch, [turns[place] for place in places], started_s))
            batch.when_done(self._wake)

    def _finish(self) -> None:
        """Reply to the requests that have been verified."""
        for each in [each for each in self._in_flight if each[0].done]:
            batch, turns, started_s = each
            side_by_side = len(self._in_flight)
            self._in_flight.remove(each)
            self._all_held = False
            # Robots that ask again at once would otherwise miss the next batch, which has only those that
            # came too late for this one, and so on for ever.
            self._expected = len(turns) + len(self._waiting)
            now_s = self._finished_s = self._clock()
            replies = self._verification.finish(batch, now_s)
            took_s = now_s - started_s
            self._verification.spent(len(turns), took_s)
            self._admission.served([turn.client for turn in turns], took_s / side_by_side, now_s)
            for turn, served in zip(turns, replies, strict=True):
                # A sender may claim to have much time; a robot without a plan claims to have none.
                late_s = min(max(turn.due_s, turn.came_s + UNSAID_S / 4), turn.came_s + UNSAID_S)
                in_time = served.reply.status == OK and now_s <= late_s
                self._admission.replied(turn.client, turn.request.robot_id, in_time, now_s)
                self._reply(turn, served, took_s)

    def most_waited(self) -> int:
        """Return the longest queue since the last call."""
        most, self._most_waited = self._most_waited, 0
        return most

    def dismiss(self) -> None:
        """Reply to all waiting requests that the service ends.

        Clients cannot delay the end: the number of replies is bounded, and sending stops after
        `DISMISSING_S`.
        """
        end_s = self._clock() + DISMISSING_S
        for turn in self._unserved():
            if self._clock() < end_s:
                self._send(turn, self._verification.dismissed(turn.request))
        self._waiting = RequestQueue()
        self._in_flight.clear()

    def _unserved(self) -> Iterator[Turn[Sender]]:
        """Return the requests that have no reply yet."""
        yield from tuple(self._waiting)
        for _, turns, _ in self._in_flight:
            yield from turns

    def receive(self, turn: Turn[Sender], read: Callable[[], Request]) -> None:
        """Queue a request that arrived, or refuse it: each one gets a reply.

        Args:
            turn: with the part of the request that replies and queues need.
            read: returns the whole request; called only if the quota allows it.
        """
        refusal = self._admission.over_quota(turn.request.robot_id, turn.came_s, turn.client)
        if refusal is None:
            self._queue(turn, read())
        else:
            self._refuse(turn, refusal)

    def _queue(self, turn: Turn[Sender], request: Request) -> None:
        """Queue a request within its quota, or refuse it because the queue is full."""
        due_s = self._batch.deadline_s, self._admission.used_s(turn.client, turn.came_s)
        turn = Turn(request, turn.sender, turn.came_s, turn.client).with_deadline(*due_s)
        if not self._waiting.has_room(request.robot_id):  # the client with the most requests loses one
            displaced = self._waiting.displace(turn.client)
            if displaced is not None:
                self._refuse(displaced, self._admission.full(len(self._waiting)))
        if not self._waiting.has_room(request.robot_id, turn.image_bytes):
            self._refuse(turn, self._admission.full(len(self._waiting)))
            return
        self._all_held = False
        for overtaken in self._waiting.add(turn):
            self._send(overtaken, self._verification.overtaken(overtaken.request))

    def _refuse(self, turn: Turn[Sender], refusal: Refusal) -> None:
        self._send(turn, self._verification.busy(turn.request, refusal))

    def _reply(self, turn: Turn[Sender], served: Served, took_s: float = 0.0) -> None:
        self._send(turn, served.reply, took_s)
        if served.refusal or served.shared:
            self._served(served.refusal, served.shared)

    def _send(self, turn: Turn[Sender], reply: Reply, took_s: float = 0.0) -> None:
        turn.sender(turn, reply, took_s)
