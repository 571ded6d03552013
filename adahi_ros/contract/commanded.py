"""What a robot's actions command: which entries, and what they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adahi_ros.contract.contract import Source
from adahi_ros.contract.fields import NAMED

TWIST = "geometry_msgs/msg/TwistStamped"


@dataclass(frozen=True)
class Commanded:
    """What an action commands.

    Attributes:
        names: of its A entries.
        field: what they are, such as positions.
    """

    names: tuple[str, ...]
    field: str


def commanded(action: Source, joint_names: Sequence[str], field: str) -> Commanded:
    """Return what the action of a contract commands.

    Args:
        action: of the contract.
        joint_names: of the entries, where its messages are bare numbers; else they do not matter.
        field: what these numbers are.

    Raises:
        ValueError: the contract commands several fields, or its bare numbers are not named one by one; names
            contract or parameter, its value and what is allowed.
    """
    select, kind = action.select, action.channel.kind
    if kind in NAMED:
        fields = {path.partition(".")[0] for path in select}
        if len(fields) != 1:
            raise ValueError(f"contract: its action has the fields {sorted(fields)}, must have one")
        return Commanded(tuple(path.partition(".")[2] for path in select), fields.pop())
    if kind == TWIST:
        return Commanded(tuple(path.removeprefix("twist.") for path in select), "velocities")
    if len(joint_names) != len(select):
        raise ValueError(
            f"command.joint_names: {list(joint_names)}, must name the {len(select)} numbers of {kind}"
        )
    return Commanded(tuple(joint_names), field)
