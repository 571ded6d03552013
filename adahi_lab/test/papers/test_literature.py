"""What `adahi methods` says is there, and is run as it says; and the table of it."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from rich.console import Console
from test.papers.over_dds import with_index

import adahi_ros
from adahi_lab.calibration import calibrate
from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.calibration.thresholds import Thresholds
from adahi_lab.evaluation import evaluate
from adahi_lab.evaluation.comparison import Rows, measure
from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.evaluate import Comparison, Outcome, Run
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.methods.methods import METHODS, for_task, parse_methods
from adahi_lab.papers.literature import FIDELITIES, LITERATURE, PUBLISHED, Line, PaperMethod, lines
from adahi_lab.papers.literature_table import line_entries, searched_last
from adahi_lab.reporting.literature_rows import literature_markdown, literature_table
from adahi_ros.core.assets import asset
from adahi_ros.core.schema import load

PACKAGE = Path(adahi_ros.__file__).parent
EPISODES = evaluation_episodes(1)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """The shipped policies of the ball, and an index of a few demonstrations beside them."""
    folder = with_index("ball", "checkpoints/ball", tmp_path_factory.mktemp("ball") / "policies")
    calibration = load_calibration(asset("config/ball.yaml"))
    known = {**calibration.thresholds, "sampled_uncertainty": 0.5}
    files = PolicyFiles(folder, "onnxruntime")
    return Comparison("ball", files, replace(calibration, thresholds=known), seed=5)


@pytest.fixture(scope="module")
def found(shipped: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of every line, in an episode each."""
    folder = tmp_path_factory.mktemp("rows")
    wanted, skipped = line_entries(lines(), shipped, EPISODES, searched(folder, shipped))
    assert "kerv" in skipped
    assert set(skipped) < {line.method for line in lines() if line.task not in ("", "ball")}
    measure(wanted, Rows(folder / "rows.json"), 1)
    return folder / "rows.json"


def searched(folder: Path, comparison: Comparison) -> Thresholds:
    return Thresholds(folder, comparison, 1, lambda line: None)


@pytest.mark.parametrize("each", LITERATURE, ids=lambda each: each.name)
def test_it_is_where_it_is_documented(each: PaperMethod) -> None:
    lab = each.file.startswith("adahi_lab/")
    code = ((asset("adahi_lab") if lab else PACKAGE) / each.file).read_text()
    for paper in re.findall(r"[0-9]{4}\.[0-9]{5}", each.paper):
        assert paper in code
    assert each.idea
    assert each.use
    assert each.fidelity in FIDELITIES
    assert (each.fidelity == PUBLISHED) != bool(each.differs)
    assert bool(each.lines) != bool(each.option and each.why)
    for line in each.lines:
        assert f"--methods {line.method}" in each.run
        assert len(parse_methods(for_task(line.method, "ball", Path("folder")))) == 1


@pytest.mark.parametrize(
    ("fidelity", "differs", "reason"),
    [
        ("nearly", "", "fidelity: 'nearly', must be one of as published, adapted, idea only"),
        ("as published", "one draft", "differs: 'one draft', must be empty"),
        ("adapted", "", "differs: '', must say what differs"),
    ],
)
def test_a_line_says_how_near_it_is_to_its_paper(
    fidelity: str, differs: str, reason: str, tmp_path: Path
) -> None:
    line = {**asdict(LITERATURE[0]), "fidelity": fidelity, "differs": differs, "lines": [], "why": "no"}
    (tmp_path / "one.yaml").write_text(yaml.safe_dump(line))
    with pytest.raises(ValueError, match=re.escape(reason)):
        load(PaperMethod, tmp_path / "one.yaml")


@pytest.mark.parametrize(
    "line", [each for each in lines() if each.task in ("", "ball")], ids=lambda line: line.name
)
def test_every_line_is_run(line: Line, found: Path) -> None:
    row = next(row for row in json.loads(found.read_text())["rows"] if row["key"]["method"] == line.method)
    assert len(row["success"]) == len(EPISODES)
    assert row["steps_per_episode"] > 0
    assert row["key"]["backend"] == (METHODS[line.method].backend or "onnxruntime")
    asks = row["transmission_rate"]
    assert asks == {"target": 1.0, "draft": 0.0, "hybrid": 1.0, "plan_1": 1.0}.get(line.method, asks)


