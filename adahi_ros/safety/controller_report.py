# SPDX-License-Identifier: Apache-2.0
"""What a controller's own state says of it: other joints, less than full speed, another clock, silence."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from adahi_ros.core.texts import shortened

SCALING = 0.01  # off full speed a controller lags behind the curve, or leads, and jumps at each message
AHEAD_S, BEHIND_S = 0.01, 0.02  # allowed of a controller's clock; a message in transit makes it seem behind
STATES = 50  # of these the one with the shortest transit counts, where the controller seems behind
SILENT_S, SILENT_INTERVALS = 0.25, 5.0  # after so long without its state, a controller is gone
SILENT_LOOKS = 5  # with fewer, this process stood still, and the states wait


class ControllerReport:
    """What one controller has published of itself since it started.

    Args:
        controller: its full name.
        joints: that it is commanded by.

    Attributes:
        fault: why it cannot follow the commands, for people; empty where it can.
    """

    def __init__(self, controller: str, joints: Iterable[str]) -> None:
        self.fault = ""
        self._controller, self._joints = controller, frozenset(joints)
        self._scales = False  # it has published a scaling of speeds; older ones leave it at 0
        self._ahead_s: deque[float] = deque(maxlen=STATES)
        self._newest_s = 0.0  # when it published
        self._intervals_s = deque([0.0], maxlen=STATES)  # from one to the next; they may come in bursts
        self._looks: int | None = None  # since then; None for one without a time to compare

    def afresh(self) -> ControllerReport:
        """Return the report of a controller that starts instead of this one."""
        return ControllerReport(self._controller, self._joints)

    def take(self, joints: Iterable[str], scaling: float, ahead_s: float | None, now_s: float) -> None:
        """Take a state.

        Args:
            joints: that it has.
            scaling: of speeds, 1 for full speed.
            ahead_s: of its stamp before this machine's clock; None where they cannot be compared.
            now_s: monotonic time.
        """
        has = list(joints)
        missing = ", ".join(sorted(self._joints.difference(has)))
        self._scales |= scaling > 0.0
        if ahead_s is None:
            self._ahead_s.clear()
        else:
            self._ahead_s.append(ahead_s)
            if self._looks is not None:
                self._intervals_s.append(now_s - self._newest_s)
            self._newest_s, self._looks = now_s, 0
        nearest_s = max(self._ahead_s, default=0.0)
        if missing:
            self.fault = f"{self._controller} has no joint {missing}; it has {shortened(', '.join(has))}"
        elif self._scales and not abs(scaling - 1.0) <= SCALING:  # true of NaN
            self.fault = f"{self._controller} runs at {scaling:.0%} of its speed, must be 100 %"
        elif nearest_s > AHEAD_S or (len(self._ahead_s) == STATES and nearest_s < -BEHIND_S):
            apart = f"{1e3 * abs(nearest_s):.0f} ms {'ahead' if nearest_s > 0.0 else 'behind'}"
            self.fault = f"{self._controller} has a clock that is {apart}; use chrony"
        else:
            self.fault = ""

    def silent(self, now_s: float) -> bool:
        """Whether it published, and does no more; called at each look."""
        if self._looks is None:
            return False
        self._looks += 1
        longest_s = max(SILENT_S, SILENT_INTERVALS * max(self._intervals_s))
        return self._looks > SILENT_LOOKS and now_s - self._newest_s > longest_s
