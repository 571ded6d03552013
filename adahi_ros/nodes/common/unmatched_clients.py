# SPDX-License-Identifier: Apache-2.0
"""Which clients a reply does not reach, so that each of them costs the others little."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

T = TypeVar("T")

SLOW_S = 0.08  # a send that takes longer waited for a reader that does not match
FIRST_PAUSE_S, GROWTH, PAUSE_MOST_S = 1.0, 4.0, 60.0
CLIENTS_KEPT = 4096  # of each kind; the oldest is forgotten first
CREDIT_S = 0.3  # sends to clients that no reply has reached may block for so long at once
CREDIT_PER_S = 0.1  # and for this share of the time in the long run


class Unreached:
    """Decides to whom replies are sent.

    A client that blocks a send gets nothing during a pause, which grows each time. Clients that no reply has
    reached yet share a budget of blocked time. A client that a reply has reached is always sent to.
    """

    def __init__(self) -> None:
        self._pauses: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()  # its length and its end
        self._reached: OrderedDict[Hashable, None] = OrderedDict()
        self._credit_s = CREDIT_S
        self._since_s: float | None = None

    def paused(self, client: Hashable, now_s: float) -> bool:
        """Whether a client gets nothing now because it blocked a send."""
        return now_s < self._pauses.get(client, (0.0, now_s))[1]

    def may_send(self, client: Hashable, now_s: float) -> bool:
        """Whether a reply may be sent to a client."""
        if self.paused(client, now_s):
            return False
        if self._since_s is not None:
            gained_s = CREDIT_PER_S * max(0.0, now_s - self._since_s)
            self._credit_s = min(CREDIT_S, self._credit_s + gained_s)
        self._since_s = now_s
        return client in self._reached or self._credit_s > 0.0

    def sent(self, client: Hashable, took_s: float, lost: bool, now_s: float) -> None:
        """Take note of a send.

        Args:
            client: to which.
            took_s: how long it took.
            lost: the middleware said that the reply does not reach the client.
            now_s: after the send, of a clock that only goes forward.
        """
        if not lost and took_s < SLOW_S:
            self._pauses.pop(client, None)
            _remember(self._reached, client, None)
            return
        self._credit_s -= took_s
        if not lost:  # slow, but the client may be one that was discovered meanwhile
            return
        self._reached.pop(client, None)
        before_s, _ = self._pauses.get(client, (FIRST_PAUSE_S / GROWTH, 0.0))
        pause_s = min(PAUSE_MOST_S, GROWTH * before_s)
        _remember(self._pauses, client, (pause_s, now_s + pause_s))


def _remember(kept: OrderedDict[Hashable, T], client: Hashable, what: T) -> None:
    kept[client] = what
    kept.move_to_end(client)
    if len(kept) > CLIENTS_KEPT:
        kept.popitem(last=False)
