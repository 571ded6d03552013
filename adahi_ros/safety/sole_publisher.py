# SPDX-License-Identifier: Apache-2.0
"""Which publisher is alone on a topic, and since when. It has no clock and no ROS."""

from __future__ import annotations

import math


class SolePublisher:
    """Identifies the only publisher of a topic by its GID, the identity that DDS gives it.

    A message has no GID in Python. So it has a known publisher only if one GID was alone on the topic when
    it was sent.

    Attributes:
        gid: of the only publisher; None without one, and with several.
        since_s: when this publisher began to be the only one; infinite without one.
    """

    def __init__(self) -> None:
        self.gid: bytes | None = None
        self.since_s = math.inf
        self._gids: frozenset[bytes] = frozenset()
        self._seen = 0  # publishers that came
        self._unseen = 0  # publishers that came and left between two looks
        self._looked_s = -math.inf
        self._sure_s = -math.inf  # when one was still there, or every one that had matched was seen
        self._from_s = math.inf  # what arrives after it is the only publisher's, also before it was seen
        self._early_s = math.inf  # when the first message arrived while one that had matched was not seen

    @property
    def several(self) -> int:
        """Number of publishers if there are several, else 0."""
        return len(self._gids) if len(self._gids) > 1 else 0

    def note_publishers(
        self, gids: frozenset[bytes], matched: int | None, now_s: float, arrived_s: float | None = None
    ) -> None:
        """Note who publishes on the topic now: at every message, and often between messages.

        Args:
            gids: of the publishers.
            matched: publishers that were ever matched with the subscription, which every publisher matches;
                None if unknown.
            now_s: the time.
            arrived_s: when the message arrived for which this looks; None without one.
        """
        before, self._gids = self._gids, gids
        self._seen += len(gids - before)
        unseen = max(0, (matched or 0) - self._seen)
        later_s = math.nextafter(now_s, math.inf)  # what was sent until now may be of another one
        self._early_s = min(self._early_s, math.inf if arrived_s is None else arrived_s)
        if len(gids) != 1:
            self.gid, self.since_s, self._from_s = None, math.inf, math.inf
        elif gids != before:
            (self.gid,) = gids
            first_s = now_s if arrived_s is None else min(arrived_s, now_s)
            # None was there at the last look. Another may have come since then, before this message.
            self.since_s = later_s if before else max(self._looked_s, first_s)
            self._from_s = math.inf if before or unseen or matched is None else self._sure_s
        if unseen > self._unseen and self.gid is not None:
            self.since_s, self._from_s = later_s, math.inf
        if self._from_s < self._early_s < self.since_s:
            self.since_s = self._early_s
        if gids or not unseen:
            self._early_s = math.inf
        self._unseen = unseen
        self._looked_s = now_s
        self._sure_s = self._sure_s if unseen and not (gids or before) else now_s
