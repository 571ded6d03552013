from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from adahi_ros.core.assets import asset
from test.cli.conftest import Fails, Measured, Run


@pytest.fixture
def evaluate(toy: list[object]) -> list[object]:
    return ["evaluate", "ball", *toy]


def test_evaluate_writes_what_was_measured(
    evaluate: list[object], checkpoints: Path, calibrated: Path, measured: Measured
) -> None:
    requested = (*evaluate, "--methods", "adahi,draft", "--episodes", 3, "--seed", 4)
    (result, written), (_, again) = measured(*requested), measured(*requested)
    assert "ADAHI" in result.output
    assert f"policies: {checkpoints}\ncalibration: {calibrated}\n" in result.output
    assert written == again  # the same seed, the same numbers
    assert (written["task"], written["seed"], written["episodes"]) == ("ball", 4, 3)
    assert list(written["methods"]) == ["adahi", "draft"]
    assert written["methods"]["adahi"]["threshold"] == 0.4
    assert written["methods"]["adahi"]["against"] is None
    assert written["methods"]["draft"]["against"]["method"] == "adahi"
    assert "McNemar" in result.output
    assert written["methods"]["draft"]["transmission_rate"] == 0.0
    assert written["draft_temperature"] == 1.0
    assert written["parameters"]["draft"].keys() == {"draft"}
    assert written["parameters"]["adahi"].keys() == {"draft", "target"}


def test_evaluate_swaps_goals_where_the_task_allows_it(
    evaluate: list[object], measured: Measured, fails: Fails
) -> None:
    message = fails(*evaluate, "--methods", "draft", "--swap", 5)
    assert "swap: 5, must be left out for ball: its goal cannot change" in message
    shipped = "evaluate", "ball_instructed", "--methods", "target", "--episodes", 2, "--swap", 25
    result, written = measured(*shipped, "--no-push")
    assert written["swap"] == {"step": 25, "push": False}
    assert "goals change at step 25, no push" in " ".join(result.output.split())
    assert "drift: 0.1, must be left out with --swap" in fails(*shipped, "--drift", 0.1)
    _, written = measured(*shipped[:-2], "--drift", 0.02)
    assert written["drift"] == 0.02


def test_evaluate_counts_every_request_across_a_link(measured: Measured, fails: Fails) -> None:
    shipped = "evaluate", "ball_instructed", "--episodes", 20, "--workers", 1, "--methods", "intent,draft"
    result, late = measured(*shipped, "--delay", 10)
    assert "every reply 10 steps late, 0 of them lost" in " ".join(result.output.split())
    assert (late["link"]["delay"], late["link"]["loss"]) == (10, 0.0)
    intent = late["methods"]["intent"]
    assert intent["held_share"] * intent["steps_per_episode"] == pytest.approx(10.0)
    assert late["methods"]["draft"]["held_share"] == 0.0
    _, lost = measured(*shipped, "--loss", 0.99)
    assert lost["methods"]["intent"]["success_rate"] < 0.3 < intent["success_rate"]
    assert fails(*shipped, "--loss", 1) == "adahi: loss: 1.0, must be at least 0 and below 1\n"


@pytest.mark.parametrize("option", [("--rate", "0.3"), ("--draft-temperature", "0.5")])
def test_evaluate_recalibrates(
    evaluate: list[object], option: tuple[str, str], monkeypatch: pytest.MonkeyPatch, measured: Measured
) -> None:
    monkeypatch.setattr("adahi_lab.calibration.calibrate.EPISODES", 20)
    monkeypatch.setattr("adahi_lab.calibration.rejection_curve.MOST_TRIALS", 4)  # near is enough here
    result, written = measured(*evaluate, "--methods", "random,adahi,oracle", "--episodes", 20, *option)
    rate = 0.3 if option[0] == "--rate" else 0.6
    assert written["draft_temperature"] == (1.0 if option[0] == "--rate" else 0.5)
    assert written["methods"]["random"]["threshold"] == 1 - rate
    assert written["methods"]["adahi"]["threshold"] != 0.4
    for values in written["methods"].values():
        assert values["transmission_rate"] == pytest.approx(rate, abs=0.1)
    threshold = written["methods"]["adahi"]["threshold"]
    assert f"threshold found for adahi: {threshold:.6g}, at a request rate of 0." in result.output


