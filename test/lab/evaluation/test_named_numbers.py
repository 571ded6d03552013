"""Whatever is given as a method is one, or is refused by a text that people can read."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.gates.gate_config import ThresholdedGate
from adahi_ros.gates.registry import GATES
from adahi_ros.lab.methods.methods import METHODS, parse_methods
from adahi_ros.lab.methods.named_numbers import LONGEST, named_number
from adahi_ros.lab.methods.plan_methods import PlanMethod

NUMBERS = st.one_of(
    st.sampled_from(["nan", "-inf", "Infinity", "1e400", "9" * 400, "0." + "1" * 400, "1_0", "", "-", "١"]),
    st.floats().map(str),
    st.integers(-(10**40), 10**40).map(str),
    st.text(max_size=8),
)
WORDS = st.one_of(
    st.sampled_from([*METHODS, *GATES, "plan", "corrector", "oracle", "draft", "x.py"]), st.text(max_size=6)
)
ARGUMENTS = st.lists(
    st.tuples(st.sampled_from(["file", "rate", "gate", "tolerance", "first", "wrong"]), NUMBERS), max_size=3
)


def refusal(call: Callable[[], object]) -> str:
    """Return what a user is told of a call; empty where it succeeds. Another error is a traceback to him."""
    try:
        call()
    except (ValueError, OSError) as error:
        return str(error)
    return ""


@st.composite
def names(draw: st.DrawFn) -> str:
    head = ":".join(draw(st.lists(WORDS, min_size=1, max_size=3)))
    arguments = "".join(f":{name}={value}" for name, value in draw(ARGUMENTS))
    return f"{head}{draw(st.sampled_from(['', '_', '+', '@']))}{draw(NUMBERS)}{arguments}@{draw(NUMBERS)}"


@given(name=st.one_of(names(), st.text(max_size=30)), on_air=st.booleans(), own=st.booleans())
def test_a_name_is_a_method_or_is_refused_by_a_text(name: str, on_air: bool, own: bool) -> None:
    said = refusal(lambda: parse_methods(name, on_air, own))
    assert said.isprintable()
    assert not said or "must" in said or "no such file" in said


@given(
    proposer=st.sampled_from(["plan", "corrector"]), gate=st.sampled_from(sorted(GATES)), arguments=ARGUMENTS
)
def test_a_gate_of_any_arguments_is_made_or_is_refused_by_a_text(
    proposer: str, gate: str, arguments: list[tuple[str, str]]
) -> None:
    name = f"{proposer}:{gate}" + "".join(f":{key}={value}" for key, value in arguments)
    with suppress(KeyError, ValueError):
        method = METHODS[name]
        assert isinstance(method, PlanMethod)
        refusal(lambda: ThresholdedGate(method.asks, 0.0, arguments=method.arguments))


@pytest.mark.parametrize("number", ["9" * 400, "0" * 33])
@pytest.mark.parametrize("name", ["oracle:plan", "plan:age", "gate.py:Gate"])
def test_a_number_without_an_end_is_refused_at_bearable_length(name: str, number: str) -> None:
    with pytest.raises(ValueError, match=r": threshold: [09. ]+, must be a finite number") as refused:
        parse_methods(f"{name}@{number}", own=True)
    assert len(str(refused.value)) < 300


def test_an_argument_must_be_finite_and_there_once() -> None:
    with pytest.raises(ValueError, match=r"^plan:online:rate=nan: rate: nan, must be a finite number"):
        parse_methods("plan:online:rate=nan")
    with pytest.raises(ValueError, match="must not name an argument twice"):
        parse_methods("plan:online:gate=age:rate=0.1:rate=0.2")


def test_a_text_in_the_place_of_a_number_is_told_by_the_gate() -> None:
    with pytest.raises(ValueError, match=re.escape("gate adaptive_age: '<' not supported")):
        ThresholdedGate("adaptive_age", arguments={"tolerance": "low"})


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_every_other_number_is_read(number: float) -> None:
    assert named_number("plan", "at", repr(number)) == number
    assert len(repr(number)) <= LONGEST
