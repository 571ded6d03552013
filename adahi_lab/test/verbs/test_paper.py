from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adahi_lab.cli.paper import FIGURES, PAGE, PICTURES, TABLE
from adahi_lab.methods.methods import METHODS
from adahi_lab.papers.literature import Line
from adahi_ros.core.assets import asset
from test.cli.conftest import Fails, Run

COMPARED = ["adahi", "hybrid", "draft", "target", "random", "oracle", "plan_4"]
ON_BALL = ("--task", "ball", "--workers", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("paper") / "new"


@pytest.fixture(scope="module")
def tabled(folder: Path, run: Run) -> str:
    result = run("lab", "table", *ON_BALL, "--episodes", 3, "--methods", ",".join(COMPARED), "--out", folder)
    return result.output


@pytest.fixture(scope="module")
def drawn(folder: Path, tabled: str, run: Run) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adahi_lab.cli.measuring.POINT", (1, 1))
        result = run("lab", "figures", *ON_BALL, "--quick", "--out", folder)
    return str(result.output)


def read(path: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(path.read_text(), parse_constant=pytest.fail)
    return values


def test_a_table_is_printed_and_written(tabled: str, folder: Path) -> None:
    written = read(folder / TABLE)
    assert (written["seed"], written["episodes"], written["workers"]) == (0, 3, 1)
    assert list(written["tasks"]) == ["ball"]
    methods = written["tasks"]["ball"]["methods"]
    assert list(methods) == COMPARED
    for path in ("config/ball.yaml", "config/recipes/ball.yaml"):
        assert written["configuration"][path] == asset(path).read_text()
    for name in COMPARED:
        assert METHODS[name].label in tabled
    assert "0.811" in tabled  # the paper's
    assert "ball: 3 episodes of 7 methods" in tabled


def test_a_table_leaves_out_what_a_task_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr("adahi_lab.evaluation.evaluate.HELD_OUT_EPISODES", 2)
    monkeypatch.setattr("adahi_lab.calibration.calibrate.EPISODES", 5)
    head = "always:hidden_states:file={checkpoints}/wisv.safetensors"
    named = f"sampled_uncertainty:speculative,plan_8,{head}"
    tasks = ("--tasks", "ball,inverted_pendulum", "--episodes", 2, "--workers", 1)
    result = run("lab", "table", *tasks, "--methods", named, "--out", tmp_path)
    ball, pole = read(tmp_path / TABLE)["tasks"].values()
    sampled, plan = "sampled_uncertainty:speculative", "plan_8"
    assert list(ball["methods"]) == [sampled, plan]
    assert list(ball["skipped"]) == [head.format(checkpoints=asset("checkpoints/ball"))]
    assert list(pole["methods"]) == [sampled]
    assert pole["skipped"][plan].startswith("plan_8: there is no target that plans")
    assert len(pole["skipped"]) == 2
    assert "inverted_pendulum: plan_8 is left out: plan_8: there is no target that plans" in result.output
    assert (tmp_path / "inverted_pendulum.yaml").is_file()  # the threshold that was searched


def test_a_table_of_what_no_policies_are_there_for_is_refused(tmp_path: Path, fails: Fails) -> None:
    output = fails(
        "lab", "table", "--task", "inverted_pendulum", "--methods", "plan_8,best", "--out", tmp_path
    )
    assert output.startswith("adahi: plan_8: there is no target that plans")


def test_the_methods_of_papers_are_printed_and_written_and_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    table = (Line("ADAHI", "adahi"), Line("8 bits", "target_int8"), Line("none", "plan_8"))
    monkeypatch.setattr("adahi_lab.papers.literature.lines", lambda known: (Line("Target", "target"), *table))
    tasks = ("--tasks", "inverted_pendulum,ball", "--episodes", 2, "--seed", 3)
    command = ("lab", "table", "--literature", *tasks, "--workers", 1, "--out", tmp_path)
    result = run(*command)
    written = read(tmp_path / FIGURES)
    assert (written["seed"], written["episodes"]) == (3, 2)
    pole, ball = written["tasks"].values()
    lacks = "plan_8: there is no target that plans"
    assert list(pole["methods"]) == ["target", "adahi", "target_int8"]
    assert pole["methods"]["adahi"]["against"]["method"] == "target"
    assert pole["skipped"]["plan_8"].startswith(lacks)
    assert list(ball["methods"]) == [*pole["methods"], "plan_8"]
    assert f"inverted_pendulum: plan_8 is left out: {lacks}" in result.output
    assert "S3ML has no line: " in result.output
    assert (tmp_path / PAGE).read_text().count("\n") == 2 + 4
    assert max(map(len, result.output.splitlines()[:10])) <= 80
    monkeypatch.setattr("adahi_lab.evaluation.evaluate.play", lambda *arguments: pytest.fail("again"))
    run(*command)
    assert read(tmp_path / FIGURES)["tasks"] == written["tasks"]


def test_pictures_are_drawn_and_their_numbers_written(drawn: str, folder: Path) -> None:
    written = read(folder / PICTURES)
    assert written["episodes"] == 1
    assert written["tasks"]["ball"].keys() == {"sweep", "area"}
    assert written["tasks"]["ball"]["area"]["corrector_K"]["points"] == 4
    assert "mean success, TR 0.02 to 0.5" in drawn
    for name in ("rejection", "sweep"):
        assert f"picture: {folder / name}.png" in drawn
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_compared_or_drawn_is_named(tmp_path: Path, fails: Fails) -> None:
    never = ("--out", tmp_path / "never")
    assert fails("lab", "table", "--task", " ,", *never) == "adahi: tasks: ' ,', must name at least one\n"
    assert fails("lab", "table", "--methods", "telepathy", *never).startswith(
        "adahi: methods: 'telepathy', must be"
    )
    assert fails("lab", "table", "--literature", "--methods", "adahi", *never) == (
        "adahi: methods: 'adahi', must be left out where --literature is given\n"
    )
    assert not (tmp_path / "never").exists()


def test_the_methods_of_a_table_are_by_default_those_that_every_task_has(
    fails: Fails, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[list[str]] = []

    def note(comparison: Any, names: list[str], *others: Any) -> dict[str, Any]:
        compared.append(names)
        raise ValueError("enough")

    monkeypatch.setattr("adahi_lab.evaluation.evaluate.evaluate_methods", note)
    assert "enough" in fails("lab", "table", "--workers", 1, "--quick", "--out", tmp_path / "new")
    assert compared == [[name for name in METHODS if name not in ("best", "distilled")]]
