# SPDX-License-Identifier: Apache-2.0
"""Instructions and goals that an operator sets for robots at the verifier."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from adahi_ros.core.signature import Signature
from adahi_ros.core.texts import NAME_LENGTH, shortened
from adahi_ros.protocol.notice import INSTRUCTION_LENGTH, ROBOTS_MOST
from adahi_ros.protocol.request import Request


@dataclass(frozen=True, eq=False)
class Assignment:
    """Replacements of fields of one robot's requests.

    Attributes:
        revision: number of the change that made it, from 1.
        instruction: a sentence; empty for that of the request.
        goal: (G,) float32; empty for that of the request.
    """

    revision: int
    instruction: str
    goal: np.ndarray


class Assignments:
    """The assignments of robots, by name; each robot has at most one.

    Attributes:
        revision: number of changes so far.
    """

    def __init__(self) -> None:
        self.revision = 0
        self._by_robot: dict[str, Assignment] = {}

    @property
    def revisions(self) -> Mapping[str, int]:
        """The revision of each robot's assignment, by name."""
        return {robot: assignment.revision for robot, assignment in self._by_robot.items()}

    def assign(
        self,
        robot_id: str,
        instruction: str,
        goal: Sequence[float],
        signatures: Collection[Signature],
        robots: Sequence[str] = (),
    ) -> int:
        """Replace a robot's assignment, or end it if both contents are empty; return the revision.

        Args:
            robot_id: of the robot's requests.
            instruction: see `Assignment`.
            goal: see `Assignment`.
            signatures: of the served targets; one must read the instruction and have the goal's size.
            robots: the only robots with a service; empty for any.

        Raises:
            ValueError: names the field, its value and what is allowed. No assignment is changed.
        """
        self._check_robot(robot_id, robots)
        if not instruction.strip():
            instruction = ""
        values = np.asarray(goal, dtype=np.float32)
        if instruction or values.size:
            self._check_room(robot_id)
            _check_content(instruction, values, signatures)
            self._by_robot[robot_id] = Assignment(self.revision + 1, instruction, values)
        else:
            self._by_robot.pop(robot_id, None)
        self.revision += 1
        return self.revision

    def applied(self, request: Request) -> Request:
        """Return a request with its robot's assignment."""
        assignment = self._by_robot.get(request.robot_id)
        if assignment is None:
            return request
        return replace(
            request,
            instruction=assignment.instruction or request.instruction,
            assigned_goal=assignment.goal if assignment.goal.size else None,
            assignment=assignment.revision,
        )

    def _check_robot(self, robot_id: str, robots: Sequence[str]) -> None:
        if not 0 < len(robot_id) <= NAME_LENGTH:
            raise ValueError(
                f"robot_id: {shortened(robot_id)!r}, must have from 1 to {NAME_LENGTH} characters"
            )
        if robots and robot_id not in robots:
            raise ValueError(f"robot_id: {robot_id!r}, must be one of {', '.join(map(repr, robots))}")

    def _check_room(self, robot_id: str) -> None:
        if len(self._by_robot) >= ROBOTS_MOST and robot_id not in self._by_robot:
            raise ValueError(
                f"robot_id: {robot_id!r}, must be one of the {ROBOTS_MOST} robots with an assignment; an "
                "empty assignment ends one"
            )


def _check_content(instruction: str, goal: np.ndarray, signatures: Collection[Signature]) -> None:
    """Check that one of the targets can read an instruction and a goal.

    Raises:
        ValueError: names the field, its value and what is allowed.
    """
    if len(instruction) > INSTRUCTION_LENGTH:
        raise ValueError(f"instruction: {len(instruction)} characters, must be at most {INSTRUCTION_LENGTH}")
    if instruction and not any(each.instruction for each in signatures):
        raise ValueError(
            f"instruction: {shortened(instruction)!r}, must be empty: no target reads an instruction"
        )
    sizes = sorted({each.goal_dim for each in signatures})
    if goal.size and goal.size not in sizes:
        allowed = " or ".join(map(str, sizes))
        raise ValueError(f"goal: {goal.size} values, must be {allowed}, the size that a target reads")
    wrong = np.flatnonzero(~np.isfinite(goal))
    if wrong.size:
        raise ValueError(f"goal[{wrong[0]}]: {goal[wrong[0]]}, must be finite")
