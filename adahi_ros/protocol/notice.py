# SPDX-License-Identifier: Apache-2.0
"""What a verifier publishes about the assignments of robots: never their content."""

from __future__ import annotations

from dataclasses import dataclass

from adahi_ros.protocol.request import NO_ASSIGNMENT

ROBOTS_MOST = 256
"""Robots with an assignment at one verifier, as in `Assignments.msg`."""
INSTRUCTION_LENGTH = 512
"""Characters, as in `Assign.srv`."""


@dataclass(frozen=True)
class Notice:
    """What a verifier publishes about one robot.

    Attributes:
        started_ns: when the verifier was activated; revisions count from there.
        revision: number of changes since then, of any robot.
        own: revision of this robot's assignment; `NO_ASSIGNMENT` for none.
    """

    started_ns: int
    revision: int
    own: int = NO_ASSIGNMENT
