# SPDX-License-Identifier: Apache-2.0
"""A calibration as a ROS parameter file: the draft policy node's parameters, and their origin."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import yaml

from adahi_ros.core.parameter_sections import PARAMETERS
from adahi_ros.core.written_files import replacing
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.proposers.draft import ACTIONS, REPLIES

T = TypeVar("T")

HEADER = "# Written by: {command}\n"
ROBOT, VERIFIER = "/**/draft_policy", "/**/target_verifier"
WITHOUT_THRESHOLD = ("always", "never")  # decide the same at any threshold
ORACLE = "oracle"  # a gate that knows the target's reply, in evaluations alone
ORIGIN_FIELDS = ("task", "draft", "target", "transmission_rate", "thresholds")


def threshold_key(gate: str, reply: str) -> str:
    """Return the key of a gate's threshold: it depends on what a robot with drafts executes of replies.

    Args:
        gate: a key of `GATES`, or `ORACLE`.
        reply: one of `REPLIES`.
    """
    return gate if reply == ACTIONS else f"{gate}_{reply}"


@dataclass(frozen=True)
class Calibration:
    """Thresholds of every gate for one transmission rate, on one pair of policies.

    Attributes:
        task: its spec's name.
        draft, target: digests of the measured policies.
        smoothing, normalization: of the action deviation.
        draft_temperature: of the draft's sampling.
        transmission_rate: the requested one.
        thresholds: by `threshold_key`.
        figures: measured figures, for reports and pictures.
    """

    task: str
    draft: str
    target: str
    smoothing: float
    normalization: str
    draft_temperature: float
    transmission_rate: float
    thresholds: dict[str, float]
    figures: dict[str, Any] = field(default_factory=dict)

    def threshold(self, gate: str) -> float:
        """Return a gate's threshold; 0 for a gate without one.

        Raises:
            ValueError: the gate was not calibrated.
        """
        if gate in self.thresholds or gate in WITHOUT_THRESHOLD:
            return self.thresholds.get(gate, 0.0)
        raise ValueError(
            f"thresholds.{gate}: missing, the calibration has {', '.join(self.thresholds)}; give one, as in "
            f"draft+{gate}@0.5/speculative, or let 'adahi evaluate' search one for a rate (--rate)"
        )

    def controller(self, gate: str) -> ControllerConfig:
        """Return the configuration of a controller with this gate.

        Args:
            gate: a key of `GATES`, or a `threshold_key` with one.

        Raises:
            ValueError: the gate does not exist, or was not calibrated.
        """
        named, _, reply = gate.rpartition("_")
        return ControllerConfig(
            ThresholdedGate(named if reply in REPLIES else gate, self.threshold(gate)),
            self.smoothing,
            self.normalization,
            self.draft_temperature,
        )

    def save(
        self,
        path: Path,
        gate: str,
        command: str,
        node: Mapping[str, object] = MappingProxyType({}),
        verifier: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Write the parameter file of a draft policy node, and of its verifier.

        Args:
            path: of the file.
            gate: of the node, where `node` has none.
            command: that made this, as a note.
            node: further parameters of the node.
            verifier: parameters of the verifier, if in the same file.
        """
        parameters = {
            **node,
            "gate": node.get("gate") or {"name": gate, "threshold": self.thresholds[gate]},
            "deviation": {"smoothing": self.smoothing, "normalization": self.normalization},
            "draft_temperature": self.draft_temperature,
            "calibration": {
                "task": self.task,
                "draft": self.draft,
                "target": self.target,
                "transmission_rate": self.transmission_rate,
                "thresholds": self.thresholds,
                **self.figures,
            },
        }
        nodes = {ROBOT: parameters, VERIFIER: verifier} if verifier else {"/**": parameters}
        document = {name: {PARAMETERS: dict(values)} for name, values in nodes.items()}
        text = yaml.safe_dump(document, sort_keys=False, default_flow_style=None)
        with replacing(path) as partial:
            partial.write_text(HEADER.format(command=command) + text)


KINDS: dict[type, str] = {
    str: "a string",
    float: "a finite floating-point number, such as 1.0",
    dict: "a mapping",
}


def _read(tree: object, kind: type[T], *names: str) -> T:
    for depth, name in enumerate(names, start=1):
        if not isinstance(tree, dict) or name not in tree:
            raise ValueError(f"{'.'.join(names[:depth])}: missing")
        tree = tree[name]
    if not isinstance(tree, kind) or (isinstance(tree, float) and not math.isfinite(tree)):
        raise ValueError(f"{'.'.join(names)}: {tree!r}, must be {KINDS[kind]}")
    return tree


def _calibration(document: object) -> Calibration:
    section = ROBOT if isinstance(document, dict) and ROBOT in document else "/**"
    parameters = _read(document, dict, section, PARAMETERS)
    origin = _read(parameters, dict, "calibration")
    gates = _read(parameters, dict, "calibration", "thresholds")
    calibration = Calibration(
        task=_read(parameters, str, "calibration", "task"),
        draft=_read(parameters, str, "calibration", "draft"),
        target=_read(parameters, str, "calibration", "target"),
        smoothing=_read(parameters, float, "deviation", "smoothing"),
        normalization=_read(parameters, str, "deviation", "normalization"),
        draft_temperature=_read(parameters, float, "draft_temperature"),
        transmission_rate=_read(parameters, float, "calibration", "transmission_rate"),
        thresholds={gate: _read(parameters, float, "calibration", "thresholds", gate) for gate in gates},
        figures={name: value for name, value in origin.items() if name not in ORIGIN_FIELDS},
    )
    for gate in ("always", *gates):
        if gate != ORACLE:
            calibration.controller(gate)  # checks its content
    return calibration


def load_calibration(path: Path) -> Calibration:
    """Read a parameter file of `Calibration.save`.

    Raises:
        FileNotFoundError: no such file.
        ValueError: its content is not valid; names file and field.
    """
    try:
        return _calibration(read_yaml(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
