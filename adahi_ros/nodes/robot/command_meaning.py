"""What a robot's actions command: which entries, as which messages, within which limits."""

from __future__ import annotations

from dataclasses import dataclass

from adahi_ros.contract.contract import JOINT_STATE, Contract, MeasuredPositions
from adahi_ros.contract.fields import NAMED
from adahi_ros.nodes.common.command_interfaces import (
    INTERFACE_OF_KIND,
    CommandInterface,
    TwistInterface,
    command_interface,
)
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.robot.draft_policy_parameters import BY_CONTRACT, DraftPolicyParameters
from adahi_ros.safety.limits import Limits, load_limits
from adahi_ros.safety.shipped import limits_path

NO_LIMITS = "none"


@dataclass(frozen=True)
class Commanded:
    """What an action commands.

    Attributes:
        names: of its A entries.
        field: what they are, such as positions.
    """

    names: tuple[str, ...]
    field: str


def commanded(contract: Contract, values: DraftPolicyParameters) -> Commanded:
    """Return what the action of a contract commands; bare numbers get their meaning from the parameters.

    Raises:
        ParameterError: the contract commands several fields, or the parameters do not name its numbers.
    """
    select, kind = contract.action.select, contract.action.channel.kind
    if kind in NAMED:
        fields = {path.partition(".")[0] for path in select}
        if len(fields) != 1:
            raise ParameterError(f"contract: its action has the fields {sorted(fields)}, must have one")
        return Commanded(tuple(path.partition(".")[2] for path in select), fields.pop())
    if kind == TwistInterface.kind:
        return Commanded(tuple(path.removeprefix("twist.") for path in select), "velocities")
    names = values.command.joint_names
    if len(names) != len(select):
        raise ParameterError(
            f"command.joint_names: {list(names)}, must name the {len(select)} numbers of {kind}"
        )
    return Commanded(names, values.command.field)


def interface_of(contract: Contract, what: Commanded, values: DraftPolicyParameters) -> CommandInterface:
    """Return what makes the messages of the commands.

    Raises:
        ParameterError: it cannot be had, or does not fit; names the parameter, its value and what is allowed.
    """
    name = values.command_interface
    if name == BY_CONTRACT:
        kind = contract.action.channel.kind
        if kind not in INTERFACE_OF_KIND:
            allowed = ", ".join(INTERFACE_OF_KIND)
            raise ParameterError(f"contract: commands are {kind}, must be one of {allowed}")
        name = INTERFACE_OF_KIND[kind]
    return command_interface(name, what.names, what.field, values.twist.frame_id)


def limits_of(values: DraftPolicyParameters, what: Commanded, measured: MeasuredPositions) -> Limits:
    """Return the limits that the parameters name: in a file, or a shipped one.

    Raises:
        ParameterError: there is none, or it says nothing that can be used; or there must be some, and they
            leave an entry without.
    """
    name, required = values.safety.limits, values.safety.require_limits
    if not name and required:
        raise ParameterError(f"safety.limits: '', must name a file of limits, or be {NO_LIMITS}")
    if name in ("", NO_LIMITS):
        return Limits.of(what.names, {})
    try:
        limits = load_limits(limits_path(name), what.names, what.field if required else "")
    except (ValueError, OSError) as error:
        raise ParameterError(f"safety.limits: {name!r}, cannot be used: {error}") from None
    needing = limits.needing_position(what.field) if required else {}
    for joint in measured.unknown:
        if joint in needing:
            raise ParameterError(
                f"safety.limits: {name!r}, {needing[joint]} of {joint} needs its measured position: the "
                f"contract must observe position.{joint} of a {JOINT_STATE}, or the file leave that limit out"
            )
    return limits
