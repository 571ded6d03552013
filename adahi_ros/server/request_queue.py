# SPDX-License-Identifier: Apache-2.0
"""The queue of requests: earliest deadline first, each robot at most once in a batch.

The order is earliest deadline first (Liu and Layland, 1973). A request for a later step makes a robot's
earlier requests useless. These are dropped before they are verified, as PipeInfer drops void speculative runs
(Butler et al., arXiv 2407.11798).

If more requests wait than fit in a batch, clients share it: the first request of each client comes before the
second of any. Otherwise a client with many names could fill the queue of a slow target.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Generic, TypeVar

from adahi_ros.protocol.request import Request

T = TypeVar("T")

WAITING_MOST = 256  # requests of all robots
WAITING_PER_ROBOT = 4  # requests of one robot: of several episodes, and copies of one request
WAITING_BYTES = 2**28  # images of all waiting requests
UNSAID_S = 1.0  # deadline of a request that has none
SOONEST_S, LATEST_S = 0.01, 5.0  # bounds of the deadline in a request


@dataclass(frozen=True, eq=False)
class Turn(Generic[T]):
    """A request that waits.

    Attributes:
        request: the request.
        sender: where its reply goes, in the form that the caller uses.
        came_s: when it arrived.
        client: that sent it; None if unknown.
        due_s: when its reply is needed.
    """

    request: Request
    sender: T
    came_s: float
    client: Hashable = None
    due_s: float = math.inf

    @property
    def image_bytes(self) -> int:
        """Size of its images."""
        return sum(map(len, self.request.window.rows.images))

    def with_deadline(self, unsaid_s: float = UNSAID_S, used_s: float = 0.0) -> Turn[T]:
        """Return it with its deadline.

        The deadline is at least `used_s` away, the recent computing time of its client for each robot.
        """
        within_s = min(LATEST_S, max(used_s, needed_in_s(self.request, unsaid_s)))
        return replace(self, due_s=self.came_s + within_s)


def needed_in_s(request: Request, unsaid_s: float = UNSAID_S) -> float:
    """Return how soon a reply is needed, within `SOONEST_S` and `LATEST_S`.

    Args:
        request: the request.
        unsaid_s: deadline of a request that has none.
    """
    return min(max(request.needed_in_s or unsaid_s, SOONEST_S), LATEST_S)


class RequestQueue(Generic[T]):
    """Requests in the order in which they are served.

    Args:
        most: largest number of waiting requests.
        per_robot: largest number of one robot; a further one replaces its oldest.
    """

    def __init__(self, most: int = WAITING_MOST, per_robot: int = WAITING_PER_ROBOT) -> None:
        self._most = most
        self._per_robot = per_robot
        self._turns: dict[str, list[Turn[T]]] = {}  # of each robot, the oldest first
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Turn[T]]:
        """Iterate in no particular order."""
        return (turn for turns in self._turns.values() for turn in turns)

    @property
    def oldest_s(self) -> float:
        """Arrival of the request that waits longest; infinite if none waits."""
        return min((turns[0].came_s for turns in self._turns.values()), default=float("inf"))

    def has_room(self, robot_id: str, image_bytes: int = 0) -> bool:
        """Whether another request of a robot may wait; one without images may replace the robot's own."""
        if image_bytes and image_bytes + sum(each.image_bytes for each in self) > WAITING_BYTES:
            return False
        return self._count < self._most or robot_id in self._turns

    def displace(self, client: Hashable) -> Turn[T] | None:
        """Remove a request to make room for this client: the last due of the client with the most.

        Returns:
            None if no other client has at least two more than this one.
        """
        counts = Counter(turn.client for turn in self)
        ((most, count),) = counts.most_common(1) or [(client, 0)]
        if count < counts[client] + 2:
            return None
        last = max((turn for turn in self if turn.client == most), key=lambda turn: turn.due_s)
        return self._without([last])[0]

    def add(self, turn: Turn[T]) -> list[Turn[T]]:
        """Add a request; return those that it overtakes, or itself if a later one waits already.

        It inherits the deadlines of those that it overtakes, so that frequent requests do not delay a robot.
        A copy overtakes nothing: the robot waits for the reply to any copy.
        """
        request = turn.request
        turns = self._turns.get(request.robot_id, [])
        alike = [each for each in turns if _of_one_episode(request, each.request)]
        if any(request.step < each.request.step for each in alike):
            return [turn]
        overtaken = [each for each in alike if each.request.step < request.step]
        turn = replace(turn, due_s=min([turn.due_s, *(each.due_s for each in overtaken)]))
        kept = [each for each in turns if each not in overtaken]
        overtaken += kept[: max(0, len(kept) + 1 - self._per_robot)]
        kept = kept[max(0, len(kept) + 1 - self._per_robot) :]
        self._turns[request.robot_id] = [*kept, turn]
        self._count += 1 + len(kept) - len(turns)
        return overtaken

    def take(
        self,
        most: int,
        held: Callable[[Request], bool] = lambda request: False,
        room: Callable[[Request], bool] = lambda request: True,
    ) -> list[Turn[T]]:
        """Take the next requests: earliest deadline first, one of each robot.

        Args:
            most: largest number of requests.
            held: whether a request must keep waiting.
            room: takes a place for a request; false where none is left.
        """
        free = [[each for each in turns if not held(each.request)] for turns in self._turns.values()]
        first = [min(turns, key=lambda turn: turn.due_s) for turns in free if turns]
        of_client: Counter[Hashable] = Counter()
        places: list[tuple[int, Turn[T]]] = []
        for turn in sorted(first, key=lambda turn: turn.due_s):
            client = turn.request.robot_id if turn.client is None else turn.client
            places.append((of_client[client], turn))
            of_client[client] += 1
        places.sort(key=lambda place: place[0])  # stable: keeps the order of deadlines
        fitting = (turn for _, turn in places if room(turn.request))
        return self._without(list(islice(fitting, most)))

    def take_late(self, now_s: float) -> list[Turn[T]]:
        """Take the requests with a deadline before now."""
        return self._without([turn for turn in self if turn.due_s <= now_s])

    def _without(self, taken: list[Turn[T]]) -> list[Turn[T]]:
        """Remove requests, and return them."""
        for turn in taken:
            turns = self._turns[turn.request.robot_id]
            turns.remove(turn)
            if not turns:
                del self._turns[turn.request.robot_id]
        self._count -= len(taken)
        return taken


def _of_one_episode(one: Request, other: Request) -> bool:
    """Whether two requests have one session and episode; otherwise their order is unknown."""
    return (one.session, one.episode) == (other.session, other.episode)
