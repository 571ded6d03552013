# SPDX-License-Identifier: Apache-2.0
"""Whether two robots ask by one name.

Each start of a robot's node is a session. A robot that is restarted goes from one session to the next, and
the one before is not heard again. Of two robots of one name each supersedes the other, again and again.

Nothing else depends on sessions. Two robots of one name get the draws of that name, which are then not
independent, and the right replies: windows are named by what is in them, so neither gets those of the other.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

NAMES_KEPT = 1024
SESSIONS_KEPT = 8  # of a name, beside the newest
LATE_S = 1.0  # a request of a session that is over may come so late
MAX_AGE_S = 3600.0  # a session that comes back after so long is taken for a new one
SHARED_S = 10.0  # a name is said to be shared for so long


@dataclass
class _Name:
    """What is known of a name.

    Attributes:
        session: the present one.
        superseded: those before it, and when each was superseded; that of the longest ago first.
        returns: how often one of those came back.
        returned_s: when one did last.
    """

    session: int
    superseded: OrderedDict[int, float]
    returns: int = 0
    returned_s: float = -math.inf


class Sessions:
    """Remembers the sessions of the names that were heard last."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, _Name] = OrderedDict()

    def heard(self, robot_id: str, session_id: int, now_s: float) -> bool:
        """Take note of a request; return whether it tells that two robots have this name.

        Args:
            robot_id: the name.
            session_id: of the request.
            now_s: of a clock that only goes forward.
        """
        name = self._names.setdefault(robot_id, _Name(session_id, OrderedDict()))
        self._names.move_to_end(robot_id)
        if len(self._names) > NAMES_KEPT:
            self._names.popitem(last=False)
        age_s = now_s - name.superseded.get(session_id, -math.inf)
        if session_id == name.session or age_s < LATE_S:
            return False
        name.superseded.pop(session_id, None)
        name.superseded[name.session] = now_s
        if len(name.superseded) > SESSIONS_KEPT:
            name.superseded.popitem(last=False)
        name.session = session_id
        if age_s > MAX_AGE_S:
            return False
        name.returns += 1
        name.returned_s = now_s
        return True

    def shared(self, now_s: float) -> dict[str, int]:
        """Return the names that robots share at present, and how often a session of each has come back."""
        return {
            robot_id: name.returns
            for robot_id, name in self._names.items()
            if now_s - name.returned_s <= SHARED_S
        }
