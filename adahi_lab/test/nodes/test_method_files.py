"""What a launch with a method gives the nodes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.methods.methods import for_task, on_task, parse_methods
from adahi_lab.nodes.method_files import SHIPPED, parameter_files
from adahi_lab.papers.literature import Line, lines
from adahi_ros.core.assets import asset
from adahi_ros.policies.backends import is_policy
from adahi_ros.safety.named_limits import limits_of_task

NOT_SHIPPED = {  # lines that need something more, and what a launch without it says
    "HeiSD": "proposer.file: .*/retrieval', cannot be loaded",
}


def parameters(path: Path) -> dict[str, Any]:
    """Return the parameters of one file."""
    document = yaml.safe_load(path.read_text())
    return dict(document["/**"]["ros__parameters"])


def test_shipped_files_are_used_as_they_are() -> None:
    assert parameter_files("adahi", "ball") == (asset("config/ball.yaml"), asset("config/verifier.yaml"))
    assert parameter_files("best", "swarm") == (asset("config/best/swarm.yaml"),) * 2


@pytest.mark.parametrize("line", lines(), ids=lambda line: line.name)
def test_every_line_of_adahi_methods_has_files(line: Line) -> None:
    task = line.task or "ball"
    if line.name in NOT_SHIPPED:
        with pytest.raises(ValueError, match=NOT_SHIPPED[line.name]):
            parameter_files(line.method, task)
        return
    files = parameter_files(line.method, task)
    if line.method in SHIPPED:
        return
    robot, verifier = map(parameters, files)
    assert "deadline_s" not in robot
    assert robot["safety.limits"] == limits_of_task(task)
    for node in (robot, verifier):
        assert is_policy(Path(node["checkpoint"]))


@pytest.mark.parametrize("line", lines(), ids=lambda line: line.name)
def test_a_launch_has_the_policies_of_an_evaluation(line: Line) -> None:
    task = line.task or "ball"
    files = PolicyFiles.of_task(task)
    (name,) = parse_methods(for_task(line.method, task, files.folder))
    method = on_task(name, task)
    own = files.of_method(task, method.checkpoints, method.backend)
    if line.method in SHIPPED or line.name in NOT_SHIPPED:
        return
    robot, verifier = map(parameters, parameter_files(line.method, task))
    assert Path(verifier["checkpoint"]).is_relative_to(own.folder)
    assert Path(robot["checkpoint"]).parent == own.folder
    assert robot["backend"] == verifier["backend"] == own.backend


def test_the_target_of_a_task_is_its_own() -> None:
    for task in ("metaworld", "ball"):
        _, verifier = map(parameters, parameter_files("target", task))
        assert Path(verifier["checkpoint"]) == asset(f"checkpoints/{task}") / "target"
    _, packed = map(parameters, parameter_files("dyq_vla", "metaworld"))
    assert "switched" in packed["checkpoint"]
    _, light = map(parameters, parameter_files("target_int8", "ball"))
    assert light["backend"] == "int8"


@pytest.mark.parametrize(
    ("method", "task", "why"),
    [
        ("dyq_vla", "ball", "task: 'ball', there is no config/switched/ball_tokens, the policies of this"),
        ("kerv", "ball", "task: 'ball', there is no checkpoints/ball/tokens"),
        ("e2cl", "metaworld", "feedback.safetensors"),
        ("adahi_codes", "metaworld", "adahi_codes: no checkpoint 'draft_codes' beside these policies"),
        (
            "plan:wait=wait+never/likeliest",
            "ball",
            "rule: 'likeliest', must be by_target, replace",
        ),
    ],
)
def test_a_method_without_its_policies_is_refused_before_nodes(method: str, task: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        parameter_files(method, task)


def test_a_threshold_that_is_not_shipped_can_be_given() -> None:
    robot, _ = map(parameters, parameter_files("draft+sampled_uncertainty@0.3/speculative", "ball"))
    assert (robot["gate.name"], robot["gate.threshold"]) == ("sampled_uncertainty", 0.3)


def test_plans_come_from_the_target_that_plans() -> None:
    robot, verifier = map(parameters, parameter_files("plan_8", "ball"))
    assert robot["proposer.name"] == "plan"
    assert (robot["gate.name"], robot["gate.threshold"]) == ("age", 7.0)
    assert verifier["checkpoint"].endswith("ball/plans/target")
    assert robot["contract"] == "ball"


@pytest.mark.parametrize(
    ("method", "message"),
    [("guess", "guess"), ("plan_4,plan_8", "method: 'plan_4,plan_8', must be one method")],
)
def test_what_no_robot_can_run_is_refused(method: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parameter_files(method, "ball")


def test_a_task_without_policies_is_named() -> None:
    for method in ("adahi", "plan_8"):
        with pytest.raises(ValueError, match=r"task: 'guess', nothing is shipped for it: .*guess"):
            parameter_files(method, "guess")


def test_what_is_made_for_a_launch_is_there_until_it_ends() -> None:
    code = "from adahi_lab.nodes.method_files import parameter_files as files; "
    code += "robot, _ = files('plan_8', 'ball'); print(robot, robot.is_file())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    path, was_there = run.stdout.split()
    assert was_there == "True"
    assert not Path(path).parent.exists()
