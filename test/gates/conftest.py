from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adahi_ros.gates.gate_config import ThresholdedGate
from adahi_ros.gates.interface import Gate
from adahi_ros.gates.learned import SIGNS, HarmModel, save_harm_model


@pytest.fixture(scope="session")
def harm_model() -> HarmModel:
    """One unit, which looks at every sign; twice its prediction is the harm."""
    signs, units = len(SIGNS), np.ones(1)
    weights = np.full((1, signs), 0.1), np.zeros(1), np.ones((1, 1)), np.zeros(1)
    return HarmModel(
        np.zeros(signs), np.ones(signs), *weights, np.array([0.0, 1.0]), np.array([0.0, 2.0]) * units
    )


@pytest.fixture(scope="session")
def harm_file(harm_model: HarmModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gate") / "gate.safetensors"
    save_harm_model(path, harm_model)
    return path


class Made:
    """Makes any gate that there is."""

    def __init__(self, harm_file: Path) -> None:
        self._arguments: dict[str, dict[str, Any]] = {
            "learned": {"file": str(harm_file)},
            "online": {"gate": "deviation", "rate": 0.1},
        }

    def __call__(self, name: str) -> Gate:
        return ThresholdedGate(name, arguments=self._arguments.get(name, {})).gate


@pytest.fixture
def made(harm_file: Path) -> Made:
    return Made(harm_file)
