# SPDX-License-Identifier: Apache-2.0
"""Profiles of links, as YAML files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from pydantic.dataclasses import dataclass

from adahi_ros.core.assets import asset
from adahi_ros.core.schema import Listed, Schema, above, checked, within
from adahi_ros.core.yaml_files import read_yaml

SHIPPED = "config/links"
LIKE = "like"
LARGEST = 1e15  # of any value, so that results stay finite
AtLeastZero = Annotated[float, within(0.0, LARGEST)]
Positive = Annotated[float, above(0.0, LARGEST)]
Share = Annotated[float, within(0.0, 1.0)]


@dataclass(frozen=True)
class Burst(Schema):
    """Losses in bursts, by the Gilbert-Elliott model: after each packet the link may turn bad or good.

    Attributes:
        to_bad: probability that a good link is bad for the next packet.
        to_good: probability that a bad one is good for the next packet; bursts are 1 / to_good packets long.
        loss_in_bad: share of packets that a bad link loses.
    """

    to_bad: Share
    to_good: Share
    loss_in_bad: Share


@dataclass(frozen=True)
class Outage(Schema):
    """A cut of the link: from `at_s` after the link's start, for `for_s`."""

    at_s: AtLeastZero
    for_s: Positive


@dataclass(frozen=True)
class LinkProfile(Schema):
    """A link between a robot and a server; all values are per direction.

    Attributes:
        rtt_mean_ms: mean round-trip time of a small packet.
        rtt_jitter_ms: its standard deviation.
        rate_mbit_s: its rate in each direction.
        loss: share of packets lost independently.
        burst: additional losses in bursts.
        duplicate: share of packets that arrive twice.
        reorder: share of packets that overtake all packets in transit.
        queue_bytes: size of the send queue; further packets are dropped.
        outages: cuts of the link.
        states: states in turn, repeated forever: mappings with `for_s` and the fields that differ.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """

    rtt_mean_ms: AtLeastZero
    rtt_jitter_ms: AtLeastZero
    rate_mbit_s: Positive
    loss: Share = 0.0
    burst: Burst | None = None
    duplicate: Share = 0.0
    reorder: Share = 0.0
    queue_bytes: Positive = 400_000
    outages: Listed[Outage] = ()
    states: Listed[dict[str, Any]] = ()

    def __post_init__(self) -> None:
        for index, state in enumerate(self.states):
            where = f"states[{index}]"
            if "for_s" not in state:
                raise ValueError(f"{where}.for_s: missing")
            checked(Positive, state["for_s"], f"{where}.for_s")
            for name in state.keys() & {"outages", "states"}:
                raise ValueError(f"{where}.{name}: unknown, must be for_s or a field that may change")
            self._in_state(state, where)

    def _in_state(self, state: Mapping[str, object], where: str = "") -> LinkProfile:
        values = {**self.values(), "states": (), **state}
        del values["for_s"]
        made: LinkProfile = checked(LinkProfile, values, where)
        return made

    def transfer_ms(self, size_bytes: float) -> float:
        """Return the transmission time of so many bytes at the link's rate."""
        return size_bytes * 8e-3 / self.rate_mbit_s

    def mean_loss(self) -> float:
        """Return the average share of lost packets in each direction, without outages and states."""
        if self.burst is None:
            return self.loss
        leaving = self.burst.to_bad + self.burst.to_good
        bad = self.burst.to_bad / leaving if leaving else 0.0
        return 1 - (1 - self.loss) * (1 - bad * self.burst.loss_in_bad)

    def waiting_ms(self, messages: float, size_bytes: float) -> float:
        """Return how long so many round trips take on average, one after the other, without compute.

        Lost messages are sent again after a round trip. Outages and states are left out.

        Args:
            messages: that wait for a reply.
            size_bytes: of all messages and replies.
        """
        trips_ms = messages * self.rtt_mean_ms / (1.0 - self.mean_loss()) ** 2
        return trips_ms + self.transfer_ms(size_bytes)

    def is_out(self, time_s: float) -> bool:
        """Return whether there is an outage at this time after the link's start."""
        return any(each.at_s <= time_s < each.at_s + each.for_s for each in self.outages)

    def state_at(self, time_s: float) -> tuple[LinkProfile, float]:
        """Return the link's properties at this time after its start, and until when they hold, s."""
        if not self.states:
            return self, math.inf
        phase_s = time_s % sum(state["for_s"] for state in self.states)
        for state in self.states:
            if phase_s < state["for_s"]:
                break
            phase_s -= state["for_s"]
        return self._in_state(state), time_s + max(0.0, state["for_s"] - phase_s)

    def changed(self, values: Mapping[str, object]) -> LinkProfile:
        """Return a profile with some fields replaced.

        Raises:
            ValueError: as the profile, or a field is unknown.
        """
        made: LinkProfile = checked(LinkProfile, {**self.values(), **values})
        return made

    def values(self) -> dict[str, Any]:
        """Return the fields as a file has them."""
        return asdict(self)


def profile_path(name: str) -> Path:
    """Return the file of a shipped profile by its name; a name that ends in .yaml is a path.

    Raises:
        ValueError: there is no such file or shipped profile; lists the shipped ones.
    """
    if name.endswith(".yaml"):
        path = Path(name).expanduser()
        if not path.is_file():
            raise ValueError(f"link: {name!r}, no such file")
        return path
    shipped = shipped_profiles()
    if name not in shipped:
        raise ValueError(f"link: {name!r}, must be one of {', '.join(shipped)}, or a YAML file")
    return asset(f"{SHIPPED}/{name}.yaml")


def shipped_profiles() -> list[str]:
    """Return the names of the profiles that are shipped."""
    return sorted(path.stem for path in asset(SHIPPED).glob("*.yaml"))


def load_profile(path: Path) -> LinkProfile:
    """Read a profile. The key `like` names another one that supplies missing fields.

    Raises:
        FileNotFoundError: no such file.
        ValueError: the profile is invalid; names file and field.
    """
    try:
        profile: LinkProfile = checked(LinkProfile, _read(path, ()))
        return profile
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _read(path: Path, before: tuple[Path, ...]) -> Any:
    """Return a file's fields, completed from the profile in `like`."""
    values = read_yaml(path)
    if not isinstance(values, dict) or LIKE not in values:
        return values
    like = values.pop(LIKE)
    other = profile_path(str(like))
    if other in (*before, path):
        raise ValueError(f"{LIKE}: {like!r}, must not lead back to itself")
    base = _read(other, (*before, path))
    return {**base, **values} if isinstance(base, dict) else base


def profile_named(name: str) -> LinkProfile:
    """Read a shipped profile by its name, or any by its path.

    Raises:
        ValueError: there is no such profile, or it is invalid.
    """
    return load_profile(profile_path(name))
