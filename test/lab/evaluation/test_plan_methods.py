"""Names of methods that go on by plans."""

from __future__ import annotations

import re

import pytest

from adahi_ros.gates.gate_config import ThresholdedGate
from adahi_ros.lab.calibration.calibrate import searched_gates
from adahi_ros.lab.methods.methods import METHODS, gates_of_methods, parse_methods
from adahi_ros.lab.methods.plan_methods import PlanMethod, plan_method


def named(name: str) -> PlanMethod:
    method = METHODS[name]
    assert isinstance(method, PlanMethod)
    return method


@pytest.mark.parametrize(
    ("name", "proposer", "asks", "at"),
    [
        ("plan_8", "plan", "age", 7.0),
        ("corrector_12", "corrector", "age", 11.0),
        ("plan:surprise@2.5", "plan", "surprise", 2.5),
        ("corrector:random@.9", "corrector", "random", 0.9),
        ("corrector:expected_error", "corrector", "expected_error", None),
        ("plan:never", "plan", "never", 0.0),
        ("plan:online:gate=age:rate=0.2", "plan", "online", 0.0),
    ],
)
def test_a_name_says_who_acts_and_when_he_asks(name: str, proposer: str, asks: str, at: float | None) -> None:
    method = named(name)
    assert (method.proposer, method.asks, method.at) == (proposer, asks, at)
    assert parse_methods(f"{name},plan_2") == [name, "plan_2"]


def test_a_gate_is_given_its_arguments_by_name() -> None:
    method = named("corrector:surprise:file=out/gate.safetensors:pace=0.1@0.4")
    assert method.arguments == {"file": "out/gate.safetensors", "pace": 0.1}
    assert (method.asks, method.at) == ("surprise", 0.4)


@pytest.mark.parametrize(
    "name", ["plan:telepathy", "draft:surprise", "plan:surprise@high", "plan:surprise@", "plan:surprise:0.5"]
)
def test_what_is_no_such_name_is_no_method(name: str) -> None:
    assert plan_method(name) is None
    assert name not in METHODS


def test_a_threshold_that_is_not_given_is_searched_for_each_method() -> None:
    names = ["plan:surprise", "corrector:surprise", "plan:random", "plan:surprise@1", "plan:always", "plan_4"]
    searched = {name: name for name in names[:3]}
    assert gates_of_methods(names) == searched_gates(names) == searched


def test_arguments_that_a_gate_does_not_take_are_told() -> None:
    expected = "gate surprise: got an unexpected keyword argument 'file'; its arguments are: none"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        ThresholdedGate("surprise", arguments={"file": "x"})
