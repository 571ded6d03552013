# SPDX-License-Identifier: Apache-2.0
"""A person takes over the arm: who has it, and the person's newest command.

It has no clock, like the guard: the caller passes the time, of a clock that never jumps.
"""

from __future__ import annotations

import math

import numpy as np

from adahi_ros.safety.entry_limits import LARGEST
from adahi_ros.safety.holds import Event, Hold, Holds, State
from adahi_ros.safety.sole_publisher import SolePublisher

SIGNAL, COMMAND = "takeover", "teleop_command"  # topics; the first may be a button of joy
ENDS = "it ends by a false of the same publisher, or by ~/give_back"
NONE = "none was received since the takeover"


def lateness(age_s: float, timeout_s: float) -> str:
    """Return why a message of this age does not count, for people; empty where it does."""
    if -timeout_s / 2 <= age_s <= timeout_s:
        return ""
    return (
        f"{age_s:.2f} s old by its source timestamp, allowed are {-timeout_s / 2:g} to {timeout_s:g} s "
        "(safety.enable_timeout_s)"
    )


class Takeover:
    """Decides who has the arm, and keeps the newest command of the person. It outlasts every transition.

    - A `true` takes over. Only a `false` of a publisher that took over gives the arm back, or the service:
      its GID was alone on the topic from its `true` to its `false`. Silence does not: the arm is then held.
    - A message that is older than `timeout_s` counts for nothing, neither to take over nor to give back.
    - The person's newest command of each joint lasts `timeout_s`. One that cannot be used ends all at once.
    - Two publishers of one topic cannot both drive: the arm is held. Neither can another publisher of
      commands than at the first command of the takeover.

    Attributes:
        count: how often a person has taken over.
        timeout_s: how long a message lasts.
        publishers: of each topic.

    Args:
        holds: of the arm.
        timeout_s: see above.
    """

    def __init__(self, holds: Holds, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.count = 0
        self.publishers: dict[str, SolePublisher] = {}
        for topic in (SIGNAL, COMMAND):
            self.subscribed(topic)
        self._holds = holds
        self._taken_s = -math.inf  # when the newest true arrived
        self._taking_s = self._giving_s = -math.inf  # when it, and the newest false or call, was sent
        self._sent_s = {SIGNAL: -math.inf, COMMAND: -math.inf}
        self._by: bytes | None = None  # who publishes the person's commands
        self.forget("none was received")

    @property
    def person(self) -> bool:
        """Whether a person has the arm."""
        return self._holds[Hold.TAKEN] is not State.CLEAR

    def forget(self, fault: str) -> None:
        """Forget the person's commands; a fault says why, for people."""
        self._wanted: np.ndarray | None = None  # (A,), the newest of each joint
        self._named_s: np.ndarray | None = None  # (A,), when each was sent
        self._fault = fault

    def configure(self, timeout_s: float) -> None:
        """Take a new timeout. A longer one does not count for messages that were received before."""
        longer_s, self.timeout_s = max(0.0, timeout_s - self.timeout_s), timeout_s
        self._sent_s = {topic: sent_s - longer_s for topic, sent_s in self._sent_s.items()}
        if self._named_s is not None:
            self._named_s = self._named_s - longer_s

    def subscribed(self, topic: str) -> SolePublisher:
        """Note a new subscription of a topic: nothing is known of its publishers. Return them."""
        self.publishers[topic] = SolePublisher()
        return self.publishers[topic]

    def signal(self, value: bool, age_s: float, now_s: float, waited_s: float = 0.0) -> str:
        """Take a message that takes over (true) or gives the arm back (false).

        Args:
            value: of the message.
            age_s: since it was sent; negative where the clocks disagree.
            now_s: the time.
            waited_s: since this machine received it.

        Returns:
            Why it is ignored; empty where it is not.
        """
        if late := self._received(SIGNAL, age_s, now_s):
            return late
        sent_s = now_s - max(0.0, age_s)
        arrived_s, since_s = now_s - max(0.0, waited_s), self.publishers[SIGNAL].since_s
        if value:
            if sent_s < self._giving_s:
                return f"{SIGNAL}: a true, sent before the arm was given back"
            if not self.person:
                self.count += 1
                self._by = None
                self.forget(NONE)
            self._taken_s = max(self._taken_s, arrived_s)
            self._taking_s = max(self._taking_s, sent_s)
            self._holds.happen(Event.TAKE, ENDS)
        elif sent_s < self._taking_s:
            return f"{SIGNAL}: a false, sent before the newest true"
        elif self.person and not since_s <= min(arrived_s, self._taken_s):
            self._sent_s[SIGNAL] = -math.inf  # a released button does not let the person drive
            return f"{SIGNAL}: a false, must be of the publisher that took over, alone; or call ~/give_back"
        elif self.person:
            self._give(sent_s)
        return ""

    def give_back(self, age_s: float, now_s: float) -> str:
        """Give the arm back, as the service requests; arguments and result as `signal`."""
        if late := lateness(age_s, self.timeout_s):
            return f"give_back: {late}"
        if age_s > 0.0 and now_s - age_s < self._taken_s:
            return f"give_back: sent before the newest true on {SIGNAL}"
        if self.person:
            self._give(now_s - max(0.0, age_s))
        return ""

    def _give(self, sent_s: float) -> None:
        self._giving_s = max(self._giving_s, sent_s)
        self._holds.happen(Event.GIVE)

    def command(
        self,
        wanted: np.ndarray | None,
        age_s: float,
        now_s: float,
        fault: str = "",
        waited_s: float = 0.0,
    ) -> str:
        """Take the person's command; result as `signal`.

        Args:
            wanted: (A,) in the messages' units, NaN for joints that it does not name; None if it cannot be
                used.
            age_s: since it was sent.
            now_s: the time.
            fault: why it cannot be used.
            waited_s: since this machine received it.
        """
        if late := self._received(COMMAND, age_s, now_s):
            return late
        if wanted is not None and (np.abs(wanted) > LARGEST).any():  # false of NaN
            fault, wanted = f"{COMMAND}: {wanted.tolist()}, each must be within {LARGEST:g}", None
        elif wanted is not None and (fault := self._of_another(now_s - max(0.0, waited_s))):
            wanted = None
        if wanted is None:
            self.forget(fault)
            return fault
        if self._wanted is None or self._named_s is None or len(self._wanted) != len(wanted):
            self._wanted, self._named_s = np.full(len(wanted), np.nan), np.full(len(wanted), -np.inf)
        named = ~np.isnan(wanted)
        self._wanted = np.where(named, wanted, self._wanted)
        self._named_s = np.where(named, now_s - max(0.0, age_s), self._named_s)
        self._fault = ""
        return ""

    def _of_another(self, arrived_s: float) -> str:
        """Return why a command that arrived then is not of the person; empty where it is."""
        publishers = self.publishers[COMMAND]
        if publishers.gid is None or publishers.since_s > arrived_s:
            return f"{COMMAND}: of several publishers, must be one"
        if self.person:
            self._by = self._by or publishers.gid
            if publishers.gid != self._by:
                return f"{COMMAND}: of another publisher than at the takeover; take over again"
        return ""

    def held(self, now_s: float) -> str:
        """Return why a person who has the arm does not move it; empty where the newest command is usable.

        Empty, too, where no person has it.
        """
        if not self.person:
            return ""
        several = sorted(topic for topic, each in self.publishers.items() if each.several)
        if several:
            return f"several publishers of {' and of '.join(several)}, must be one"
        for topic, sent_s in self._sent_s.items():
            if now_s - sent_s > self.timeout_s:
                return f"no {topic} for {self.timeout_s:g} s; take over again, or call ~/give_back"
        return "" if self._wanted is not None else f"no usable {COMMAND}: {self._fault}"

    def wanted(self, now_s: float) -> np.ndarray | None:
        """Return the command (A,) of a person who has the arm; None where the arm must be held.

        Joints that were not named for `timeout_s` are NaN.
        """
        if not self.person or self.held(now_s) or self._named_s is None or self._wanted is None:
            return None
        return np.where(now_s - self._named_s <= self.timeout_s, self._wanted, np.nan)

    def _received(self, topic: str, age_s: float, now_s: float) -> str:
        """Note a message; return why it is too old to count."""
        if late := lateness(age_s, self.timeout_s):
            return f"{topic}: {late}"
        self._sent_s[topic] = max(self._sent_s[topic], now_s - max(0.0, age_s))
        return ""
