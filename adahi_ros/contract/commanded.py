# SPDX-License-Identifier: Apache-2.0
"""Entries that a robot's actions command: names, fields, interfaces and topics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from adahi_ros.contract.contract import BY_CONTRACT, GOALS, Action, Sink
from adahi_ros.contract.fields import NAMED

TWIST = "geometry_msgs/msg/TwistStamped"


@dataclass(frozen=True)
class Commanded:
    """The entries of an action, or of one sink.

    Attributes:
        names: of its entries.
        fields: the quantity of each, such as positions.
    """

    names: tuple[str, ...]
    fields: tuple[str, ...]

    @classmethod
    def alike(cls, names: Sequence[str], field: str) -> Commanded:
        """Return entries with the same field."""
        return cls(tuple(names), (field,) * len(names))

    @property
    def field(self) -> str:
        """Return the entries of one sink."""
        return self.fields[0]


def commanded_by_sink(action: Action, joint_names: Sequence[str], field: str) -> list[Commanded]:
    """Return the entries of an action of a contract, sink by sink.

    Args:
        action: of the contract.
        joint_names: of the entries of a sink with bare numbers that the contract does not name;
            otherwise ignored.
        field: quantity of these numbers.

    Raises:
        ValueError: a sink has several fields, or its bare numbers have no names, or two sinks
            command one joint; names contract or parameter, its value and what is allowed.
    """
    parts = [_commanded(sink, joint_names, field) for sink in action.sinks]
    seen: dict[str, str] = {}
    for sink, part in zip(action.sinks, parts, strict=True):
        for name in part.names:
            if name in seen:
                raise ValueError(
                    f"contract: {name} is commanded by {seen[name]} and {sink.key}, must be by one"
                )
            seen[name] = sink.key
    return parts


def commanded(action: Action, joint_names: Sequence[str], field: str) -> Commanded:
    """Return the entries of all sinks together; see `commanded_by_sink`."""
    parts = commanded_by_sink(action, joint_names, field)
    names = tuple(name for part in parts for name in part.names)
    return Commanded(names, tuple(each for part in parts for each in part.fields))


def _commanded(sink: Sink, joint_names: Sequence[str], field: str) -> Commanded:
    select, kind = sink.source.select, sink.channel.kind
    if sink.is_ros_action:
        return Commanded.alike([path.partition(".")[2] for path in select], GOALS)
    if kind in NAMED:
        fields = {path.partition(".")[0] for path in select}
        if len(fields) != 1:
            raise ValueError(f"contract: {sink.key} has the fields {sorted(fields)}, must have one")
        return Commanded.alike([path.partition(".")[2] for path in select], fields.pop())
    if kind == TWIST:
        return Commanded.alike([path.removeprefix("twist.") for path in select], "velocities")
    if sink.names:
        return Commanded.alike(sink.names, sink.field)
    if len(joint_names) != len(select):
        raise ValueError(
            f"command.joint_names: {list(joint_names)}, must name the {len(select)} numbers of {sink.key}, "
            f"{kind}; or the contract must, by names and field"
        )
    return Commanded.alike(joint_names, field)


def kinds_by_sink(
    action: Action, interface: str, interfaces: Mapping[str, str], known: Collection[str]
) -> list[str]:
    """Return the type of the messages or of the ROS action of each sink.

    Args:
        action: of the contract.
        interface: the parameter command_interface: a name, or `BY_CONTRACT`.
        interfaces: types of messages by these names.
        known: the types that can be sent.

    Raises:
        ValueError: one cannot be sent; names contract or parameter, its value and what is allowed.
    """
    if interface != BY_CONTRACT:
        if len(action.sinks) > 1 or action.sinks[0].is_ros_action:
            raise ValueError(
                f"command_interface: {interface!r}, must be {BY_CONTRACT} with several actions of the "
                "contract, or a ROS action"
            )
        return [interfaces[interface]]
    kinds = [sink.channel.kind for sink in action.sinks]
    for kind in kinds:
        if kind not in known:
            raise ValueError(f"contract: commands are {kind}, must be one of {', '.join(known)}")
    return kinds


def check_topics_apart(sinks: Sequence[Sink], names: Sequence[str]) -> None:
    """Check that each action has its own topic.

    Args:
        sinks: of a contract.
        names: of their topics. In the contract, where the namespace is unknown, without the leading slash;
            in a node, expanded and remapped.

    Raises:
        ValueError: two have the same; names key and topic.
    """
    first: dict[str, Sink] = {}
    for sink, name in zip(sinks, names, strict=True):
        other = first.setdefault(name, sink)
        if other is not sink:
            ours, theirs = sink.channel.topic, other.channel.topic
            conflict = "twice" if ours == theirs else f"and {ours!r} of {sink.key}, both {name!r}"
            raise ValueError(f"{other.key}.channel.topic: {theirs!r} {conflict}, must be one action's")
