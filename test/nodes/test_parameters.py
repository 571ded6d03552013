"""Parameters on a real node: what rclpy has not accepted has no effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, dataclass
from pathlib import Path
from typing import Any

import pytest
from rcl_interfaces.msg import Parameter as Message
from rcl_interfaces.msg import ParameterValue, SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter as Value

from adahi_ros.core.registry import argument
from adahi_ros.nodes.common.parameters import (
    ParameterError,
    Parameters,
    arguments_of_named,
    filled,
    group,
    parameter,
    rows,
)
from test.nodes.conftest import Make

Given = Callable[[dict[str, Any]], Node]


@dataclass(frozen=True)
class Few:
    size: int = parameter(1, "A number", 0, 10, live=True)
    colour: str = parameter("red", "A choice", choices=("red", "green"))


@dataclass(frozen=True)
class Ends:
    names: tuple[str, ...] = parameter((), "Names")
    low: float = parameter(0.5, "Where it begins", 0.0, 1.0)


@dataclass(frozen=True)
class Late:
    high: float = parameter(1.0, "Where it ends")


@dataclass(frozen=True)
class Nested(Few):
    colour: str = parameter("green", "Another default", choices=("red", "green"))
    ends: Ends = group(Ends)
    joints: tuple[str, ...] = parameter(("elbow",), "Joints")
    rest: Late = group(Late, "ends")


@dataclass(frozen=True)
class Nothing: ...


@dataclass
class Plain:
    pace: float = argument(0.5, "How fast", 0.0, 1.0)


@dataclass
class Wrapping:
    base: str = argument("", "What it wraps", optional=True, names={"plain": Plain})
    share: float = argument(0.1, "How often", 0.0, 1.0)


KINDS = {"plain": Plain, "wrapping": Wrapping, "without": Nothing}


@dataclass(frozen=True)
class Gate:
    name: str = parameter("without", "Which", live=True, names=KINDS)
    arguments: Mapping[str, Any] = arguments_of_named("name")


@dataclass(frozen=True)
class Choosing:
    gate: Gate = group(Gate)


@dataclass(frozen=True)
class Shared(Gate):
    share: int = parameter(7, "Of the node, as an argument of Wrapping", 0, 9)


@dataclass(frozen=True)
class Taken:
    gate: Shared = group(Shared)


@pytest.fixture
def given(make_node: Make) -> Given:
    """From the values that a node is started with to the node."""
    return lambda values: make_node(Node, "parameters", given=values)


@pytest.fixture
def node(given: Given) -> Node:
    return given({"size": 99, "colour": "blue"})


def test_a_group_is_named_before_its_parameters_in_the_order_of_the_fields() -> None:
    declared = {row.name: row for row in rows(Nested)}
    assert list(declared) == ["size", "colour", "ends.names", "ends.low", "joints", "ends.high"]
    assert [row.default for row in declared.values()] == [1, "green", [""], 0.5, ["elbow"], 1.0]
    assert declared["size"].live
    assert declared["ends.low"].fault(float("nan")) == "ends.low: nan, must be from 0 to 1"


def test_values_are_filled_in_by_their_names_and_no_one_can_change_them() -> None:
    assert filled(Nested, {}) == Nested()
    found = filled(
        Nested, {"size": 2, "ends.high": 3.0, "ends.low": 0.25, "joints": [""], "ends.names": ["a"]}
    )
    assert found == Nested(2, "green", Ends(("a",), 0.25), (), Late(3.0))
    with pytest.raises(FrozenInstanceError):
        found.size = 3  # type: ignore[misc]


def test_what_a_node_reads_is_what_was_set(given: Given) -> None:
    node = given({"ends.low": 0.75, "ends.names": ["a", "b"], "joints": [""], "ends.high": 2.0})
    parameters = Parameters(node, Nested)
    assert parameters.read() == Nested(1, "green", Ends(("a", "b"), 0.75), (), Late(2.0))
    assert node.set_parameters([Value("ends.names", value=[""])])[0].successful
    assert parameters.read().ends == Ends((), 0.75)


def test_an_argument_with_the_name_of_a_parameter_is_refused(given: Given) -> None:
    node = given({"gate.name": "wrapping"})
    parameters = Parameters(node, Taken)
    with pytest.raises(ParameterError, match=r"^gate\.share: a parameter of the node, must be no argument"):
        parameters.read()
    assert node.set_parameters([Value("gate.name", value="plain")])[0].successful
    assert parameters.read().gate.share == 7


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("size", 99, "size: 99, must be from 0 to 10"),
        ("size", 1.0, "size: 1.0, must be from 0 to 10"),
        ("size", "many", "size: 'many', must be from 0 to 10"),
        ("ends.low", 7.0, "ends.low: 7.0, must be from 0 to 1"),
        ("ends.low", 1, "ends.low: 1, must be from 0 to 1, with a decimal point as in 1.0"),
    ],
)
def test_another_type_or_what_is_out_of_range_is_reported_in_one_sentence(
    given: Given, name: str, value: Any, says: str
) -> None:
    with pytest.raises(ParameterError) as noted:
        Parameters(given({name: value}), Nested).read()
    assert str(noted.value) == says


def test_what_another_refuses_is_not_taken_for_set(node: Node) -> None:
    parameters = Parameters(node, Few)
    refusing = True

    def other(values: list[Value]) -> SetParametersResult:
        return SetParametersResult(successful=not refusing, reason="not now")

    node.add_on_set_parameters_callback(other)
    node._on_set_parameters_callbacks.reverse()  # whichever is asked first
    good = [Value("size", value=3), Value("colour", value="green")]
    for _ in range(2):
        assert not node.set_parameters_atomically(good).successful
        assert not parameters.changed
        with pytest.raises(ParameterError, match=r"size.*99.*colour: 'blue', must be one of red, green"):
            parameters.read()
        node._on_set_parameters_callbacks.reverse()
    refusing = False
    assert node.set_parameters_atomically(good).successful
    assert parameters.changed
    assert parameters.read() == Few(3, "green")


def test_parameters_of_others_are_no_change(node: Node) -> None:
    parameters = Parameters(node, Few)
    node.declare_parameter("other", 1)
    assert node.set_parameters([Value("other", value=2)])[0].successful
    assert not parameters.changed


def test_a_dump_of_the_node_itself_can_be_loaded_while_it_is_frozen(node: Node) -> None:
    parameters = Parameters(node, Nested)
    assert all(
        each.successful
        for each in node.set_parameters([Value("size", value=2), Value("colour", value="red")])
    )
    names = [row.name for row in rows(Nested)]
    dump = node.get_parameters(names)
    parameters.frozen = True
    for each in dump:
        assert node.set_parameters([each])[0].successful, each.name
    assert not node.set_parameters([Value("joints", value=["wrist"])])[0].successful


def test_only_live_ones_can_be_set_while_frozen(node: Node) -> None:
    parameters = Parameters(node, Few)
    parameters.frozen = True
    assert not node.set_parameters([Value("colour", value="green")])[0].successful
    assert node.set_parameters([Value("size", value=2)])[0].successful
    assert parameters.changed


def test_what_no_parameter_is_named_like_is_reported_with_the_nearest(
    given: Given, capfd: pytest.CaptureFixture[str]
) -> None:
    unknown = {"colur": "red", "calibration.rate": 0.5, "use_sim_time": False, "semantic.file": "a"}
    Parameters(given(unknown), Few)
    output = capfd.readouterr().err
    assert "semantic.file (gone since 0.4.0; 0.3.0 last had it; use the rule hidden_states" in output
    assert "colur: no parameter of this node, ignored; did you mean colour?" in output
    assert "calibration" not in output
    assert "use_sim_time" not in output


def test_a_file_with_nothing_for_the_node_is_reported(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "robot.yaml"
    for name, noted in (("parametres", True), ("parameters", False)):
        file.write_text(f"{name}: {{ros__parameters: {{size: 2}}}}\n")
        monkeypatch.setattr("sys.argv", ["node", "--ros-args", "--params-file", str(file)])
        Parameters(node, Late if noted else Nothing)
        output = capfd.readouterr().err
        assert (f"{file}: nothing in it is for this node, ignored" in output) == noted
        assert ("its sections are for /parametres; must be for /parameters, or /**" in output) == noted


def test_a_value_of_an_unknown_type_is_refused_and_ends_nothing(node: Node) -> None:
    Parameters(node, Few)
    answer = {service.srv_type: service.callback for service in node.services}
    good = Message(name="size", value=ParameterValue(type=2, integer_value=3))
    for name in ("size", "\x1b[2J" * 1000):
        both = [good, Message(name=name, value=ParameterValue(type=99))]
        each: Any = answer[SetParameters](SetParameters.Request(parameters=both), SetParameters.Response())
        atomically: Any = answer[SetParametersAtomically](
            SetParametersAtomically.Request(parameters=both), SetParametersAtomically.Response()
        )
        for result in (*each.results, atomically.result):
            assert not result.successful
            assert result.reason.endswith("type 99, must be one from 0 to 9")
            assert result.reason.isprintable()
            assert len(result.reason) < 200
    assert node.get_parameter("size").value == 1
    alone: Any = answer[SetParameters](SetParameters.Request(parameters=[good]), SetParameters.Response())
    assert [each.successful for each in alone.results] == [True]
    assert node.get_parameter("size").value == 3


def test_what_a_parameter_names_has_its_arguments_as_parameters(node: Node) -> None:
    parameters = Parameters(node, Choosing)
    assert parameters.read().gate.arguments == {}
    parameters.frozen = True
    results = node.set_parameters([Value("gate.name", value="wrapping"), Value("gate.share", value=0.2)])
    results += node.set_parameters([Value("gate.base", value="plain"), Value("gate.pace", value=0.7)])
    assert all(result.successful for result in results)
    assert parameters.read().gate.arguments == {"base": "plain", "share": 0.2, "pace": 0.7}
    (refused,) = node.set_parameters([Value("gate.share", value=2.0)])
    assert not refused.successful
    node.set_parameters([Value("gate.name", value="plain")])
    assert parameters.read().gate.arguments == {"pace": 0.7}
