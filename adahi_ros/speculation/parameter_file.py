"""A calibration as a ROS parameter file: what the draft policy node reads, and where it came from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from adahi_ros.speculation.controller import ControllerConfig
from adahi_ros.speculation.gates import GATES, Gate

HEADER = "# Written by: {command}\n"


@dataclass(frozen=True)
class Calibration:
    """Thresholds of every gate for one transmission rate, on one pair of policies.

    Attributes:
        task: registry name.
        tokenizer_fingerprint: of the policies that it was measured on.
        smoothing, normalization: of the action deviation.
        draft_temperature: at which the draft sampled.
        transmission_rate: that was asked for.
        thresholds: by gate.
        figures: what was measured, for people and pictures.
    """

    task: str
    tokenizer_fingerprint: str
    smoothing: float
    normalization: str
    draft_temperature: float
    transmission_rate: float
    thresholds: dict[str, float]
    figures: dict[str, Any] = field(default_factory=dict)

    def controller(self, gate: str) -> ControllerConfig:
        """Return the configuration of a controller with this gate."""
        return ControllerConfig(
            Gate(gate, self.thresholds.get(gate, 0.0)),
            self.smoothing,
            self.normalization,
            self.draft_temperature,
        )

    def save(self, path: Path, gate: str, command: str) -> None:
        """Write the parameter file of a draft policy node with this gate."""
        parameters = {
            "gate": {"name": gate, "threshold": self.thresholds[gate]},
            "deviation": {"smoothing": self.smoothing, "normalization": self.normalization},
            "draft_temperature": self.draft_temperature,
            "calibration": {
                "task": self.task,
                "tokenizer_fingerprint": self.tokenizer_fingerprint,
                "transmission_rate": self.transmission_rate,
                "thresholds": self.thresholds,
                **self.figures,
            },
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(
            {"/**": {"ros__parameters": parameters}}, sort_keys=False, default_flow_style=None
        )
        path.write_text(HEADER.format(command=command) + text)


def load_calibration(path: Path) -> Calibration:
    """Read a parameter file that `Calibration.save` wrote.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it is no such file; names file and field.
    """
    try:
        parameters = yaml.safe_load(path.read_text())["/**"]["ros__parameters"]
        origin = dict(parameters["calibration"])
        calibration = Calibration(
            task=origin.pop("task"),
            tokenizer_fingerprint=origin.pop("tokenizer_fingerprint"),
            smoothing=parameters["deviation"]["smoothing"],
            normalization=parameters["deviation"]["normalization"],
            draft_temperature=parameters["draft_temperature"],
            transmission_rate=origin.pop("transmission_rate"),
            thresholds=origin.pop("thresholds"),
            figures=origin,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a calibration: {error} is missing or of the wrong kind") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not YAML ({error})") from None
    for gate, threshold in calibration.thresholds.items():
        if gate not in GATES or not isinstance(threshold, float) or not math.isfinite(threshold):
            raise ValueError(
                f"{path}: thresholds.{gate}: {threshold!r}, must be a finite number of a known gate"
            )
    return calibration
