from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import yaml
from typer.testing import CliRunner, Result

from adahi_ros import cli
from adahi_ros.evaluation.methods import METHODS
from adahi_ros.policy.backends import load_policy
from adahi_ros.speculation.parameter_file import Calibration, load_calibration
from adahi_ros.trajectories import Trajectories

VERBS = ("demos", "train", "calibrate", "export", "evaluate", "demo")
Main = Callable[..., str]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Main:
    """From arguments to what the command says on stderr, in one line, as it ends with status 2."""

    def main(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["adahi", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr().err
        assert ended.value.code == 2
        assert said.startswith("adahi: ")
        assert said.count("\n") == 1, said
        return said

    return main


@pytest.fixture
def calibrated(checkpoints: Path, tmp_path: Path) -> Path:
    digests = (load_policy(checkpoints / name, "torch").digest for name in ("draft", "target"))
    thresholds = {"deviation": 0.4, "uncertainty": 0.984, "random": 0.4}
    path = tmp_path / "given.yaml"
    Calibration("ball", *digests, 0.5, "std", 1.0, 0.6, thresholds).save(path, "deviation", "by hand")
    return path


@pytest.fixture
def evaluate(checkpoints: Path, calibrated: Path) -> list[object]:
    where = ["--checkpoints", checkpoints, "--calibration", calibrated, "--backend", "torch"]
    return ["evaluate", "ball", *where]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str) -> None:
    assert verb in run("--help").output
    result = run(verb, "--help")
    assert result.exit_code == 0
    for option in () if verb == "export" else ("--seed", "--json"):
        assert option in re.sub(r"\x1b\[[0-9;]*m", "", result.output)


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; from adahi_ros.cli import app\n"
        "try: app(['evaluate', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'onnxruntime', 'numpy', 'scipy', 'matplotlib', 'rclpy'} & sys.modules.keys()\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(cli.__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Usage" in ended.stdout


def test_an_error_in_a_real_process_is_one_line() -> None:
    ended = subprocess.run(
        [
            sys.executable,
            "-c",
            "from adahi_ros.cli import main; main()",
            "evaluate",
            "ball",
            "--methods",
            "oracle",
        ],
        cwd=Path(cli.__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "COLUMNS": "40"},
    )
    assert ended.returncode == 2
    assert ended.stderr == f"adahi: methods: 'oracle', must be of {', '.join(METHODS)}\n"


def test_demos_become_trajectories(tmp_path: Path) -> None:
    out, figures = tmp_path / "new" / "ball.safetensors", tmp_path / "figures" / "demos.json"
    result = run("demos", "ball", "--out", out, "--episodes", 6, "--seed", 3, "--json", figures)
    assert result.exit_code == 0
    recorded = Trajectories.load(out)
    written = json.loads(figures.read_text())
    assert recorded.task == written["task"] == "ball"
    assert (written["attempted"], written["seed"]) == (6, 3)
    assert (written["kept"], written["steps"]) == (len(recorded), len(recorded.actions))
    assert str(out) in result.output  # however narrow the terminal
    again = tmp_path / "again.safetensors"
    run("demos", "ball", "--out", again, "--episodes", 6, "--seed", 3)
    np.testing.assert_array_equal(Trajectories.load(again).actions, recorded.actions)


def test_train_follows_a_recipe(tmp_path: Path, fails: Main) -> None:
    data = tmp_path / "demos.safetensors"
    run("demos", "ball", "--out", data, "--episodes", 4)
    fit = {"steps": 3, "batch_size": 8}
    size = {"width": 4, "layers": 1, "heads": 2, "head_hidden": 4}
    recipe: dict[str, Any] = {
        "demonstrations": {"episodes": 400, "seed": 0, "action_noise": 0.1},
        "tokenizer": {"seed": 0, "size": {"codebook_size": 4, "hidden": 8}, "fit": fit},
        "window_length": 2,
        "policies": {"draft": {"seed": 0, "size": size, "fit": fit}},
    }
    path, out, figures = tmp_path / "recipe.yaml", tmp_path / "out", tmp_path / "train.json"
    path.write_text(yaml.safe_dump(recipe))
    result = run("train", "ball", "--recipe", path, "--demos", data, "--out", out, "--json", figures)
    assert result.exit_code == 0
    assert json.loads(figures.read_text())["models"].keys() == {"tokenizer", "draft"}
    assert load_policy(out / "draft", "onnxruntime").spec.parameters > 0
    recipe["policies"]["draft"]["size"]["depth"] = 3
    path.write_text(yaml.safe_dump(recipe))
    expected = f"adahi: {path}: recipe.policies.draft.size.depth: unknown, must be one of head_hidden,"
    assert fails("train", "ball", "--recipe", path, "--out", out).startswith(expected)


def test_export_writes_what_runs_without_torch(checkpoints: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(checkpoints, folder)
    result = run("export", "ball", "--checkpoints", folder)
    assert result.exit_code == 0
    for name in ("draft", "target"):
        assert f"{folder / name}.onnx: " in result.output
        session = onnxruntime.InferenceSession(folder / f"{name}.onnx", providers=["CPUExecutionProvider"])
        assert [each.name for each in session.get_inputs()] == ["windows", "goals"]


def test_calibrate_writes_parameters_a_picture_and_figures(checkpoints: Path, tmp_path: Path) -> None:
    out, figures = tmp_path / "new" / "ball.yaml", tmp_path / "calibrate.json"
    picture = tmp_path / "calibrate.png"
    options = ["--rate", 0.5, "--episodes", 6, "--smoothing", 0.5, "--out", out, "--json", figures]
    options += ["--picture", picture]
    result = run("calibrate", "ball", "--checkpoints", checkpoints, "--backend", "torch", *options)
    assert result.exit_code == 0
    found = load_calibration(out)
    written = json.loads(figures.read_text())
    assert found.thresholds == written["thresholds"]
    assert found.transmission_rate == found.thresholds["random"] == 0.5
    assert picture.is_file()
    assert "threshold, deviation gate" in result.output


def test_evaluate_writes_what_was_measured(evaluate: list[object], tmp_path: Path) -> None:
    files = [tmp_path / "new" / f"{name}.json" for name in ("first", "second")]
    for file in files:
        result = run(*evaluate, "--methods", "adahi,draft", "--episodes", 3, "--seed", 4, "--json", file)
        assert result.exit_code == 0
    assert "ADAHI" in result.output
    assert files[0].read_text() == files[1].read_text()  # the same seed, the same numbers
    written = json.loads(files[0].read_text(), parse_constant=pytest.fail)
    assert (written["task"], written["seed"], written["episodes"]) == ("ball", 4, 3)
    assert list(written["methods"]) == ["adahi", "draft"]
    assert written["methods"]["adahi"]["threshold"] == 0.4
    assert written["methods"]["draft"]["transmission_rate"] == 0.0
    assert written["draft_temperature"] == 1.0
    assert written["parameters"].keys() == {"draft", "target"}


@pytest.mark.parametrize("option", [("--rate", "0.3"), ("--draft-temperature", "0.5")])
def test_evaluate_recalibrates(
    evaluate: list[object], tmp_path: Path, option: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adahi_ros.evaluation.calibrate.EPISODES", 20)
    file = tmp_path / "figures.json"
    run(*evaluate, "--methods", "random,adahi", "--episodes", 20, "--json", file, *option)
    written = json.loads(file.read_text())
    rate = 0.3 if option[0] == "--rate" else 0.6
    assert written["draft_temperature"] == (1.0 if option[0] == "--rate" else 0.5)
    assert written["methods"]["random"]["threshold"] == 1 - rate
    assert written["methods"]["adahi"]["threshold"] != 0.4
    for values in written["methods"].values():
        assert values["transmission_rate"] == pytest.approx(rate, abs=0.1)


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_task_is_named_with_those_there_are(verb: str, fails: Main) -> None:
    options = ("--out", "never") if verb == "demos" else ()
    assert fails(verb, "chess", *options) == "adahi: task: 'chess', expected one of ball\n"


def test_what_cannot_be_evaluated_is_named_with_what_could(
    evaluate: list[object], checkpoints: Path, calibrated: Path, fails: Main, tmp_path: Path
) -> None:
    assert fails(*evaluate, "--methods", "adahi,oracle").startswith(
        "adahi: methods: 'oracle', must be of adahi,"
    )
    assert fails(*evaluate, "--rate", "1.5") == "adahi: rate: 1.5, must be between 0 and 1\n"
    assert "draft_temperature: 0.0, must be above 0" in fails(*evaluate, "--draft-temperature", "0")
    wrong = fails(*evaluate[:-1], "tpu")
    assert wrong == "adahi: backend: 'tpu', must be one of onnxruntime, torch\n"
    bracketed = tmp_path / "[red]" / "ball"
    assert f"{bracketed / 'draft.json'}: no such checkpoint" in fails(
        "evaluate", "ball", "--checkpoints", bracketed
    )
    calibrated.write_text("gate: deviation\n")
    assert fails(*evaluate) == f"adahi: {calibrated}: /**: missing\n"


def test_a_calibration_of_other_checkpoints_is_refused(
    evaluate: list[object], make_checkpoints: Callable[..., Path], checkpoints: Path, fails: Main
) -> None:
    others = make_checkpoints(seed=1)
    said = fails(*(others if each == checkpoints else each for each in evaluate))
    assert "made for other policies or another task (ball); run 'adahi calibrate ball'" in said
