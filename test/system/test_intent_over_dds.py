"""A robot over DDS that acts by intents: as in process, and never by another encoder's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from adahi_lab.calibration.bag_run import bag_run_figures, read_run
from adahi_lab.evaluation.loaded_policies import PLANS, PolicyFiles
from adahi_lab.evaluation.rollout import rollout
from adahi_lab.nodes.dds_run import run_over_dds
from adahi_lab.tasks import make
from adahi_ros.cli.app import app
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.nodes.launching.child_processes import DdsRunError
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.intent.intent import load_intent
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.window import reply_bytes
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier
from test.system.stage import Stage
from test.tiny_intents import SIZE, tiny_intents

SEED, AGE, EPISODE = 11, 6.0, 4


@pytest.fixture(scope="module")
def folder(files: PolicyFiles, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Draft and target that plans, with encoders beside the target, `other`, and on the robot."""
    folder = tmp_path_factory.mktemp("intents") / "policies"
    shutil.copytree(files.folder, folder)
    for name in ("draft", f"{PLANS}/target"):
        load_policy(folder / name, "onnxruntime")
    target = load_policy(folder / PLANS / "target", "onnxruntime").signature
    tiny_intents(folder / PLANS, "intent", target)
    tiny_intents(folder / PLANS, "other", target, seed=1)
    tiny_intents(folder / PLANS, "intent_of_plan", target, at_target=False, replies=3)
    return folder


def nodes(folder: Path, name: str, at_target: str = "") -> tuple[dict[str, object], dict[str, object]]:
    draft: dict[str, object] = {
        "checkpoint": str(folder / "draft"),
        "proposer.name": "intent",
        "proposer.file": str(folder / PLANS / name),
        "gate.name": "age",
        "gate.threshold": AGE,
        "deadline_s": 20.0,
    }
    target: dict[str, object] = {"checkpoint": str(folder / PLANS / "target"), "rule.name": "replace"}
    return draft, target | (dict[str, object](intent=str(folder / PLANS / at_target)) if at_target else {})


@pytest.mark.parametrize("name", ["intent", "intent_of_plan"])
def test_lockstep_over_dds_equals_the_rollout(folder: Path, name: str) -> None:
    at_target = name == "intent"
    run = run_over_dds(
        "ball", *nodes(folder, name, name if at_target else ""), SEED, range(EPISODE, EPISODE + 1)
    )
    target = load_policy(folder / PLANS / "target", "onnxruntime")
    acting = load_intent(folder / PLANS / name, with_encoder=True)
    controller = Controller(acting, ControllerConfig(ThresholdedGate("age", AGE)), "intent")
    verifier = TargetVerifier(target, "replace", intents=acting.encoder if at_target else None)
    world = make("ball")
    log = rollout(world, controller, verifier, SEED, [EPISODE])
    rows = run.steps
    assert [row.step for row in rows] == list(range(len(log.action)))
    assert {row.reason for row in rows} == {Reason.NONE}
    bounds = np.array([world.spec.action_low, world.spec.action_high], np.float32)
    executed = np.clip(log.action[:, 0], *bounds)
    np.testing.assert_array_equal(np.array([row.action for row in rows], np.float32), executed)
    assert [row.transmitted for row in rows] == log.transmitted[:, 0].tolist()
    requested = [row for row in rows if row.transmitted]
    assert [row.step for row in requested] == list(range(0, len(rows), int(AGE) + 1))
    assert [row.plan_age for row in rows[1:8]] == list(range(1, 8))
    signature = target.signature
    sent = 0 if at_target else signature.horizon * signature.action_dim
    codes = 0 if at_target or signature.codes is None else signature.codes.codebooks
    expected = reply_bytes(sent, intent=SIZE if at_target else 0, codes=codes)
    assert {row.response_bytes for row in requested} == {expected}
    assert all(bool(row.planned_action) == (not at_target) for row in rows[1:3])