def test_what_cannot_be_evaluated_is_named_with_what_could(
    evaluate: list[object], calibrated: Path, fails: Fails
) -> None:
    assert fails(*evaluate, "--methods", "adahi,telepathy").startswith(
        "adahi: methods: 'telepathy', must be of adahi,"
    )
    assert fails(*evaluate, "--methods", "plan_2", "--episodes", 1).startswith(
        "adahi: plan_2: there is no target that plans beside these policies"
    )
    assert fails(*evaluate, "--methods", "oracle").startswith("adahi: thresholds.oracle: missing, ")
    assert fails(*evaluate, "--methods", "adahi,draft", "--against", "target") == (
        "adahi: against: 'target', must be one of the methods compared: adahi, draft\n"
    )
    assert fails(*evaluate, "--rate", "1.5") == "adahi: rate: 1.5, must be between 0 and 1\n"
    wrong = fails(*evaluate, "--backend", "tpu")
    assert wrong == "adahi: backend: 'tpu', must be one of int8, onnxruntime, torch\n"
    calibrated.write_text("gate: deviation\n")
    assert fails(*evaluate) == f"adahi: {calibrated}: /**: missing\n"


def test_checkpoints_that_are_not_there_are_named(fails: Fails, tmp_path: Path) -> None:
    bracketed = tmp_path / "[red]" / "ball"
    assert f"{bracketed / 'draft.json'}: no such checkpoint" in fails(
        "evaluate", "ball", "--checkpoints", bracketed
    )


def test_what_a_task_without_shipped_files_needs_is_named(
    checkpoints: Path, tmp_path: Path, fails: Fails
) -> None:
    task = tmp_path / "pole.yaml"
    described = asset("config/tasks/inverted_pendulum.yaml").read_text()
    task.write_text(described.replace("name: inverted_pendulum", "name: pole"))
    assert fails("evaluate", task) == (
        "adahi: --checkpoints: none, must be given for pole, of which no policies are shipped\n"
    )
    assert fails("evaluate", task, "--checkpoints", checkpoints) == (
        "adahi: --calibration: none, must be given for pole, of which none is shipped; or give --rate\n"
    )


def test_a_calibration_of_other_checkpoints_is_refused(
    evaluate: list[object], make_checkpoints: Callable[..., Path], checkpoints: Path, fails: Fails
) -> None:
    others = make_checkpoints(seed=1)
    output = fails(*(others if each == checkpoints else each for each in evaluate))
    assert "made for other policies or another task (ball); run 'adahi thresholds ball'" in output


EXAMPLE = Path(__file__).parents[3] / "docs/examples/own_method.py"


def test_the_example_of_a_method_in_a_file_runs(monkeypatch: pytest.MonkeyPatch, measured: Measured) -> None:
    monkeypatch.setattr("adahi_lab.evaluation.evaluate.HELD_OUT_EPISODES", 2)
    monkeypatch.chdir(EXAMPLE.parent)  # so its name is that of the page
    names = [f"{EXAMPLE.name}:Moved", f"{EXAMPLE.name}:Moved@0.01", f"{EXAMPLE.name}:Fading"]
    options = ["--method", "plan_8", *(each for name in names for each in ("--method", name))]
    result, figures = measured("evaluate", "ball", *options, "--episodes", 3, "--workers", 1)
    written = figures["methods"]
    assert list(written) == ["plan_8", *names]
    often, moved, fading = (written[name] for name in (names[1], names[0], names[2]))
    assert (moved["gate"], moved["threshold"]) == ("Moved", 0.04)
    assert 1.0 > often["transmission_rate"] > moved["transmission_rate"] > 0.0
    assert (fading["gate"], fading["transmission_rate"]) == ("age", pytest.approx(1 / 8, abs=0.02))
    assert fading["against"]["method"] == "plan_8"
    for label in ("Moved", "Moved@0.01", "Fading"):
        assert f"{label} " in result.output


