"""What a verb writes is tried before its work; figures are written before pictures are drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from adahi_lab.reporting import calibration_figure, training_figure
from adahi_lab.training import train
from adahi_lab.training.vqbet_files import save_policy
from adahi_ros.core.assets import asset
from test.cli.conftest import Fails, Run

BAG = ("--contract", "ball", "bag")
WITH_FIGURES = [
    ("thresholds", "ball"),
    ("data", "simulate", "ball", "--out", "demos.safetensors"),
    ("train", "ball"),
    ("train", "encoder", "ball"),
    ("evaluate", "ball"),
    (
        "lab",
        "compare",
    ),
    ("demo", "ball"),
    ("bag", "evaluate", *BAG),
    ("report", "bag"),
    ("lab", "link", "check"),
    ("lab", "bench", "latency"),
    ("lab", "bench", "peers"),
    ("lab", "bench", "dds"),
    ("lab", "bench", "cameras"),
    ("lab", "bench", "compute", "ball"),
    ("lab", "bench", "soak"),
]
WITH_PICTURE = [
    ("thresholds", "ball", "--picture"),
    ("demo", "ball", "--picture"),
    ("bag", "evaluate", *BAG, "--picture"),
    ("lab", "bench", "latency", "--picture"),
    ("lab", "bench", "peers", "--picture"),
    ("lab", "bench", "cameras", "--figure"),
]
WITH_OUT = [
    ("thresholds", "ball", "--out"),
    ("data", "simulate", "ball", "--out"),
    ("lab", "compare", "--out"),
    ("train", "encoder", "ball", "--out"),
    ("data", "from-bag", *BAG, "--out"),
    ("train", "corrector", *BAG, "--out"),
]
SHIPPED = {
    ("train", "ball"): "--out: checkpoints/ball/tokenizer.json",
    ("train", "ball", "--only", "draft"): "--out: checkpoints/ball/draft.json",
    ("thresholds", "ball"): "--out: config/ball.yaml",
    ("train", "encoder", "ball"): "--out: checkpoints/encoders/ball.json",
    ("lab", "contract", "ball"): "--out: config/contracts/ball.yaml",
    ("export", "ball"): f"--checkpoints: {asset('checkpoints/ball/draft.onnx')}",
}


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that cannot be, below a file; and everything else is written in another one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "below"


@pytest.mark.parametrize("verb", WITH_FIGURES, ids=" ".join)
def test_figures_that_cannot_be_written_are_reported_before_the_work(
    verb: tuple[str, ...], nowhere: Path, fails: Fails
) -> None:
    path = nowhere / "figures.json"
    assert fails(*verb, "--json", path) == f"adahi: --json: {path}, cannot be written (Not a directory)\n"


@pytest.mark.parametrize("verb", WITH_PICTURE, ids=" ".join)
def test_a_picture_that_cannot_be_written_is_reported_before_the_work(
    verb: tuple[str, ...], nowhere: Path, fails: Fails
) -> None:
    path = nowhere / "picture.png"
    assert fails(*verb, path) == f"adahi: {verb[-1]}: {path}, cannot be written (Not a directory)\n"
    assert fails(*verb, "picture.doc").startswith(f"adahi: {verb[-1]}: picture.doc, must end in one of .png,")


@pytest.mark.parametrize("verb", WITH_OUT, ids=" ".join)
def test_a_result_that_cannot_be_written_is_reported_before_the_work(
    verb: tuple[str, ...], nowhere: Path, fails: Fails
) -> None:
    output = fails(*verb, nowhere / "result")
    assert output.startswith(f"adahi: --out: {nowhere}/")
    assert output.endswith("cannot be written (Not a directory)\n")


@pytest.mark.parametrize("verb", SHIPPED, ids=" ".join)
def test_what_is_shipped_is_not_replaced_unasked(
    verb: tuple[str, ...], fails: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_lab = SHIPPED[verb].startswith("--out: config/")
    monkeypatch.chdir(asset("config/best").parents[1] if in_lab else asset("package.xml").parent)
    output = fails(*verb)
    assert output == f"adahi: {SHIPPED[verb]} is shipped; must be another place, or give --overwrite\n"


def test_figures_are_written_before_pictures_are_drawn(
    checkpoints: Path, recipe: dict[str, Any], nowhere: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class UndrawnError(Exception):
        pass

    def draw(*arguments: object) -> None:
        raise UndrawnError

    monkeypatch.setattr(calibration_figure, "draw_calibrations", draw)
    monkeypatch.setattr(training_figure, "draw_losses", draw)
    monkeypatch.setattr("adahi_lab.calibration.rejection_curve.MOST_TRIALS", 2)  # how near says nothing here
    monkeypatch.setattr(train, "save_with_export", save_policy)  # takes seconds
    options: list[Any] = ["--episodes", 6, "--smoothing", 0.5, "--normalization", "std", "--workers", 1]
    options += ["--checkpoints", checkpoints, "--backend", "torch", "--out", "ball.yaml"]
    with pytest.raises(UndrawnError):
        run("thresholds", "ball", *options, "--json", "calibrate.json")
    assert json.loads(Path("calibrate.json").read_text())["thresholds"]

    Path("recipe.yaml").write_text(yaml.safe_dump(recipe))
    with pytest.raises(UndrawnError):
        run("train", "ball", "--recipe", "recipe.yaml", "--out", "made", "--workers", 1, "--json", "t.json")
    assert json.loads(Path("t.json").read_text())["models"].keys() == {"tokenizer", "draft"}


def test_a_try_leaves_nothing_behind_and_changes_nothing(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.json").write_text("as it was")
    (tmp_path / "link.json").symlink_to(tmp_path / "later.json")
    for name in ("there.json", "link.json", "new/figures.json"):
        with pytest.raises(ValueError, match="methods: 'none'"):
            run("evaluate", "ball", "--methods", "none", "--json", name)
    assert (tmp_path / "there.json").read_text() == "as it was"
    assert (tmp_path / "link.json").is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"there.json", "link.json"}
