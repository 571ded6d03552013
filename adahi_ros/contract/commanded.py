# SPDX-License-Identifier: Apache-2.0
"""Entries that a robot's actions command: names, fields, interfaces and topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adahi_ros.contract.contract import GOALS, Action, Sink
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


def commanded_by_sink(action: Action) -> list[Commanded]:
    """Return the entries of an action of a contract, sink by sink.

    Raises:
        ValueError: a sink has several fields, or its bare numbers have no names, or two sinks
            command one joint; names the contract, its value and what is allowed.
    """
    parts = [_commanded(sink) for sink in action.sinks]
    seen: dict[str, str] = {}
    for sink, part in zip(action.sinks, parts, strict=True):
        for name in part.names:
            if name in seen:
                raise ValueError(
                    f"contract: {name} is commanded by {seen[name]} and {sink.key}, must be by one"
                )
            seen[name] = sink.key
    return parts


def commanded(action: Action) -> Commanded:
    """Return the entries of all sinks together; see `commanded_by_sink`."""
    parts = commanded_by_sink(action)
    names = tuple(name for part in parts for name in part.names)
    return Commanded(names, tuple(each for part in parts for each in part.fields))


def _commanded(sink: Sink) -> Commanded:
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
    raise ValueError(
        f"contract: {sink.key} has {len(select)} numbers of {kind}, must have their names and field"
    )


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
