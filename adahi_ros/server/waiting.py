"""Requests that wait for their turn: a robot's newer one overtakes those before it, which then cost nothing.

A robot that has asked about a later step has no use for a reply about an earlier one: its command went out
without it, or the plan that it would bring is overtaken by the newer one. What is overtaken is dropped before
it is verified, as PipeInfer drops speculative runs that are void (Butler et al., arXiv 2407.11798).
"""

from __future__ import annotations

from typing import Generic, TypeVar

from adahi_ros.server.service import Heading

T = TypeVar("T")


class Waiting(Generic[T]):
    """Requests in the order in which they are served.

    A newer request takes the place of the one that it overtakes: who asks often waits no longer, nor is
    anybody else served later.

    Args:
        most: how many may wait.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._turns: list[tuple[Heading, T]] = []

    def __len__(self) -> int:
        return len(self._turns)

    @property
    def full(self) -> bool:
        """No other may be added before the next is served."""
        return len(self) >= self._most

    def add(self, heading: Heading, request: T) -> list[T]:
        """Have a request wait; return those that are overtaken by that, or it itself where it is.

        One that comes again overtakes nothing: the robot waits for the reply to any of its copies.

        Args:
            heading: of the request.
            request: to be returned by `next`, or by this.
        """
        alike = [place for place, (other, _) in enumerate(self._turns) if _of_one_episode(heading, other)]
        if any(heading.step < self._turns[place][0].step for place in alike):
            return [request]
        before = [place for place in alike if self._turns[place][0].step < heading.step]
        overtaken = [self._turns[place][1] for place in before]
        if before:
            self._turns[before[0]] = heading, request
        else:
            self._turns.append((heading, request))
        for place in reversed(before[1:]):
            del self._turns[place]
        return overtaken

    def next(self) -> T | None:
        """Take the request whose turn it is; None where none waits."""
        return self._turns.pop(0)[1] if self._turns else None


def _of_one_episode(one: Heading, other: Heading) -> bool:
    """Whether one start of one robot asks, and about one episode: of others nobody knows which is newer."""
    return (one.robot_id, one.session, one.episode) == (other.robot_id, other.session, other.episode)
