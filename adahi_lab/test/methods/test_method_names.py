"""Names of methods: each is read as one method, or is refused by a text that people can read."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_lab.calibration.calibrate import searched_gates
from adahi_lab.methods.method_names import GRAMMAR, ORACLE_GRAMMAR, printed
from adahi_lab.methods.methods import METHODS, for_task, gated, gates_of_methods, parse_methods
from adahi_ros.gates.gate_config import ThresholdedGate
from adahi_ros.gates.registry import GATES

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
    message = refusal(lambda: parse_methods(name, on_air, own))
    assert message.isprintable()
    assert not message or "must" in message or "no such file" in message


@given(
    proposer=st.sampled_from(["plan", "corrector"]), gate=st.sampled_from(sorted(GATES)), arguments=ARGUMENTS
)
def test_a_gate_of_any_arguments_is_made_or_is_refused_by_a_text(
    proposer: str, gate: str, arguments: list[tuple[str, str]]
) -> None:
    name = f"{proposer}:{gate}" + "".join(f":{key}={value}" for key, value in arguments)
    with suppress(KeyError, ValueError):
        method = METHODS[name]
        refusal(lambda: ThresholdedGate(method.gate, 0.0, arguments=method.gate_arguments))


@pytest.mark.parametrize("number", ["9" * 400, "0" * 33])
@pytest.mark.parametrize("name", ["plan:age", "gate.py:Gate"])
def test_a_number_without_an_end_is_refused_at_bearable_length(name: str, number: str) -> None:
    with pytest.raises(ValueError, match=r": threshold: [09. ]+, must be a finite number") as refused:
        parse_methods(f"{name}@{number}", own=True)
    assert len(str(refused.value)) < 300


def test_an_argument_must_be_finite_and_there_once() -> None:
    with pytest.raises(ValueError, match=r"^plan:online:rate=nan: rate: nan, must be a finite number"):
        parse_methods("plan:online:rate=nan")
    with pytest.raises(ValueError, match="must not name an argument twice"):
        parse_methods("plan:online:gate=age:rate=0.1:rate=0.2")


def test_a_text_in_the_place_of_a_number_is_reported_by_the_gate() -> None:
    with pytest.raises(ValueError, match=re.escape("gate online: '<' not supported")):
        ThresholdedGate("online", arguments={"base": "age", "rate": "low"})


def test_methods_are_split_at_commas() -> None:
    assert parse_methods(" adahi, oracle,adahi,") == ["adahi", "oracle"]
    assert parse_methods(" adahi, draft,", on_air=True) == ["adahi", "draft"]


@pytest.mark.parametrize(
    ("text", "named"), [("adahi,telepathy", "telepathy"), ("a,adahi,b", "a, b"), (" ,", " ,")]
)
def test_what_is_no_method_is_named(text: str, named: str) -> None:
    expected = f"methods: {named!r}, must be of {', '.join(METHODS)}, or {GRAMMAR}, or {ORACLE_GRAMMAR}"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        parse_methods(text)


@pytest.mark.parametrize(
    ("name", "by_the_grammar"),
    [
        ("adahi", "draft+deviation/speculative"),
        ("random:replace", "draft+random/replace"),
        ("draft", "draft+never@0/speculative"),
        ("target", "draft+always@0/replace"),
        ("random_cool", "draft:temperature=0.3+random/speculative"),
        ("distilled", "distilled+never@0/replace"),
        ("corrector_8", "corrector+age@7/replace"),
        ("intent_5", "intent+age@4/replace"),
        ("corrector_8+4", "corrector:delay=4+age@7/replace"),
        ("plan_16+12:continue", "plan:delay=12:agreement=continue+age@15/replace"),
        ("plan_1+1:none", "plan:delay=1+age@0/replace"),
        ("temporal_ensemble_1", "plan:blend=temporal_ensemble+age@0/replace"),
        ("corrector:random@.9", "corrector+random@0.9/replace"),
        ("plan:expected_error", "plan+expected_error/replace"),
        ("plan:online:gate=age:rate=0.2", "plan+online:gate=age:rate=0.2@0/replace"),
        ("draft_checks_plan:expected_error@1.5", "draft_checks_plan+expected_error@1.5/replace"),
        ("plan_8+1:choose", "plan:delay=1:agreement=choose+age@7/replace"),
        ("crossfade_4", "plan:blend=crossfade+age@3/replace"),
        ("heisd", "tool_path:file={checkpoints}/retrieval+expected_error@0/blocks"),
        ("pipeinfer", "plan:wait=wait+never@0/likeliest"),
        ("dsi", "plan:wait=wait:verifiers=2+never@0/likeliest"),
        ("kerv", "compensated+always@0/compensated"),
        ("plan:wait=wait", "plan:wait=wait+never@0/replace"),
        ("intent", "intent:steps=400+never@0/replace"),
    ],
)
def test_a_name_is_printed_by_the_grammar_and_read_again(name: str, by_the_grammar: str) -> None:
    method = METHODS[name]
    assert printed(method) == by_the_grammar
    again = METHODS[by_the_grammar]
    its = {each: getattr(method, each) for each in ("name", "label", "about", "checkpoints", "backend")}
    assert replace(again, **its) == method


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("plan:horizon=8+age@3", "horizon: unknown, must be one of delay, blend, agreement, wait"),
        ("plan:delay=100+age@3", "delay: 100, must be a whole number from 1 to 99"),
        ("plan:blend=median+age@3", "blend: 'median', must be one of latest, "),
        ("draft:temperature=0+random", "temperature: 0, must be a number above 0"),
        ("draft:delay=1+always", "delay: unknown, must be one of horizon, temperature"),
        (
            "plan+age@3/speculative",
            "rule: speculative, must be replace or likeliest where plans are executed",
        ),
    ],
)
def test_an_argument_that_a_proposer_does_not_take_is_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(f'{name}: {message}')}"):
        parse_methods(name)


def test_a_method_is_named_as_it_is_on_a_task() -> None:
    text = "adahi,never:hidden_states:file={checkpoints}/head.safetensors,self_correcting:file={task}+never"
    assert for_task(text, "ball", Path("my/ball")) == (
        "adahi,never:hidden_states:file=my/ball/head.safetensors,self_correcting:file=ball+never"
    )


@pytest.mark.parametrize(
    "name",
    [
        *("age", "age:nothing", "nothing:replace", "age:replace:no", "age:replace:plan:", "draft:age:0.5"),
        *("plan_0", "plan_", "plan_8+", "plan_8+0", "plan_8+100", "plan_8:continue", "plan_8+4:guess"),
        *(
            "plan_8+4:",
            "draft_8",
            "latest_4",
            "crossfade_0",
            "median_4",
            "draft_checks_plan:age@x",
            "plan_1.5",
        ),
        *("plan:telepathy", "plan:age@high", "plan:age@", "plan:age:0.5"),
        *("compensated_", "compensated_8:age@1", "kerv_8", "compensated:luck", "compensated:age/luck@1"),
        *("draft+", "draft+age/", "draft+age@", "draft+age/luck", "+age", "draft/luck", "draft+age+age"),
    ],
)
def test_what_is_no_such_name_is_no_method(name: str) -> None:
    assert name not in METHODS
    with pytest.raises(
        ValueError, match=rf"^methods: {re.escape(repr(name))}( \(did you mean .*\))?, must be of"
    ) as refused:
        parse_methods(name)
    assert "plan_K+L:AGREEMENT, with L from 1 to 99" in str(refused.value)
    assert "AGREEMENT of none, continue, choose" in str(refused.value)


def test_only_the_draft_itself_learns_from_replies_to_its_drafts() -> None:
    assert gated("random:replace") == METHODS["random:replace"]
    with pytest.raises(ValueError, match="methods: age:replace:compensated, must be one that drafts"):
        gated("age:replace:compensated")


def test_a_threshold_that_is_not_given_is_searched_for_each_method() -> None:
    names = ["plan:expected_error", "corrector:age", "plan:random", "tool_path+expected_error"]
    others = ["plan:age@1", "plan:always", "plan_4", "heisd", "kerv", "best"]
    searched = {name: name for name in names}
    assert gates_of_methods([*names, *others]) == searched_gates([*names, *others]) == searched


def test_arguments_that_a_gate_does_not_take_are_refused() -> None:
    expected = "gate age: got an unexpected keyword argument 'file'; its arguments are: none"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        ThresholdedGate("age", arguments={"file": "x"})