def test_a_verifier_without_an_encoder_is_refused(stage: Stage, folder: Path) -> None:
    draft, target = nodes(folder, "intent")
    stage.clear()
    robot = stage.start("draft_policy_node", contract="ball", safety__limits="none", **draft)
    stage.start("target_verifier_node", **target)
    assert stage.change_state("configure")
    assert stage.change_state("activate")
    ours = load_intent(folder / PLANS / "intent").encoder_fingerprint
    expected = f"intent_fingerprint: the robot's is {ours}, the verifier's none; must be the same"
    stage.wait(lambda: expected in robot.output, "the reason in the log")
    stage.wait(lambda: stage.state() == "inactive", "the refusal")
    stage.clear()


def test_the_steps_of_an_intent_are_a_parameter(folder: Path) -> None:
    draft, target = nodes(folder, "intent", "intent")
    draft |= {"gate.name": "never", "gate.threshold": 0.0, "proposer.steps": 3}
    run = run_over_dds("ball", draft, target, SEED, range(1))
    requested = [row.step for row in run.steps if row.transmitted]
    assert requested == list(range(0, len(run.steps), 3))


def test_an_encoder_on_the_robot_takes_any_verifier(folder: Path) -> None:
    run = run_over_dds("ball", *nodes(folder, "intent_of_plan", "other"), SEED, range(1))
    assert {row.reason for row in run.steps} == {Reason.NONE}
    assert any(row.plan_age > 1 for row in run.steps)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("/nowhere/intent", r"intent: '/nowhere/intent', cannot be loaded: "),
        ("intent_of_plan", r"intent: its encoder's extra_dim is 0, must be 2, as for the target"),
    ],
)
def test_an_encoder_that_cannot_be_used_is_named(folder: Path, value: str, message: str) -> None:
    draft, target = nodes(folder, "intent", value)
    with pytest.raises(DdsRunError, match=message):
        run_over_dds("ball", draft, target, SEED, range(1))


def test_a_bag_of_a_run_by_intents_is_reported_replayed_and_trained_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adahi_lab.evaluation.step_latency.REPETITIONS", 3)
    draft, target = nodes(folder, "intent", "intent")
    bag, params, figures, out = (tmp_path / name for name in ("bag", "params.yaml", "figures.json", "out"))
    ran = run_over_dds("ball", draft, target, SEED, range(2), bag=bag)
    found = bag_run_figures(read_run(bag))
    assert {row.reason for row in ran.steps} == {Reason.NONE}
    assert found["steps"] == len(ran.steps)
    assert found["plan"]["kind"] == "intent"

    sections = {"/**/draft_policy": {**draft, "contract": "ball"}, "/**/target_verifier": target}
    params.write_text(yaml.safe_dump({name: {"ros__parameters": each} for name, each in sections.items()}))
    replay = [
        "bag",
        "evaluate",
        bag,
        "--keep-failures",
        "--params",
        params,
        "--methods",
        "best,intent_of_plan",
    ]
    adahi(*replay, "--picture", tmp_path / "a.png", "--json", figures)
    replayed = json.loads(figures.read_text())["methods"]
    assert replayed["best"]["calls"] > replayed["intent_of_plan"]["calls"] == 2

    student = {"seed": 3, "size": {"size": 3, "hidden": 4}, "fit": {"steps": 5}, "hidden": 4}
    corrector = {"seed": 3, "size": {"hidden": 4}, "fit": {"steps": 5}}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({"corrector": corrector, "intent": student}))
    how = ["--contract", "ball", "--target", target["checkpoint"], "--recipe", tmp_path / "recipe.yaml"]
    adahi("train", "corrector", bag, *how, "--out", out, "--intent", "--params", tmp_path / "own.yaml")
    own = yaml.safe_load((tmp_path / "own.yaml").read_text())
    assert own["/**/target_verifier"]["ros__parameters"]["intent"] == str(out / "intent")


def adahi(*words: object) -> None:
    result = CliRunner().invoke(app, [str(each) for each in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
