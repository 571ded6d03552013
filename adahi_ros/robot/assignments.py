# SPDX-License-Identifier: Apache-2.0
"""Chooses the verifier's assignment that a robot follows, and when a notice makes it send a request.

A verifier can replace the instruction or the goal of a robot's requests. It then publishes a notice with the
new revision, and every reply has the revision that it was made with. A notice moves no robot: it only makes
the robot drop its plans and send a request. Anyone may publish one, so the replies decide: if many in a row
fit an earlier notice and not the newest, the newest is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping

from adahi_ros.protocol.notice import Notice
from adahi_ros.protocol.request import NO_ASSIGNMENT

NONE_YET = Notice(-1, 0)
OF_FORMER_VERIFIER = -1  # revisions of two activations cannot be compared
REFUSED_MOST = (
    10  # replies in a row that do not fit a notice; more than requests that were in flight before it
)


class AssignmentWatch:
    """Compares notices with replies. Older and repeated notices change nothing.

    Attributes:
        followed: revision of the newest reply that was used; `NO_ASSIGNMENT` before the first one.
        restarted: the last notice shows that the verifier has restarted; earlier requests were not for it.
    """

    def __init__(self) -> None:
        self._newest = self._confirmed = NONE_YET  # the second: the last one that a reply did fit
        self._older: Notice | None = None  # the last one that was passed over, because it seems older
        self._refused = 0
        self._lost = self.restarted = False
        self.begin()

    def begin(self) -> None:
        """Start again without replies and counts; the newest notice stays: it is published only once."""
        self.followed = NO_ASSIGNMENT
        self._notices = self._requests = self._ignored = 0

    @property
    def figures(self) -> Mapping[str, object]:
        """Notices received, requests because of them, and notices ignored, since the last `begin`."""
        return {
            "assignments.revision": self.own,
            "assignments.notices": self._notices,
            "assignments.requests": self._requests,
            "assignments.ignored": self._ignored,
        }

    @property
    def own(self) -> int:
        """Revision of this robot's assignment, as the newest notice has it."""
        return self._newest.own

    @property
    def outdated(self) -> bool:
        """The robot's plans were made with another assignment than that of the newest notice."""
        return not self._fits(self.followed)

    def noticed(self, notice: Notice) -> bool:
        """Take in a notice; return whether it shows that the robot's plans are outdated."""
        self._notices += 1
        before = self._newest
        restarted, self.restarted = notice.started_ns != before.started_ns, False
        if not (restarted and self._lost) and _order(notice) <= _order(before):
            self._older = notice
            return False
        self.restarted = restarted and before is not NONE_YET
        if self.restarted and self.followed != NO_ASSIGNMENT:
            self.followed = OF_FORMER_VERIFIER
        self._newest, self._lost, self._refused = notice, False, 0
        return (restarted or notice.own != before.own) and self.outdated

    def requests(self) -> bool:
        """Count the robot's next request; return whether a notice is its cause."""
        self._requests += self.outdated
        return self.outdated

    def verifier_lost(self) -> None:
        """Take in the next notice of another activation even if it seems older: a clock may be set back."""
        self._lost = True

    def refusal(self, assignment: int) -> str:
        """Return why a reply with this revision must not be used; empty if it may be."""
        if not self._fits(assignment):
            self._refused += 1
            if self._refused >= REFUSED_MOST:
                self._reconsider(assignment)
        if self._fits(assignment):
            self._confirmed, self._refused = self._newest, 0
            return ""
        return f"assignment: {assignment}, must be {self.own}: the reply was made before a newer assignment"

    def _reconsider(self, assignment: int) -> None:
        """Ignore the newest notice if replies with this revision fit another one."""
        for other in (self._older, self._confirmed):
            if other is not None and other is not self._newest and _fits(assignment, other):
                self._newest = other
                self._ignored += 1
                return

    def replied(self, assignment: int) -> bool:
        """Take in a reply that is used; return whether older plans were made with another assignment."""
        changed = assignment != self.followed
        self.followed = assignment
        return changed

    def _fits(self, assignment: int) -> bool:
        """Whether a reply has the robot's revision, or one that is newer than the newest notice."""
        return _fits(assignment, self._newest)


def _order(notice: Notice) -> tuple[int, int]:
    return notice.started_ns, notice.revision


def _fits(assignment: int, notice: Notice) -> bool:
    return assignment == notice.own or assignment > notice.revision
