# SPDX-License-Identifier: Apache-2.0
"""What a link is like, as a YAML file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypedDict

from adahi_ros.core.assets import asset
from adahi_ros.core.yaml_files import read_yaml

SHIPPED = "config/links"
LIKE = "like"
LARGEST = 1e15  # of anything: what is computed from it is finite, too


class Burst(TypedDict):
    """Losses in bursts, by the Gilbert-Elliott model: from packet to packet the link may turn bad, or good.

    Attributes:
        to_bad: probability that a good link is bad for the next packet.
        to_good: probability that a bad one is good for the next packet; bursts are 1 / to_good packets long.
        loss_in_bad: share of packets that a bad link loses.
    """

    to_bad: float
    to_good: float
    loss_in_bad: float


class Outage(TypedDict):
    """A time in which nothing gets through: from `at_s` after the link's start, for `for_s`."""

    at_s: float
    for_s: float


@dataclass(frozen=True)
class LinkProfile:
    """A link between a robot and a server; everything holds for each way by itself.

    Attributes:
        rtt_mean_ms: mean round-trip time of a small packet.
        rtt_jitter_ms: its standard deviation.
        rate_mbit_s: what it carries, each way.
        loss: share of packets that are lost, one by one.
        burst: losses in bursts, beside those.
        duplicate: share of packets that arrive twice.
        reorder: share of packets that overtake all that are on their way.
        queue_bytes: what may wait to be sent; what comes on top is dropped.
        outages: times in which nothing gets through.
        states: what the link is like one after the other, for ever: mappings with `for_s` and the
            fields that are different then.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """

    rtt_mean_ms: float
    rtt_jitter_ms: float
    rate_mbit_s: float
    loss: float = 0.0
    burst: Burst | None = None
    duplicate: float = 0.0
    reorder: float = 0.0
    queue_bytes: float = 400_000
    outages: tuple[Outage, ...] = ()
    states: tuple[dict[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for name in ("rtt_mean_ms", "rtt_jitter_ms"):
            at_least_zero(name, getattr(self, name))
        for name in ("rate_mbit_s", "queue_bytes"):
            _above_zero(name, getattr(self, name))
        for name in ("loss", "duplicate", "reorder"):
            _check_share(name, getattr(self, name))
        if self.burst is not None:
            _check_keys("burst", self.burst, set(Burst.__annotations__))
            for name, value in self.burst.items():
                _check_share(f"burst.{name}", value)
        for name in ("outages", "states"):
            if not isinstance(getattr(self, name), (list, tuple)):
                raise ValueError(f"{name}: {getattr(self, name)!r}, must be a list of mappings")
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for index, outage in enumerate(self.outages):
            _check_keys(f"outages[{index}]", outage, set(Outage.__annotations__))
            at_least_zero(f"outages[{index}].at_s", outage["at_s"])
            _above_zero(f"outages[{index}].for_s", outage["for_s"])
        for index, state in enumerate(self.states):
            self._check_state(f"states[{index}]", state)

    def _check_state(self, where: str, state: Any) -> None:
        may_change = {field.name for field in fields(self)} - {"outages", "states"}
        _check_keys(where, state, {"for_s"}, may_change)
        _above_zero(f"{where}.for_s", state["for_s"])
        try:
            self._in_state(state)
        except ValueError as error:
            raise ValueError(f"{where}.{error}") from None

    def _in_state(self, state: Mapping[str, Any]) -> LinkProfile:
        different = {name: value for name, value in state.items() if name != "for_s"}
        return replace(self, states=(), **different)

    def transfer_ms(self, size_bytes: float) -> float:
        """Return how long so many bytes take at the link's rate."""
        return size_bytes * 8e-3 / self.rate_mbit_s

    def mean_loss(self) -> float:
        """Return the share of packets that is lost in the long run, each way, outages and states aside."""
        if self.burst is None:
            return self.loss
        leaving = self.burst["to_bad"] + self.burst["to_good"]
        bad = self.burst["to_bad"] / leaving if leaving else 0.0
        return 1 - (1 - self.loss) * (1 - bad * self.burst["loss_in_bad"])

    def is_out(self, time_s: float) -> bool:
        """Return whether there is an outage so long after the link's start."""
        return any(each["at_s"] <= time_s < each["at_s"] + each["for_s"] for each in self.outages)

    def state_at(self, time_s: float) -> tuple[LinkProfile, float]:
        """Return what the link is like so long after its start, and until when, s."""
        if not self.states:
            return self, math.inf
        phase_s = time_s % sum(state["for_s"] for state in self.states)
        for state in self.states:
            if phase_s < state["for_s"]:
                break
            phase_s -= state["for_s"]
        return self._in_state(state), time_s + max(0.0, state["for_s"] - phase_s)

    def changed(self, values: Mapping[str, Any]) -> LinkProfile:
        """Return a profile with some fields replaced.

        Raises:
            ValueError: as the profile, or there is no such field.
        """
        _check_keys("", values, set(), {field.name for field in fields(self)})
        return replace(self, **values)

    def values(self) -> dict[str, Any]:
        """Return the fields as a file has them."""
        return asdict(self)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= LARGEST:
        raise ValueError(f"{name}: {value!r}, must be a finite number, of {LARGEST:g} at most")
    return value


def at_least_zero(name: str, value: Any) -> float:
    """Return the value of a field.

    Raises:
        ValueError: it is no finite number, or below 0.
    """
    if _number(name, value) < 0:
        raise ValueError(f"{name}: {value}, must be at least 0")
    return float(value)


def _above_zero(name: str, value: Any) -> None:
    if _number(name, value) <= 0:
        raise ValueError(f"{name}: {value}, must be above 0")


def _check_share(name: str, value: Any) -> None:
    if not 0 <= _number(name, value) <= 1:
        raise ValueError(f"{name}: {value}, must be between 0 and 1")


def _check_keys(where: str, values: Any, needed: Set[str], optional: Set[str] = frozenset()) -> None:
    """Check that values are a mapping with these keys; `where` goes before the name of a wrong one."""
    known = needed | optional
    listed = ", ".join(sorted(known))
    if not isinstance(values, Mapping):
        raise ValueError(f"{where}: {values!r}, must be a mapping of {listed}".removeprefix(": "))
    wrong = (values.keys() - known) | (needed - values.keys())
    for name in sorted(wrong, key=str):
        fault = "missing" if name in known else f"unknown, must be one of {listed}"
        raise ValueError(f"{where}.{name}: {fault}".removeprefix("."))


def profile_path(name: str) -> Path:
    """Return the file of a shipped profile by its name; what ends in .yaml is the path of another.

    Raises:
        ValueError: there is no such file, or no such profile is shipped; lists those that are.
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
    """Read a profile. The key `like` names another one, whose fields hold where this one has none.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it is none; names file and field.
    """
    try:
        values = _read(path, ())
        needed = {field.name for field in fields(LinkProfile) if field.default is MISSING}
        _check_keys("", values, needed, {field.name for field in fields(LinkProfile)} | {LIKE})
        return LinkProfile(**values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _read(path: Path, before: tuple[Path, ...]) -> Any:
    """Return what a file says, on top of what it is like."""
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
        ValueError: there is no such profile, or it is none.
    """
    return load_profile(profile_path(name))
