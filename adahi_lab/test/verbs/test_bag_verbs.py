"""The lab's verbs that take bags, on bags of a toy robot."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation import step_latency as latency
from adahi_lab.methods.methods import METHODS
from adahi_ros.core.assets import CHECKPOINTS, named
from test.bags.conftest import run, write_bag
from test.bags.seeing import messages, seeing_values


@pytest.fixture
def fails(fails: Callable[..., str]) -> Callable[..., str]:
    """From arguments to what the command says as it ends, without its name."""
    return lambda *arguments: fails(*arguments).removeprefix("adahi: ").rstrip()


@pytest.fixture(scope="module")
def dataset(bag: Path, contract_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("verbs") / "data"
    output = run("data", "from-bag", bag, "--contract", contract_file, "--out", out)
    assert "toy: 12 episodes, 360 steps" in output
    assert "left out or cut: nothing" in output
    return out


def test_a_folder_of_bags_is_read_and_all_that_cannot_be_used_are_named(
    bag: Path, contract_file: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    bags = tmp_path / "bags"
    for number in (10, 2, 9):
        shutil.copytree(bag, bags / f"episode_{number}")
    made = ("data", "from-bag", bags, "--contract", contract_file, "--out", tmp_path / "data")
    assert "data: 36 episodes, 1080 steps" in run(*made)
    read = json.loads((tmp_path / "data/dataset.json").read_text())["bags"]
    assert [Path(each["path"]).name for each in read] == [f"episode_{number}" for number in (2, 9, 10)]
    for number in (2, 10):
        (bags / f"episode_{number}/metadata.yaml").unlink()
    said = fails(*made, "--overwrite")
    for number in (2, 10):
        assert f"{bags}/episode_{number}: no metadata.yaml: it was not closed; " in said


@pytest.fixture(scope="module")
def params(
    bag: Path, contract_file: Path, checkpoints: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("verbs") / "params.yaml"
    options = ["--contract", contract_file, "--draft", checkpoints / "draft", "--backend", "torch"]
    options += ["--rate", 0.5, "--smoothing", 0.5, "--normalization", "std", "--workers", 1]
    output = run("thresholds", "--bag", bag, *options, "--out", out, "--picture", out.with_suffix(".png"))
    assert "threshold, deviation gate" in output
    return out


def test_checkpoints_of_a_bag_are_those_of_the_same_demonstrations(
    dataset: Path,
    demonstrations: Callable[[int], Trajectories],
    recipe_of: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The export takes longest.
    monkeypatch.setattr(
        "adahi_lab.training.vqbet_files.export", lambda checkpoint, path: None
    )  # takes longest
    (tmp_path / "recipe.yaml").write_text(recipe_of(20, draft=6))
    demonstrations(2).save(tmp_path / "demos.safetensors")
    options = ["--recipe", tmp_path / "recipe.yaml", "--workers", 1]
    output = run("train", "toy", "--data", dataset, *options, "--out", tmp_path / "of_bag")
    assert "draft: " in output
    (tmp_path / "same").mkdir()
    (tmp_path / "demos.safetensors").rename(tmp_path / "same/trajectories.safetensors")
    run("train", "toy", "--data", tmp_path / "same", *options, "--out", tmp_path / "of_demos")
    for name in ("tokenizer.safetensors", "draft.safetensors"):
        made, same = tmp_path / "of_bag" / name, tmp_path / "of_demos" / name
        assert made.read_bytes() == same.read_bytes(), name


def test_data_of_another_robot_is_refused(dataset: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    never = ("--out", tmp_path / "never", "--workers", 1)
    assert fails("train", "ball", "--data", dataset, *never) == (
        f"task: 'ball', must be 'toy', which {dataset} is of"
    )
    assert fails("train", "ball", "--data", dataset, "--demos", dataset, *never).startswith("demos: ")
    assert fails("train", "toy", "--data", tmp_path, *never).startswith(
        f"--data: {tmp_path}, has no trajectories.safetensors; make it with 'adahi data from-bag'"
    )
    assert fails("train", "toy", "--data", dataset, *never) == (
        "--recipe: none, must be given: no recipe for 'toy' is shipped"
    )
    no = tmp_path / "no.yaml"
    assert fails("train", "toy", "--data", dataset, "--recipe", no, *never) == f"--recipe: {no}, no such file"
    assert not (tmp_path / "never").exists()


def test_a_calibration_on_a_bag_is_a_parameter_file_with_the_contract(
    params: Path, contract_file: Path, checkpoints: Path
) -> None:
    text, found = params.read_text(), load_calibration(params)
    assert f"contract: {contract_file}" in text
    assert f"checkpoint: {checkpoints / 'draft'}" in text
    assert found.task == "toy"
    assert found.thresholds.keys() == {"deviation", "uncertainty", "oracle", "random"}
    assert "joint_names" not in text


def test_a_replay_needs_no_more_than_a_bag_and_a_parameter_file(
    bag: Path, params: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latency, "REPETITIONS", 3)
    figures, picture = tmp_path / "replay.json", tmp_path / "replay.png"
    output = run(
        *("bag", "evaluate", bag, "--params", params, "--backend", "torch", "--profile", "wired"),
        *("--json", figures, "--figure", picture),
    )
    written = json.loads(figures.read_text(), parse_constant=pytest.fail)
    assert (written["episodes"], written["steps"], written["link"]) == (12, 360, "wired")
    assert written["methods"]["adahi"]["transmission_rate"] == pytest.approx(0.5, abs=0.05)
    assert picture.read_bytes().startswith(b"\x89PNG")
    for name in written["methods"]:
        assert METHODS[name].label in output


def test_methods_that_go_by_plans_are_replayed_with_those_of_a_folder(
    bag: Path,
    params: Path,
    contract_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fails: Callable[..., str],
) -> None:
    monkeypatch.setattr(latency, "REPETITIONS", 3)
    figures, plans = tmp_path / "replay.json", named("ball/plans", CHECKPOINTS)
    compared = ("--backend", "torch", "--methods", "plan_8,corrector_16")
    replayed = ("bag", "evaluate", bag, "--params", params, *compared)
    written = ("--json", figures, "--figure", tmp_path / "replay.png")
    output = run(*replayed, "--plans", plans, *written)
    found = json.loads(figures.read_text(), parse_constant=pytest.fail)["methods"]
    assert {name: each["calls"] for name, each in found.items()} == {"plan_8": 48, "corrector_16": 24}
    for words in ("Plan/8", "Corrected plan/16", "calls"):
        assert words in output
    alone = "--contract", contract_file, "--target", plans / "target"
    run("bag", "evaluate", bag, *alone, "--backend", "torch", *written)
    assert set(json.loads(figures.read_text())["methods"]) == {"plan_8", "plan_1"}
    assert fails(*replayed, *written).startswith(
        "plan_8: there is no target that plans beside these policies"
    )


def test_what_lacks_is_named(
    bag: Path, contract_file: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    assert fails("bag", "evaluate", bag) == "contract: none, must be given, or be in the file of --params"
    no = tmp_path / "no.yaml"
    assert fails("evaluate", "ball", "--calibration", no) == f"--calibration: {no}, no such file"
    assert fails("thresholds", "--workers", 1) == "task: none, must be given where no bag is"
    assert fails("thresholds", "ball", "--bag", bag, "--workers", 1) == (
        "task: ball, must be left out where a bag is given"
    )
    or_there = ", must be given with a bag, or be in the file of --params"
    assert fails("thresholds", "--bag", bag, "--workers", 1) == f"contract: none{or_there}"
    named = ("--contract", contract_file)
    assert fails("thresholds", "--bag", bag, *named, "--workers", 1) == f"draft: none{or_there}"
    assert fails("data", "from-bag", bag, "--contract", "chess", "--out", tmp_path / "x").startswith(
        "contract: 'chess', must be a YAML file or one of "
    )
    assert not (tmp_path / "x").exists()


def test_policies_of_other_sizes_than_the_contracts_are_reported(
    bag: Path, contract_file: Path, fails: Callable[..., str]
) -> None:
    output = fails(
        *("thresholds", "--bag", bag, "--contract", contract_file, "--workers", 1, "--out", "never.yaml"),
        *("--draft", named("kitchen/draft", CHECKPOINTS)),
    )
    assert output == "observation: the contract's has 6 entries, the policies' 59; must agree"


def test_every_verb_says_what_can_be_done_with_a_cut_bag_and_does_it(
    bag: Path,
    params: Path,
    contract_file: Path,
    checkpoints: Path,
    tmp_path: Path,
    fails: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(latency, "REPETITIONS", 3)
    killed, data = shutil.copytree(bag, tmp_path / "killed"), tmp_path / "data"
    (killed / "metadata.yaml").unlink()
    (file,) = killed.iterdir()
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    contract, picture = ("--contract", contract_file), tmp_path / "picture.png"
    shown = ("--figure", picture, "--methods", "draft")
    draft = ("--draft", checkpoints / "draft", "--backend", "torch")
    warning = (
        f"{killed}: cut off or damaged: no metadata.yaml that can be read; {file.name}: no whole record at "
    )
    refused = (
        f"{killed}: no metadata.yaml: it was not closed; give --incomplete to read its complete part, or "
        f"write that part to a new bag: 'adahi bag repair {killed} --out NEW'"
    )
    for verb in (
        ("data", "from-bag", killed, *contract, "--out", data),
        ("bag", "evaluate", killed, "--params", params, *draft[2:], *shown),
        (
            *("thresholds", "--bag", killed, *contract, *draft, "--out", tmp_path / "params.yaml"),
            *("--picture", picture, "--workers", 1, "--smoothing", 0.5, "--normalization", "std"),
        ),
    ):
        assert fails(*verb) == refused
        output = run(*verb, "--incomplete")
        assert output.count(warning) == 1
        assert "; left out: unknown\n" in output
    assert fails("report", killed) == refused
    (of_it,) = json.loads((data / "dataset.json").read_text())["bags"]
    assert of_it["cut_off"].startswith(warning)
    assert 100 < of_it["steps"] < 300
    output = run("bag", "repair", killed, "--out", tmp_path / "new")
    assert f"{killed}: the rest is lost: {file.name}: no whole record at byte " in output
    again = tmp_path / "again"
    run("data", "from-bag", tmp_path / "new", *contract, "--out", again)
    one, other = (each / "trajectories.safetensors" for each in (data, again))
    assert one.read_bytes() == other.read_bytes()


def test_a_report_of_a_bag_lies_beside_it(bag: Path, fails: Callable[..., str]) -> None:
    assert fails("report", bag).startswith(f"{bag}: /draft_status: no such topic")


def test_a_dataset_is_not_overwritten_unless_that_is_wanted(
    bag: Path, contract_file: Path, dataset: Path, fails: Callable[..., str]
) -> None:
    again = ("data", "from-bag", bag, "--contract", contract_file, "--out", dataset)
    before = (dataset / "dataset.json").stat().st_mtime_ns
    assert fails(*again) == (
        f"--out: {dataset}, has a dataset already; must be another folder, or give --overwrite"
    )
    assert (dataset / "dataset.json").stat().st_mtime_ns == before
    run(*again, "--overwrite")
    assert (dataset / "dataset.json").stat().st_mtime_ns > before


def test_a_bag_that_gives_no_observation_is_named_by_every_verb(
    lines: list[Any],
    in_bag: Callable[..., Path],
    params: Path,
    contract_file: Path,
    checkpoints: Path,
    tmp_path: Path,
    fails: Callable[..., str],
) -> None:
    """None of its messages is younger than a second."""
    old = in_bag(line._replace(received_ns=line.received_ns + 10**9) for line in lines)
    contract = ("--contract", contract_file)
    for verb in (
        ("data", "from-bag", old, *contract, "--out", tmp_path / "never"),
        ("bag", "evaluate", old, "--params", params, "--backend", "torch"),
        ("thresholds", "--bag", old, *contract, "--draft", checkpoints / "draft", "--workers", 1),
    ):
        output = fails(*verb)
        assert output.startswith(
            f"{old}: no step has an observation and an action, expected at least one (0 obs"
        )
        assert "360 times joint_states.header.stamp: 1.001 s old" in output
    assert not (tmp_path / "never").exists()


def test_a_dataset_without_the_images_of_its_bags_says_so(
    contract_values: dict[str, Any], tmp_path: Path
) -> None:
    contract, bag = tmp_path / "arm.yaml", write_bag(tmp_path / "bag", messages())
    contract.write_text(yaml.safe_dump(seeing_values(contract_values)))
    output = run("data", "from-bag", bag, "--contract", contract, "--out", tmp_path / "data")
    assert "the dataset has no images: the contract has no encoder" in output
