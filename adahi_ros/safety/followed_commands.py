# SPDX-License-Identifier: Apache-2.0
"""Whether a controller gets the commands, as its own state says."""

from __future__ import annotations

from collections import deque

STAMPS = 100  # commands that a controller may follow
SAME_NS = 200_000  # how exactly it says which one


class FollowedCommands:
    """The commands to a controller, and those that it says it follows, by their stamps in ns."""

    def __init__(self) -> None:
        self._sent: deque[int] = deque(maxlen=STAMPS)
        self._followed: set[int] = set()
        self._said_ns = 0

    def clear(self) -> None:
        """Forget all: there may be another controller."""
        self._sent.clear()
        self._followed.clear()

    def note_command(self, stamp_ns: int) -> None:
        """Note a command."""
        self._sent.append(stamp_ns)

    def note_state(self, stamp_ns: int) -> None:
        """Note the stamp of what the controller follows: its state's less the time since its start.

        It counts where two states in a row say the same. Of older controllers this difference is no stamp,
        and moves with each state.
        """
        again, self._said_ns = abs(stamp_ns - self._said_ns) <= SAME_NS, stamp_ns
        if again and not self.known:
            self._followed.update(each for each in self._sent if abs(each - stamp_ns) <= SAME_NS)

    @property
    def known(self) -> bool:
        """Whether it follows. Two commands must be: a motion of its own may begin at the time of one."""
        return len(self._followed) > 1