def test_what_was_measured_is_not_measured_again(
    shipped: Comparison, found: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.json"
    rows = json.loads(found.read_text())["rows"]
    path.write_text(json.dumps({"rows": [row for row in rows if row["key"]["method"] != "adahi"]}))
    played: list[str] = []
    play = evaluate.play

    def noting(run: Run) -> Outcome:
        played.append(run.method.label)
        return play(run)

    monkeypatch.setattr(evaluate, "play", noting)
    wanted, _ = line_entries(lines(), shipped, EPISODES, searched(tmp_path, shipped))
    again = measure(wanted, Rows(path), 1)
    assert played == ["ADAHI"]
    assert {row["key"]["method"]: row["success"] for row in again} == {
        row["key"]["method"]: row["success"] for row in rows
    }


def test_what_a_task_lacks_is_reported_and_the_others_are_run(comparison: Comparison, tmp_path: Path) -> None:
    table = [
        Line("there", "adahi"),
        Line("index", "heisd"),
        Line("best", "best"),
        Line("corrector", "corrector_8"),
        Line("head", "always:hidden_states:file={checkpoints}/wisv.safetensors"),
    ]
    wanted, skipped = line_entries(table, comparison, EPISODES, searched(tmp_path, comparison))
    assert [entry.name for entry in wanted] == ["adahi"]
    reasons = [
        "rule: needs a target that emits tokens",
        "best: there is no corrector",
        "corrector_8: there is no corrector",
        str(comparison.files.folder / "wisv.safetensors"),
    ]
    for messages, reason in zip(skipped.values(), reasons, strict=True):
        assert reason in messages


def test_a_threshold_that_is_missing_is_searched_once(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrate, "EPISODES", 20)
    messages: list[str] = []
    name = "sampled_uncertainty:speculative"
    without, sampled = Line("first", "adahi"), Line("sampled", name)
    table = [sampled, without]
    assert searched_last(table, comparison, searched(tmp_path, comparison)) == ([without], [sampled])
    first = Thresholds(tmp_path, comparison, 1, messages.append).complete(["adahi", name]).calibration
    assert first.thresholds.items() > comparison.calibration.thresholds.items()
    assert messages == ["ball: threshold of the sampled_uncertainty gate for a transmission rate of 0.600"]
    assert load_calibration(tmp_path / "ball.yaml").thresholds == first.thresholds
    with monkeypatch.context() as patch:
        patch.setattr(calibrate, "calibrate", lambda *arguments, **named: pytest.fail("again"))
        kept = searched(tmp_path, comparison)
        assert kept.complete([name]).calibration.thresholds == first.thresholds
        assert searched_last(table, comparison, kept) == (table, [])
    # What was searched for another seed, or of other policies, is not taken.
    for other in (
        replace(comparison, seed=6),
        replace(comparison, calibration=replace(comparison.calibration, draft_temperature=0.5)),
    ):
        again: list[str] = []
        Thresholds(tmp_path, other, 1, again.append).complete([name])
        assert again == messages


def test_a_page_has_every_line_with_what_was_measured() -> None:
    values = {
        "success_rate": 0.5,
        "success_ci95": [0.25, 0.75],
        "transmission_rate": 0.1234,
        "against": {"method": "target", "only_this": 0, "only_other": 6, "p": 0.03125},
    }
    wide = {
        task: dict.fromkeys([line.method for line in lines()], values) for task in ("kitchen", "b", "metaw")
    }
    console = Console(width=200)
    assert console.measure(literature_table(lines(), wide, "title")).maximum <= 80
    page = literature_markdown(lines(), {"ball": {"adahi": values}, "swarm": {}})
    rows = page.splitlines()
    assert len(rows) == 2 + len(lines())
    assert rows[0] == "| method | `--methods` | ball: success | TR | p | swarm: success | TR | p |"
    assert "| ADAHI | `adahi` | 0.50 (0.25 to 0.75) | 0.123 | 0.031 |  |  |  |" in rows
    assert {row.count("|") for row in rows} == {9}


def test_every_page_of_a_method_is_found_from_the_table() -> None:
    page = asset("docs/research/methods.md").read_text()
    for each in asset("docs/research/methods").glob("*.md"):
        assert re.search(rf"^\| \[[^]]+\]\(methods/{each.name}\) \|", page, re.MULTILINE), each.name


@pytest.mark.parametrize("method", [each for each in LITERATURE if each.says], ids=lambda each: each.name)
def test_the_table_of_figures_is_the_verbs_and_its_commands_exist(method: PaperMethod) -> None:
    table = asset("docs/research/tables/papers.md").read_text()
    row = next(line for line in table.splitlines() if line.startswith(f"| {method.name} |"))
    assert all(text in row for text in (method.says, method.here, method.because, *method.by))
    for program, *words in map(str.split, method.by):
        assert find_spec(words[1]) if program == "python" else program == "adahi"
    with pytest.raises(ValueError, match=r"^here: '', must be given where says is"):
        replace(method, here="")


@pytest.mark.parametrize("method", LITERATURE, ids=lambda method: method.name)
def test_the_page_says_of_each_method_what_the_verb_prints(method: PaperMethod) -> None:
    page = asset("docs/research/methods.md").read_text()
    row = next(line for line in page.splitlines() if re.match(rf"\| \[?{re.escape(method.name)}[]( ]", line))
    assert all(text in row for text in (method.differs, method.use, method.fidelity))
