# SPDX-License-Identifier: Apache-2.0
"""The notices of assignments: their messages, topic and QoS."""

from __future__ import annotations

from collections.abc import Mapping

from adahi_msgs.msg import Assignments
from builtin_interfaces.msg import Time

from adahi_ros.core.texts import NAME_LENGTH
from adahi_ros.protocol.notice import ROBOTS_MOST, Notice

SECOND_NS = 1_000_000_000


def to_assignments(started_ns: int, revision: int, revisions: Mapping[str, int]) -> Assignments:
    """Make the message of a verifier's assignments.

    Args:
        started_ns: when the verifier was activated.
        revision: number of changes since then.
        revisions: of each robot's assignment, by name.
    """
    seconds, nanoseconds = divmod(started_ns, SECOND_NS)
    return Assignments(
        started=Time(sec=seconds, nanosec=nanoseconds),
        revision=revision,
        robot_ids=list(revisions),
        revisions=list(revisions.values()),
    )


def from_assignments(message: Assignments, robot_id: str) -> Notice:
    """Return what a message has about one robot.

    Raises:
        ValueError: names the field, its value and what is allowed.
    """
    robots, revisions = message.robot_ids, message.revisions
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
    of_robots = dict(zip(robots, revisions, strict=True))
    return Notice(started_ns, message.revision, of_robots.get(robot_id, 0))
