"""What a link is like, as a YAML file."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path

import yaml


@dataclass(frozen=True)
class LinkProfile:
    """A link between a robot and a server.

    Attributes:
        rtt_mean_ms: mean round-trip time of a small packet.
        rtt_jitter_ms: its standard deviation.
        rate_mbit_s: what it carries, each way.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """

    rtt_mean_ms: float
    rtt_jitter_ms: float
    rate_mbit_s: float

    def __post_init__(self) -> None:
        for name in ("rtt_mean_ms", "rtt_jitter_ms", "rate_mbit_s"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise ValueError(f"{name}: {value!r}, must be a finite number")
            if value < 0 or (value == 0 and name == "rate_mbit_s"):
                allowed = "above 0" if name == "rate_mbit_s" else "at least 0"
                raise ValueError(f"{name}: {value}, must be {allowed}")

    def transfer_ms(self, size_bytes: float) -> float:
        """Return how long so many bytes take at the link's rate."""
        return size_bytes * 8e-3 / self.rate_mbit_s


def load_profile(path: Path) -> LinkProfile:
    """Read a profile.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it is none; names file and field.
    """
    try:
        values = yaml.safe_load(path.read_text())
        names = {field.name for field in fields(LinkProfile)}
        if not isinstance(values, dict):
            raise ValueError(f"{values!r}, must be a mapping of {', '.join(sorted(names))}")
        for name in sorted(names ^ values.keys(), key=str):
            fault = "missing" if name in names else f"unknown, must be one of {', '.join(sorted(names))}"
            raise ValueError(f"{name}: {fault}")
        return LinkProfile(**values)
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
