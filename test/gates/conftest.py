from __future__ import annotations

from collections.abc import Callable

import pytest

from adahi_ros.gates.gate_config import ThresholdedGate
from adahi_ros.gates.interface import Gate

ARGUMENTS = {"online": {"gate": "deviation", "rate": 0.1}}


@pytest.fixture
def made() -> Callable[[str], Gate]:
    """Makes any gate that there is."""
    return lambda name: ThresholdedGate(name, arguments=ARGUMENTS.get(name, {})).gate
