"""`adahi bag evaluate` with the shipped parameter files, and its errors for missing files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from adahi_lab.calibration import replay
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation import step_latency as latency
from adahi_lab.evaluation.plain_contract import with_camera
from adahi_lab.evaluation.task_contract import contract_values
from adahi_lab.tasks import make
from adahi_ros.core.assets import CHECKPOINTS, asset, named
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.registry import POLICIES
from test.bags import conftest as toy
from test.bags.conftest import run
from test.bags.seeing import Seeing, messages, seeing_values
from test.tiny_intents import tiny_intents

OF_THE_BALL = asset("config/ball.yaml")
OWN = Path(__file__).resolve().parents[3] / "docs/examples/own_method.py"


@pytest.fixture
def ball(
    demonstrations: Callable[[int], Trajectories],
    in_bag: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A bag of two episodes with the names of the ball's joints."""
    monkeypatch.setattr(toy, "JOINTS", make("ball").spec.joint_names)
    monkeypatch.setattr(latency, "REPETITIONS", 3)
    return in_bag(toy.recorded(demonstrations(2).episodes([0, 1])))


@pytest.mark.parametrize("name", ["ball.yaml", "best/ball.yaml"])
def test_shipped_parameter_files_do_as_they_are(name: str, ball: Path, tmp_path: Path) -> None:
    picture, figures = tmp_path / "new/replay.png", tmp_path / "replay.json"
    written = "--picture", picture, "--json", figures
    output = run("bag", "evaluate", ball, "--params", asset(f"config/{name}"), *written)
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = json.loads(figures.read_text(), parse_constant=pytest.fail)
    assert (found["robot_type"], found["episodes"], found["cut_off"]) == ("ball", 2, [])
    usual = ["adahi", "hybrid", "draft", "target", "random", "uncertainty"]
    assert list(found["methods"]) == (["best", *usual] if name == "best/ball.yaml" else usual)
    assert ("calls" in output) == (name == "best/ball.yaml")
    assert f"picture: {picture}" in output


def test_a_file_of_ones_own_is_gone_by(ball: Path, tmp_path: Path) -> None:
    values = yaml.safe_load(asset("config/best/ball.yaml").read_text())
    own, figures = tmp_path / "own.yaml", tmp_path / "replay.json"
    calls = {}
    for threshold in (3.0, 11.0):
        values["/**/draft_policy"]["ros__parameters"]["gate"]["threshold"] = threshold
        own.write_text(yaml.safe_dump(values))
        written = ("--json", figures, "--picture", tmp_path / "a.png")
        run("bag", "evaluate", ball, "--params", own, "--methods", "best", *written)
        calls[threshold] = json.loads(figures.read_text())["methods"]["best"]["calls"]
    assert calls[3.0] > 2 * calls[11.0] > 0
    contract = asset("config/contracts/ball.yaml").read_text().replace("robot_type: ball", "robot_type: arm")
    (tmp_path / "arm.yaml").write_text(contract)
    own_arm = {"checkpoint": str(tmp_path / "arm/draft"), "contract": str(tmp_path / "arm.yaml")}
    values["/**/draft_policy"]["ros__parameters"] |= own_arm
    shutil.copytree(named("ball", CHECKPOINTS), tmp_path / "arm")
    own.write_text(yaml.safe_dump(values))
    output = run("bag", "evaluate", ball, "--params", own, "--picture", tmp_path / "a.png")
    assert "Best" in output
    assert "ADAHI" not in output  # its threshold for an arm is unknown
    options = ("--calibration", OF_THE_BALL, "--methods", "adahi", "--contract", "ball")
    assert "ADAHI" in run("bag", "evaluate", ball, "--params", own, *options, "--picture", tmp_path / "a.png")


