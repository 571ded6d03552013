# SPDX-License-Identifier: Apache-2.0
"""Why no message of an observed topic arrives: no node publishes it, or with another type or QoS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from adahi_ros.contract.contract import Channel
from adahi_ros.core.texts import NEAR

FEW = 4  # other topics of a type that are named


class Endpoint(NamedTuple):
    """A publisher or subscription of a topic.

    Attributes:
        node: its full name.
        kind: type of the messages.
        reliability, durability: of its QoS, as in `Channel`.
    """

    node: str
    kind: str
    reliability: str = "reliable"
    durability: str = "volatile"


Endpoints = Mapping[str, Sequence[Endpoint]]
"""By the full name of a topic."""


def names_of(endpoints: Iterable[Endpoint]) -> str:
    """Return the names of the nodes, each once, for people."""
    return ", ".join(sorted({each.node for each in endpoints}))


def why_silent(topic: str, channel: Channel, published: Endpoints) -> str:
    """Return why no message of a topic arrives, for people.

    Args:
        topic: its full name.
        channel: how it is subscribed.
        published: the publishers of all topics, at least of those of the same type.
    """
    found = published.get(topic, ())
    alike = [each for each in found if each.kind == channel.kind]
    if not alike:
        if found:
            return f"{topic} of {names_of(found)} is {found[0].kind}, must be {channel.kind}"
        return f"{topic} has no publisher{_instead(topic, channel.kind, published)}"
    for quality, least in (("reliability", "best_effort"), ("durability", "volatile")):
        wanted = getattr(channel, quality)
        if wanted != least and all(getattr(each, quality) == least for each in alike):
            who = names_of(alike)
            return f"{topic}: the {quality} of {who} is {least}, the contract's qos wants {wanted}"
    return f"{topic}: {names_of(alike)} publishes it, but no message arrives"


def instead(topic: str, kind: str, offered: Endpoints) -> str:
    """Return which topics of a type are there instead of a missing one, for people; the nearest name first.

    Args:
        topic: full name of the missing one.
        kind: its type.
        offered: publishers or subscriptions of other topics.
    """
    others = {name: [each for each in found if each.kind == kind] for name, found in offered.items()}
    names = sorted(name for name, found in others.items() if found and name != topic)
    near = get_close_matches(topic, names, 1, NEAR) or names[:FEW]
    return ", ".join(f"{name} ({names_of(others[name])})" for name in near)


def _instead(topic: str, kind: str, published: Endpoints) -> str:
    namespaced = [name for name, found in published.items() if found and name.endswith(topic)]
    if namespaced:
        return f"; there is {namespaced[0]}: is the namespace {namespaced[0].removesuffix(topic)}?"
    if published.get(raw := topic.removesuffix("/compressed")):
        return f"; there is {raw} ({published[raw][0].kind})"
    there = instead(topic, kind, published)
    return f"; there is {there}" if there else f", nor has any other topic of {kind}"
