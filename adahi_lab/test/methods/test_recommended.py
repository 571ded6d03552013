"""What is recommended for a task: files that the nodes read, too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.evaluation.evaluate import Comparison, Run, play
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.evaluation.swaps import Swap
from adahi_lab.methods import recommended as room
from adahi_lab.methods.dds_method import goes_ahead, node_parameters
from adahi_lab.methods.methods import METHODS
from adahi_lab.methods.recommended import BEST, recommended
from adahi_lab.nodes.dds_run import observed
from adahi_ros.core.assets import CHECKPOINTS, asset, named
from adahi_ros.policies.backends import is_policy, load_policy
from test.tiny_intents import tiny_intents

TASKS = sorted(path.stem for path in asset("config/best").glob("*.yaml"))
ROBOT, VERIFIER = "/**/draft_policy", "/**/target_verifier"


@pytest.mark.parametrize("task", TASKS)
def test_what_is_shipped_is_there_and_is_what_the_nodes_of_best_get(task: str) -> None:
    parameters = yaml.safe_load(asset(f"config/best/{task}.yaml").read_text())
    robot, verifier = (parameters[node]["ros__parameters"] for node in (ROBOT, VERIFIER))
    proposer = robot["proposer"]
    names = [robot["checkpoint"], verifier["checkpoint"], proposer["file"]]
    assert verifier.get("intent") == (proposer["file"] if proposer["name"] == "intent" else None)
    assert all(is_policy(named(name, CHECKPOINTS)) for name in names)
    files = PolicyFiles(asset(f"checkpoints/{task}"), "onnxruntime")
    draft, target = node_parameters("best", task, files, load_calibration(asset(f"config/{task}.yaml")), 0.05)
    assert (draft["proposer.name"], draft["wait_policy"]) == (proposer["name"], robot["wait_policy"])
    assert (draft["gate.name"], draft["gate.threshold"]) == tuple(robot["gate"].values())
    for name in ("draft_temperature", "fallback", "fallback_limit"):
        assert (observed(task) | draft).get(name) == robot.get(name), name
    assert target["rule.name"] == verifier["rule"]["name"] == "replace"
    for name, path in zip(
        names, (draft["checkpoint"], target["checkpoint"], draft["proposer.file"]), strict=True
    ):
        assert path == str(named(name, CHECKPOINTS).resolve())
    assert goes_ahead("best", task) == (robot["wait_policy"] == "ahead")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"proposer": {"name": "guess"}}, "proposer: 'guess', must be one of draft, plan, corrector"),
        ({"wait_policy": "never"}, "wait_policy: 'never', must be one of wait, ahead"),
        ({"gate": {"name": "guess", "threshold": 1.0}}, "gate: 'guess', must be one of"),
        ({"gate": {"name": "age", "threshold": float("nan")}}, "threshold: nan, must be finite"),
        ({"gate": {"name": "age"}}, "/draft_policy: lacks 'gate.threshold'"),
        ({"gate": 3}, "/draft_policy: lacks 'gate.name'"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str
) -> None:
    parameters = yaml.safe_load(asset("config/best/ball.yaml").read_text())
    parameters[ROBOT]["ros__parameters"] |= changes
    path = tmp_path / "ball.yaml"
    path.write_text(yaml.safe_dump(parameters))
    monkeypatch.setattr(room, "asset", lambda relative: path)
    recommended.cache_clear()
    with pytest.raises(ValueError, match=message) as refused:
        BEST.on("ball")
    assert str(refused.value).startswith(f"{path}: ")
    recommended.cache_clear()


def test_a_notice_makes_a_robot_request_its_intent_again() -> None:
    pushed = replace(Comparison.shipped("ball_instructed", 0), swap=Swap(25))
    outcome = play(Run(METHODS["intent_60"], pushed, range(30)))
    log = outcome.log
    sent = log.transmitted & log.active
    assert sent[0].all()
    assert sent[26].all()
    assert not sent[1:26].any()
    assert outcome.success.mean() > 0.8  # only what is done after the change counts


@pytest.mark.parametrize("at_target", [True, False])
def test_an_intent_may_be_recommended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_target: bool
) -> None:
    """The robot gets the network, and the verifier the encoder, if that is beside the target."""
    parameters = yaml.safe_load(asset("config/best/ball_instructed.yaml").read_text())
    parameters[ROBOT]["ros__parameters"] |= {
        "proposer": {"name": "intent", "file": "ball_instructed/plans/intent", "steps": 60},
        "gate": {"name": "age", "threshold": 50.0},
    }
    path, plans = tmp_path / "ball_instructed.yaml", tmp_path / "plans"
    path.write_text(yaml.safe_dump(parameters))
    monkeypatch.setattr(room, "asset", lambda relative: path)
    recommended.cache_clear()
    target = load_policy(asset("checkpoints/ball_instructed/plans") / "target", "onnxruntime").signature
    tiny_intents(plans, "intent", target, at_target=at_target)
    calibration = load_calibration(asset("config/ball_instructed.yaml"))
    files = PolicyFiles(tmp_path, "onnxruntime")
    draft, verifier = node_parameters("best", "ball_instructed", files, calibration, 0.05)
    recommended.cache_clear()
    assert draft["proposer.file"] == str(plans / "intent")
    assert (draft["proposer.name"], draft["proposer.steps"], draft["gate.threshold"]) == ("intent", 60, 50.0)
    assert verifier.get("intent") == (draft["proposer.file"] if at_target else None)


def test_a_task_without_a_recommendation_is_named() -> None:
    with pytest.raises(ValueError, match=r"^best: nothing is recommended for the task 'ball_camera'"):
        recommended("ball_camera")
