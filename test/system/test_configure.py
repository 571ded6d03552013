"""Wrong parameters are refused by name, value and what is allowed, and can be put right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import DescribeParameters, SetParameters
from rclpy.parameter import Parameter

from adahi_lab.evaluation.plain_contract import plain_values
from adahi_ros.nodes.launching.child_processes import NodeProcess
from test.system.stage import Stage


@pytest.fixture(scope="module")
def process(stage: Stage) -> NodeProcess:
    """A draft policy node with several wrong parameters."""
    return stage.start(
        "draft_policy_node",
        checkpoint="/nowhere/draft",
        backend="tensorrt",
        deadline_s=-1.0,
        draft_temperature=2,
        contract="kitchen",
        safety__limits="none",
    )


def put_right(stage: Stage, name: str, value: object) -> None:
    """Set a parameter of the draft policy."""
    parameter = Parameter(name, value=value).to_parameter_msg()
    set_parameters = stage.client(SetParameters, "draft_policy/set_parameters")
    (result,) = set_parameters(SetParameters.Request(parameters=[parameter])).results
    assert result.successful, result.reason


def test_the_draft_policy_is_configured_once_everything_is_right(
    stage: Stage, process: NodeProcess, exported: Path
) -> None:
    def refused_with(*words: str) -> None:
        before = len(process.output)
        assert not stage.change_state("configure")
        message = process.output[before:]
        assert "[ERROR]" in message
        for word in words:
            assert word in message

    refused_with("backend: 'tensorrt', must be one of int8, onnxruntime, torch")
    refused_with("deadline_s", "-1.0", "from 0.001 to 60")
    refused_with("draft_temperature: 2, must be from 0.001 to 100, with a decimal point")
    put_right(stage, "backend", "onnxruntime")
    put_right(stage, "deadline_s", 0.02)
    put_right(stage, "draft_temperature", 2.0)
    refused_with("checkpoint: '/nowhere/draft'", "no such checkpoint")
    put_right(stage, "checkpoint", str(exported / "draft"))
    refused_with("contract: 'kitchen', its goal has 0 entries, must be 2")
    put_right(stage, "contract", "ball")
    assert stage.change_state("configure")
    assert stage.change_state("cleanup")
    assert "Traceback" not in process.output


def test_an_impossible_transition_is_answered(stage: Stage, process: NodeProcess) -> None:
    change_state = stage.client(ChangeState, "draft_policy/change_state")
    impossible = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_DEACTIVATE))
    assert not change_state(impossible).success
    assert not change_state(impossible).success
    assert process.exit_code is None


def test_every_parameter_is_described(stage: Stage, process: NodeProcess) -> None:
    describe = stage.client(DescribeParameters, "draft_policy/describe_parameters")
    names = ["deadline_s", "gate.name", "gate.threshold", "contract", "seed", "robot_id"]
    described = describe(DescribeParameters.Request(names=names)).descriptors
    for name, descriptor in zip(names, described, strict=True):
        assert descriptor.name == name
        assert descriptor.description
        assert descriptor.additional_constraints
    assert described[0].floating_point_range[0].to_value == 60.0
    assert described[4].integer_range[0].from_value == 0


def test_a_node_starts_by_itself_where_it_is_to(stage: Stage, exported: Path) -> None:
    given = {"checkpoint": str(exported / "draft"), "contract": "ball", "safety__limits": "none"}
    # beside the node of other tests, which has its name
    process = stage.start("draft_policy_node", autostart=True, namespace="/alone", **given)
    stage.wait(lambda: "active; waits up to" in process.output, "activation")
    assert "unconfigured" not in process.output
    stage.processes.kill(process)


@pytest.mark.parametrize(
    ("module", "parameters", "words"),
    [
        (
            "draft_policy_node",
            {"autostart": True, "checkpoint": "/nowhere/draft", "contract": "ball"},
            ["cannot be configured: checkpoint: '/nowhere/draft'", "error: autostart: "],
        ),
        (
            "target_verifier_node",
            {"rule.name": "generous"},
            ["rule.name: 'generous'", "one of by_target, speculative, replace, "],
        ),
        ("bag_recorder_node", {"out": "/nowhere/bag"}, ["contract: '', must be a YAML file or one of ball"]),
        ("adahi_lab.nodes.robot_simulator_node", {"task": "chess"}, ["task: 'chess'", "one of ball"]),
        ("adahi_lab.nodes.robot_simulator_node", {"episodes": -1}, ["episodes", "-1", "from 0"]),
    ],
)
def test_a_wrong_parameter_ends_a_plain_node(
    stage: Stage, module: str, parameters: dict[str, Any], words: list[str]
) -> None:
    process = stage.start(module, **parameters)
    output = stage.await_end(process, 1)
    assert all(word in output for word in words), output


def test_a_robot_that_counts_episodes_has_new_draws_when_reconfigured(
    stage: Stage, exported: Path, tmp_path: Path
) -> None:
    values = plain_values("arm", 20.0, ["a", "b"], 4, 2, ["a", "b"], "positions")
    del values["episode"]
    contract = tmp_path / "arm.yaml"
    contract.write_text(yaml.safe_dump(values))
    checkpoint = str(exported / "draft")
    stage.clear()
    given = {"checkpoint": checkpoint, "contract": str(contract), "safety__limits": "none"}
    process = stage.start("draft_policy_node", **given, seed=7)

    def counted_from() -> list[int]:
        pattern = r"counts episodes from (\d+); first_episode=\1 and seed=7"
        return [int(number) for number in re.findall(pattern, process.output)]

    for times in (1, 2):
        assert stage.change_state("configure")
        stage.wait(lambda: bool(counted_from()[times - 1 :]), "the first episode")  # noqa: B023
        assert stage.change_state("cleanup")
    put_right(stage, "first_episode", 5)
    assert stage.change_state("configure")
    stage.wait(lambda: counted_from()[2:] == [5], "the first episode")
    assert len(set(counted_from())) == 3
