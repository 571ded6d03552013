# SPDX-License-Identifier: Apache-2.0
"""A trace of the spot market: prices and revocations of instance types, recorded or made.

The shipped trace is not a record of any cloud: `adahi lab spot --make config/spot/made.json` made it.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic.dataclasses import dataclass

from adahi_ros.core.files import read_bytes
from adahi_ros.core.schema import Listed, Schema, Text, above, checked, within
from adahi_ros.core.written_files import replacing

LARGEST_BYTES = 64 * 2**20
MOST_TYPES = 256
MINUTES = 15
DAYS = 28
MADE = (  # name, work in an hour (1: the slowest), price of an hour on demand
    ("small", 1.0, 0.10),
    ("medium", 1.9, 0.20),
    ("large", 3.5, 0.40),
    ("wide", 2.6, 0.34),
    ("gpu-small", 6.0, 0.75),
    ("gpu-large", 11.0, 1.50),
)


@dataclass(frozen=True)
class InstanceType(Schema):
    """An instance type with its history.

    Attributes:
        name: of the type.
        speed: work that it does in an hour.
        on_demand: price of an hour without revocations.
        prices: spot price of an hour, in each period.
        revoked: periods, rising; at the end of each the cloud takes its spot instances back.
    """

    name: Text
    speed: Annotated[float, above(0.0)]
    on_demand: Annotated[float, above(0.0)]
    prices: Listed[Annotated[float, above(0.0)]]
    revoked: Listed[int] = ()


@dataclass(frozen=True)
class SpotTrace(Schema):
    """Prices and revocations of instance types at the same times.

    Attributes:
        minutes: length of a period.
        types: as many prices each.
    """

    minutes: Annotated[int, within(1, 60, "an integer")]
    types: Listed[InstanceType]

    def __post_init__(self) -> None:
        lengths = {len(each.prices) for each in self.types}
        if not 1 <= len(self.types) <= MOST_TYPES or len(lengths) != 1 or 60 % self.minutes:
            raise ValueError(
                f"types: {len(self.types)} with {sorted(lengths)} prices, must be 1 to {MOST_TYPES} with as "
                f"many prices each; minutes: {self.minutes}, must divide 60"
            )
        for each in self.types:
            if list(each.revoked) != sorted({*each.revoked} & {*range(self.periods)}):
                raise ValueError(f"revoked: of {each.name}, must be rising periods below {self.periods}")

    @property
    def periods(self) -> int:
        """Number of periods."""
        return len(self.types[0].prices)

    @property
    def hour(self) -> int:
        """Periods in an hour."""
        return 60 // self.minutes

    @cached_property
    def prices(self) -> np.ndarray:
        """Prices (K, T) of an hour."""
        return np.array([each.prices for each in self.types])

    @cached_property
    def revoked(self) -> np.ndarray:
        """Whether instances are taken back at the end of a period, (K, T)."""
        found = np.zeros((len(self.types), self.periods), dtype=bool)
        for row, each in zip(found, self.types, strict=True):
            row[list(each.revoked)] = True
        return found

    def save(self, path: Path) -> None:
        """Write it atomically."""
        with replacing(path) as partial:
            partial.write_text(json.dumps(asdict(self), separators=(",", ":")) + "\n")


def load_trace(path: Path) -> SpotTrace:
    """Read a trace.

    Raises:
        ValueError: it is no trace; names the file, the field, its value and what is allowed.
        FileNotFoundError: there is no such file.
    """
    try:
        return checked(SpotTrace, json.loads(read_bytes(path, LARGEST_BYTES)))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def made_trace(seed: int, days: int = DAYS) -> SpotTrace:
    """Make a trace: daily demand, slow noise, and squeezes in which a price rises for hours.

    Instances are taken back mostly late in a squeeze, so a rising price warns of it. That is an assumption
    about markets, not a finding: results on this trace show the mechanism, not a saving in any cloud.
    """
    draw = np.random.default_rng(seed)
    periods, hour = days * 24 * 60 // MINUTES, 60 // MINUTES
    types = []
    for name, speed, on_demand in MADE:
        time_h = np.arange(periods) / hour
        noise = np.zeros(periods)
        for now in range(1, periods):
            noise[now] = 0.98 * noise[now - 1] + draw.normal(0.0, 0.015)
        daily = 0.1 * np.sin(2 * np.pi * (time_h / 24 + draw.uniform()))
        squeeze = np.zeros(periods)
        start = int(draw.exponential(20 * hour))
        while start < periods:
            rise, peak = int(draw.uniform(2, 5) * hour), draw.uniform(0.5, 1.3)
            shape = np.concatenate([np.linspace(0, peak, rise), np.linspace(peak, 0, 2 * rise)])
            length = min(len(shape), periods - start)
            squeeze[start : start + length] += shape[:length]
            start += len(shape) + int(draw.exponential(24 * hour))
        hazard = np.where(squeeze > 0.35, 0.12 * squeeze, 0.0005)
        revoked = np.flatnonzero(draw.random(periods) < hazard)
        share = draw.uniform(0.25, 0.35) * np.exp(noise + daily + squeeze)
        prices = np.minimum(on_demand * share, 1.2 * on_demand)
        types.append(
            InstanceType(name, speed, on_demand, tuple(np.round(prices, 4).tolist()), tuple(revoked.tolist()))
        )
    return SpotTrace(MINUTES, tuple(types))
