# SPDX-License-Identifier: Apache-2.0
"""The messages of a verifier's notices."""

from __future__ import annotations

from collections.abc import Mapping

from adahi_msgs.msg import Assignments
from builtin_interfaces.msg import Time

from adahi_ros.contract.fields import NANOSECONDS


def to_assignments(started_ns: int, revision: int, revisions: Mapping[str, int]) -> Assignments:
    """Make the message of a verifier's assignments.

    Args:
        started_ns: when the verifier was activated.
        revision: number of changes since then.
        revisions: of each robot's assignment, by name.
    """
    seconds, nanoseconds = divmod(started_ns, NANOSECONDS)
    return Assignments(
        started=Time(sec=seconds, nanosec=nanoseconds),
        revision=revision,
        robot_ids=list(revisions),
        revisions=list(revisions.values()),
    )
