"""Parameters on a real node: what rclpy has not accepted has no effect."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rcl_interfaces.msg import Parameter as Message
from rcl_interfaces.msg import ParameterValue, SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter as Value

from adahi_ros.nodes.common.parameters import Parameter, ParameterError, Parameters
from adahi_ros.nodes.launching.domain import exclusive_domain
from adahi_ros.nodes.launching.observer import Observer

TABLE = (
    Parameter("size", 1, "A number", 0, 10, live=True),
    Parameter("colour", "red", "A choice", choices=("red", "green")),
)


@pytest.fixture
def node() -> Iterator[Node]:
    with exclusive_domain() as domain:
        observer = Observer(domain, "watcher")
        node = Node(
            "parameters",
            context=observer.context,
            use_global_arguments=False,
            parameter_overrides=[Value("size", value=99), Value("colour", value="blue")],
        )
        yield node
        node.destroy_node()
        observer.close()


def test_what_another_refuses_is_not_taken_for_set(node: Node) -> None:
    parameters = Parameters(node, TABLE)
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
    assert parameters.read() == {"size": 3, "colour": "green"}


def test_parameters_of_others_are_no_change(node: Node) -> None:
    parameters = Parameters(node, TABLE)
    node.declare_parameter("other", 1)
    assert node.set_parameters([Value("other", value=2)])[0].successful
    assert not parameters.changed


def test_only_live_ones_can_be_set_while_frozen(node: Node) -> None:
    parameters = Parameters(node, TABLE)
    parameters.frozen = True
    assert not node.set_parameters([Value("colour", value="green")])[0].successful
    assert node.set_parameters([Value("size", value=2)])[0].successful
    assert parameters.changed


def test_what_no_parameter_is_named_like_is_told_with_the_nearest(capfd: pytest.CaptureFixture[str]) -> None:
    with exclusive_domain() as domain:
        observer = Observer(domain, "watcher")
        given = {"colur": "red", "calibration.rate": 0.5, "use_sim_time": False}
        node = Node(
            "parameters",
            context=observer.context,
            use_global_arguments=False,
            parameter_overrides=[Value(name, value=value) for name, value in given.items()],
        )
        Parameters(node, TABLE)
        node.destroy_node()
        observer.close()
    said = capfd.readouterr().err
    assert "colur: no parameter of this node, ignored; did you mean colour?" in said
    assert "calibration" not in said
    assert "use_sim_time" not in said


def test_a_value_of_an_unknown_type_is_refused_and_ends_nothing(node: Node) -> None:
    Parameters(node, TABLE)
    answer = {service.srv_type: service.callback for service in node.services}
    good = Message(name="size", value=ParameterValue(type=2, integer_value=3))
    for name in ("size", "\x1b[2J" * 1000):
        both = [good, Message(name=name, value=ParameterValue(type=99))]
        each = answer[SetParameters](SetParameters.Request(parameters=both), SetParameters.Response())
        atomically = answer[SetParametersAtomically](
            SetParametersAtomically.Request(parameters=both), SetParametersAtomically.Response()
        )
        for result in (*each.results, atomically.result):
            assert not result.successful
            assert result.reason.endswith("type 99, must be one from 0 to 9")
            assert result.reason.isprintable()
            assert len(result.reason) < 200
    assert node.get_parameter("size").value == 1
    (alone,) = answer[SetParameters](
        SetParameters.Request(parameters=[good]), SetParameters.Response()
    ).results
    assert alone.successful
    assert node.get_parameter("size").value == 3