@pytest.fixture
def seen(
    in_bag: Callable[..., Path], contract_values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A bag of a robot with cameras; beside it its contract, and a target's file."""
    monkeypatch.setattr(latency, "REPETITIONS", 3)
    monkeypatch.setitem(POLICIES.shipped, "seeing", Seeing)
    bag = in_bag(messages(3))
    (bag.parent / "arm.yaml").write_text(yaml.safe_dump(seeing_values(contract_values)))
    (bag.parent / "target.yaml").write_text("kind: seeing")
    return bag


@pytest.mark.parametrize("with_file", [False, True])
def test_a_target_alone_is_evaluated_on_bags(with_file: bool, seen: Path, tmp_path: Path) -> None:
    contract, target, figures = seen.parent / "arm.yaml", seen.parent / "target.yaml", tmp_path / "a.json"
    given: list[object] = ["--contract", contract]
    if with_file:
        gate = {"name": "age", "threshold": 1.0}
        robot = {"checkpoint": "", "proposer.name": "plan", "wait_policy": "ahead", "gate": gate}
        values = {"/**/draft_policy": {"ros__parameters": {**robot, "contract": str(contract)}}}
        (tmp_path / "params.yaml").write_text(yaml.safe_dump(values))
        given = ["--params", tmp_path / "params.yaml"]
    written = "--json", figures, "--picture", tmp_path / "a.png"
    run("bag", "evaluate", seen, "--target", target, *given, "--instruction", "lift", *written)
    found = json.loads(figures.read_text(), parse_constant=pytest.fail)["methods"]
    assert list(found) == ["best"] * with_file + ["plan_4", "plan_1"]
    assert 0 < found["plan_4"]["calls"] < found["plan_1"]["calls"] == found["plan_1"]["steps"]
    assert all(each["mse"] > 0.0 for each in found.values())
    own = ",".join(f"{OWN}:{name}" for name in ("Moved", "Fading@3"))
    run(
        "bag",
        "evaluate",
        seen,
        "--target",
        target,
        *given,
        "--instruction",
        "lift",
        "--methods",
        own,
        *written,
    )
    assert len(json.loads(figures.read_text())["methods"]) == 2


@pytest.fixture
def acting(tmp_path: Path) -> Path:
    """A target that plans for the ball, with intents of an encoder beside it, and of one on the robot."""
    folder = tmp_path / "acting"
    shutil.copytree(named("ball/plans", CHECKPOINTS), folder)
    target = load_policy(folder / "target", "onnxruntime").signature
    tiny_intents(folder, "intent", target)
    tiny_intents(folder, "intent_of_plan", target, at_target=False, replies=2)
    return folder


def test_a_parameter_file_of_a_robot_with_intents_is_replayed(
    ball: Path, acting: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    parameters = yaml.safe_load(asset("config/best/ball.yaml").read_text())
    robot, verifier = (
        parameters[f"/**/{node}"]["ros__parameters"] for node in ("draft_policy", "target_verifier")
    )
    robot["proposer"] = {"name": "intent", "file": str(acting / "intent"), "steps": 10}
    robot["gate"] = {"name": "never", "threshold": 0.0}
    verifier["checkpoint"] = str(acting / "target")
    params, figures = tmp_path / "params.yaml", tmp_path / "replay.json"
    params.write_text(yaml.safe_dump(parameters))
    written = ("--json", figures, "--picture", tmp_path / "a.png")
    run("bag", "evaluate", ball, "--params", params, "--methods", "best", *written)
    best = json.loads(figures.read_text())["methods"]["best"]
    assert best["calls"] == 2 * -(-best["steps"] // 2 // 10)
    robot["proposer"]["file"] = "no/such"
    params.write_text(yaml.safe_dump(parameters))
    assert fails("bag", "evaluate", ball, "--params", params).startswith(f"adahi: {params}: proposer.file: ")


def test_files_may_be_below_here_or_at_home(
    ball: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    shutil.copytree(ball, tmp_path / "home/bag")
    shutil.copytree(ball, tmp_path / "bag")
    shutil.copytree(named("ball", CHECKPOINTS), tmp_path / "home/policies")
    for there in (tmp_path, tmp_path / "home"):
        shutil.copy(OF_THE_BALL, there / "params.yaml")
        shutil.copy(asset("config/contracts/ball.yaml"), there / "contract.yaml")
        shutil.copy(asset("config/links/wired.yaml"), there / "link.yaml")
    for where, folder in (("~/", tmp_path / "home"), ("", tmp_path)):
        options = [f"--{name}={where}{name}.yaml" for name in ("params", "contract")]
        options += [f"--profile={where}link.yaml", "--draft=~/policies/draft", "--plans=~/policies/plans"]
        options += [f"--picture={where}replay.png", f"--json={where}replay.json", "--methods=draft,plan_8"]
        run("bag", "evaluate", f"{where}bag", *options)
        assert (folder / "replay.png").is_file()
        assert (folder / "replay.json").is_file()


NOT_THERE: dict[str, tuple[list[Any], str]] = {
    "bag": (["no"], "no: no such bag"),
    "params": (["--params", "no.yaml"], "--params: no.yaml, no such file"),
    "other_params": (
        ["--params", asset("config/verifier.yaml")],
        "contract: '', must be a YAML file or one of",
    ),
    "contract": (["--contract", "no.yaml"], "contract: 'no.yaml', no such file"),
    "calibration": (["--calibration", "no.yaml"], "--calibration: no.yaml, no such file"),
    "draft": (["--draft", "no/draft"], "--draft: no/draft, no such checkpoint"),
    "target": (["--target", "no/target"], "--target: no/target, no such checkpoint"),
    "plans": (["--plans", "no", "--methods", "plan_8"], "--plans: no, has no target; must be a folder"),
    "profile": (["--profile", "no.yaml"], "link: 'no.yaml', no such file"),
    "json": (["--json", "/proc/no.json"], "--json: /proc/no.json, cannot be written"),
    "ending": (["--picture", "replay.txt"], "--picture: replay.txt, must end in one of .png"),
    "method": (["--methods", "magic"], "methods: 'magic', must be of"),
    "parameters": (["--contract", "so101", "--params="], "--params: none, must be given: none for 'so101'"),
}


@pytest.mark.parametrize("what", NOT_THERE)
def test_what_is_missing_is_reported_before_anything_is_loaded(
    what: str, ball: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(replay, "load_policy", pytest.fail)
    changed, message = NOT_THERE[what]
    bag = [] if what == "bag" else [ball]
    params = [] if "--params" in changed or "--params=" in changed else ["--params", OF_THE_BALL]
    if "--params=" in changed:
        changed = changed[:-1]
    assert message in fails("bag", "evaluate", *bag, *params, *changed)
    assert list(tmp_path.iterdir()) == []


def test_what_a_parameter_file_or_a_contract_names_is_missed_as_early(
    ball: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., str]
) -> None:
    monkeypatch.setattr(replay, "load_policy", pytest.fail)
    values = yaml.safe_load(asset("config/best/ball.yaml").read_text())
    robot, verifier = (
        values[f"/**/{node}"]["ros__parameters"] for node in ("draft_policy", "target_verifier")
    )
    params = tmp_path / "params.yaml"
    for section, name in ((verifier, "checkpoint"), (robot, "corrector"), (robot, "checkpoint")):
        section[name] = "no/such"
        params.write_text(yaml.safe_dump(values))
        assert fails("bag", "evaluate", ball, "--params", params).startswith(f"adahi: {params}: checkpoint")
    robot["contract"] = "no.yaml"
    params.write_text(yaml.safe_dump(values))
    output = fails("bag", "evaluate", ball, "--params", params)
    assert output.startswith("adahi: contract: 'no.yaml', no such file")
    seeing = tmp_path / "seeing.yaml"
    seeing.write_text(yaml.safe_dump(with_camera(contract_values(make("ball")), "nobodys", 64, 64)))
    output = fails("bag", "evaluate", ball, "--params", OF_THE_BALL, "--contract", seeing)
    assert output.startswith("adahi: contract: encoder: ")
    assert "checkpoints/encoders/nobodys, no such checkpoint" in output
    (ball / "metadata.yaml").unlink()
    assert "it was not closed; give --incomplete" in fails("bag", "evaluate", ball, "--params", OF_THE_BALL)


def test_a_robot_that_acts_by_intents_keeps_its_gate(
    ball: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    values = yaml.safe_load(asset("config/best/ball.yaml").read_text())
    robot, verifier = (
        values[f"/**/{node}"]["ros__parameters"] for node in ("draft_policy", "target_verifier")
    )
    file = "ball_instructed/plans/intent"
    robot |= {"proposer": {"name": "intent", "file": file}, "gate": {"name": "age", "threshold": 59.0}}
    verifier |= {"intent": file, "checkpoint": "ball_instructed/plans/target"}
    own, out, figures = (tmp_path / name for name in ("own.yaml", "out.yaml", "replay.json"))
    own.write_text(yaml.safe_dump(values))
    gates = []
    for rate in ((), ("--rate", 0.2)):
        run("thresholds", "--bag", ball, "--params", own, "--out", out, *rate)
        gates.append(yaml.safe_load(out.read_text())["/**/draft_policy"]["ros__parameters"]["gate"])
    assert gates[0] == {"name": "age", "threshold": 59.0}
    assert gates[1]["threshold"] < 10.0
    own.write_text(own.read_text().replace("name: age", "name: never"))
    refused = fails("thresholds", "--bag", ball, "--params", own, "--out", tmp_path / "a.yaml", "--rate", 0.2)
    assert "--rate: 0.2, must be left out: the threshold of the gate 'never' of --params is not" in refused
    run(
        "bag",
        "evaluate",
        ball,
        "--params",
        own,
        "--methods",
        "best",
        "--json",
        figures,
        "--picture",
        tmp_path / "a.png",
    )
    assert json.loads(figures.read_text())["methods"]["best"]["calls"] == 2  # one of each episode