def test_a_method_in_a_file_alone_comes_beside_the_others_at_their_rate(
    evaluate: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: Measured
) -> None:
    monkeypatch.setattr("adahi_lab.calibration.calibrate.EPISODES", 20)
    monkeypatch.setattr("adahi_lab.evaluation.evaluate.HELD_OUT_EPISODES", 2)
    own = tmp_path / "own.py"
    own.write_text("class Own:\n    def score(self, context):\n        return context.deviation ** 2\n")
    result, figures = measured(*evaluate, "--method", f"{own}:Own", "--episodes", 10)
    written = figures["methods"]
    beside = ["adahi", "hybrid", "draft", "target", "random", "uncertainty"]
    assert list(written) == [*beside, f"{own}:Own"]
    assert written["adahi"]["threshold"] == 0.4  # the others' are as they were
    assert written[f"{own}:Own"]["transmission_rate"] == pytest.approx(0.6, abs=0.1)
    threshold = written[f"{own}:Own"]["threshold"]
    assert f"threshold found for {own}:Own: {threshold:.6g}, at a request rate of 0." in result.output
    assert result.output.count("threshold found") == 1  # the others' are in the file


def test_a_method_that_cannot_be_had_of_its_file_is_named(evaluate: list[object], fails: Fails) -> None:
    assert fails(*evaluate, "--method", "nowhere.py:Gate") == "adahi: nowhere.py: no such file\n"
    output = fails(*evaluate, "--method", f"{EXAMPLE}:Gate")
    assert output == f"adahi: {EXAMPLE}: has no class Gate, but Moved, Fading\n"


def test_compare_tells_where_methods_stand_and_goes_on_from_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, measured: Measured
) -> None:
    out = tmp_path / "new" / "rows.json"
    tasks = ("--tasks", "ball,inverted_pendulum")
    command = ["lab", "compare", *tasks, "--episodes", 3, "--workers", 1, "--out", out]
    result, written = measured(*command, "--methods", "adahi,plan_8", "--method", f"{EXAMPLE}:Moved")
    assert list(written["tasks"]) == ["ball", "inverted_pendulum"]
    ball, pole = written["tasks"].values()
    assert list(ball["methods"]) == ["target", "adahi", "plan_8", f"{EXAMPLE}:Moved"]
    assert ball["skipped"] == {}
    assert ball["methods"]["adahi"]["against"]["method"] == "target"
    assert ball["methods"]["plan_8"]["random"]["gate"] == "random"
    assert ball["methods"]["plan_8"]["needs"] == ["target that plans"]
    assert list(pole["methods"]) == ["target", "adahi"]
    assert list(pole["skipped"]) == ["plan_8", f"{EXAMPLE}:Moved"]
    assert "ball: target that plans: Plan/8\n" in result.output
    assert "inverted_pendulum: plan_8 is left out: plan_8: there is no target that plans" in result.output
    monkeypatch.setattr("adahi_lab.evaluation.evaluate.play", lambda *arguments: pytest.fail("again"))
    again = run(*command, "--methods", "plan_8,adahi")
    assert "ADAHI" in again.output


def test_what_cannot_stand_anywhere_is_named(tmp_path: Path, fails: Fails) -> None:
    out = tmp_path / "rows.json"
    assert fails("lab", "compare", "--task", "ball", "--methods", "telepathy", "--out", out).startswith(
        "adahi: methods: 'telepathy', must be of adahi,"
    )
    assert fails("lab", "compare", "--task", "maze", "--out", out).startswith(
        "adahi: task: 'maze', expected one of"
    )
    out.write_text("rows")
    output = fails("lab", "compare", "--task", "ball", "--out", out)
    assert output.startswith(f"adahi: {out}: not rows of 'adahi lab compare'")
    # The figures would be written over rows that took hours.
    assert fails("lab", "compare", "--out", out, "--json", tmp_path / "x/../rows.json") == (
        f"adahi: --json: {tmp_path / 'x/../rows.json'}, must be another file than the rows have (--out)\n"
    )
    assert out.read_text() == "rows"
