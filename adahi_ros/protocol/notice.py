# SPDX-License-Identifier: Apache-2.0
"""Notices of a verifier about the assignments of robots: never their content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adahi_ros.core.texts import NAME_LENGTH
from adahi_ros.protocol.request import NO_ASSIGNMENT

SECOND_NS = 1_000_000_000
ROBOTS_MOST = 256
"""Robots with an assignment at one verifier, as in `Assignments.msg`."""
INSTRUCTION_LENGTH = 512
"""Characters, as in `Assign.srv`."""


@dataclass(frozen=True)
class Notice:
    """A verifier's notice about one robot.

    Attributes:
        started_ns: when the verifier was activated; revisions count from there.
        revision: number of changes since then, of any robot.
        own: revision of this robot's assignment; `NO_ASSIGNMENT` for none.
    """

    started_ns: int
    revision: int
    own: int = NO_ASSIGNMENT

    @classmethod
    def from_message(cls, message: Any, robot_id: str) -> Notice:
        """Read what an Assignments message, rclpy's or one read from a bag, has about one robot.

        Raises:
            ValueError: names the field, its value and what is allowed.
        """
        robots, revisions = list(message.robot_ids), [int(each) for each in message.revisions]
        if len(robots) > ROBOTS_MOST:
            raise ValueError(f"robot_ids: {len(robots)}, must be at most {ROBOTS_MOST}")
        if len(revisions) != len(robots):
            raise ValueError(f"revisions: {len(revisions)}, must be as many as robot_ids, {len(robots)}")
        for robot, revision in zip(robots, revisions, strict=True):
            if not 0 < len(robot) <= NAME_LENGTH:
                allowed = f"from 1 to {NAME_LENGTH} characters"
                raise ValueError(f"robot_ids: {robot[:NAME_LENGTH]!r}, must have {allowed}")
            if not 0 < revision <= message.revision:
                raise ValueError(f"revisions: {revision}, must be from 1 to {message.revision}, the newest")
        started_ns = message.started.sec * SECOND_NS + message.started.nanosec
        if started_ns < 0:
            raise ValueError(f"started: {message.started.sec} s, must be at least 0")
        own = dict(zip(robots, revisions, strict=True)).get(robot_id, NO_ASSIGNMENT)
        return cls(started_ns, int(message.revision), own)
