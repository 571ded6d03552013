# SPDX-License-Identifier: Apache-2.0
"""Which assignment of the verifier a robot follows, and when a notice makes it send a request.

A verifier can replace the instruction or the goal of a robot's requests. It then publishes a notice with the
new revision, and every reply has the revision that it was made with. A notice moves no robot: it only makes
the robot drop its plans and send a request.
"""

from __future__ import annotations

from collections.abc import Mapping

from adahi_ros.protocol.notice import Notice
from adahi_ros.protocol.request import NO_ASSIGNMENT

NONE_YET = Notice(-1, 0)
OF_FORMER_VERIFIER = -1  # revisions of two activations cannot be compared


class AssignmentWatch:
    """Compares notices with replies. Older and repeated notices change nothing.

    Attributes:
        followed: revision of the newest reply that was used; `NO_ASSIGNMENT` before the first one.
        restarted: the last notice shows that the verifier has restarted; earlier requests were not for it.
    """

    def __init__(self) -> None:
        self._newest = NONE_YET
        self._lost = self.restarted = False
        self.begin()

    def begin(self) -> None:
        """Start again without replies and counts; the newest notice stays: it is published only once."""
        self.followed = NO_ASSIGNMENT
        self._notices = self._requests = 0

    @property
    def figures(self) -> Mapping[str, object]:
        """Notices received and requests because of them, for the diagnostics; since the last `begin`."""
        return {
            "assignments.revision": self.own,
            "assignments.notices": self._notices,
            "assignments.requests": self._requests,
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
            return False
        self.restarted = restarted and before is not NONE_YET
        if self.restarted and self.followed != NO_ASSIGNMENT:
            self.followed = OF_FORMER_VERIFIER
        self._newest, self._lost = notice, False
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
        if self._fits(assignment):
            return ""
        return f"assignment: {assignment}, must be {self.own}: the reply was made before a newer assignment"

    def replied(self, assignment: int) -> bool:
        """Take in a reply that is used; return whether older plans were made with another assignment."""
        changed = assignment != self.followed
        self.followed = assignment
        return changed

    def _fits(self, assignment: int) -> bool:
        """Whether a reply has the robot's revision, or one that is newer than the newest notice."""
        return assignment == self.own or assignment > self._newest.revision


def _order(notice: Notice) -> tuple[int, int]:
    return notice.started_ns, notice.revision
