from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adahi_lab.evaluation import evaluate
from adahi_lab.evaluation.comparison import (
    BASELINE,
    ITSELF,
    Rows,
    chance_between_plans,
    entries,
    measure,
    random_baseline,
    standings,
)
from adahi_lab.evaluation.evaluate import Comparison, Outcome, Run, evaluate_methods
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.evaluation.metrics import mcnemar
from adahi_lab.figures import Figures
from adahi_lab.methods.methods import METHODS
from adahi_lab.methods.recommended import Recommendation
from adahi_ros.core.registry import argument
from adahi_ros.gates.plans import AgeGate
from adahi_ros.gates.registry import GATES

EPISODES = range(6)
NAMES = ("target", "adahi", "draft", "plan_4")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "rows.json"


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From now on whatever would measure anything fails."""

    def play(*arguments: object) -> None:
        pytest.fail("measured again")

    return lambda: monkeypatch.setattr(evaluate, "play", play)


def measured(comparison: Comparison, path: Path, names: tuple[str, ...] = NAMES) -> list[Figures]:
    wanted, skipped = entries(comparison, names, EPISODES)
    assert skipped == {}
    return measure(wanted, Rows(path), 1)


def test_rows_have_the_figures_of_a_comparison(comparison: Comparison, path: Path) -> None:
    expected = evaluate_methods(comparison, NAMES, EPISODES)
    for name, row in zip(NAMES, measured(comparison, path), strict=True):
        assert row["key"]["method"] == name
        assert len(row["success"]) == len(EPISODES)
        for figure in ("success_rate", "transmission_rate", "calls_per_episode", "success_ci95"):
            assert row[figure] == expected[name][figure]
    assert json.loads(path.read_text()) == {"rows": measured(comparison, path)}


def test_what_is_there_is_not_measured_again(
    comparison: Comparison, path: Path, idle: Callable[[], None]
) -> None:
    first = measured(comparison, path)
    noted: list[tuple[str, bool]] = []
    idle()
    wanted, _ = entries(comparison, NAMES, EPISODES)
    again = measure(wanted, Rows(path), 1, lambda entry, now: noted.append((entry.name, now)))
    assert again == first
    assert noted == [(name, False) for name in NAMES]


def test_what_was_stopped_goes_on(
    comparison: Comparison, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play, played = evaluate.play, []

    def stops(run: Run) -> Outcome:
        played.append(run.method)
        if len(played) == 3:
            raise KeyboardInterrupt
        return play(run)

    monkeypatch.setattr(evaluate, "play", stops)
    with pytest.raises(KeyboardInterrupt):
        measured(comparison, path)
    assert [row["key"]["method"] for row in json.loads(path.read_text())["rows"]] == list(NAMES[:2])
    measured(comparison, path)
    assert played == [METHODS[name] for name in (*NAMES[:3], *NAMES[2:])]


def test_batches_and_workers_make_no_difference(
    comparison: Comparison, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = measured(comparison, path, ("adahi", "plan_4"))
    monkeypatch.setattr(evaluate, "BATCH", 4)
    wanted, _ = entries(comparison, ("adahi", "plan_4"), EPISODES)
    apart = measure(wanted, Rows(tmp_path / "apart.json"), 2)
    assert [row["success"] for row in apart] == [row["success"] for row in whole]
    assert [row["calls_per_episode"] for row in apart] == [row["calls_per_episode"] for row in whole]


@dataclass(eq=False)
class Weighed(AgeGate):
    """A gate of another package, with weights."""

    file: str = argument("", "Weights")


def test_whatever_decides_a_row_is_in_its_key(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(name: str, comparison: Comparison = comparison, episodes: range = EPISODES) -> Figures:
        (entry,), _ = entries(comparison, [name], episodes)
        return entry.key(comparison.bench())

    calibration, own = comparison.calibration, tmp_path / "own.py"
    own.write_text("class Own:\n    threshold = 1.0\n    def score(self, context): ...\n")
    before = key(f"{own}:Own")
    own.write_text(own.read_text() + "\n")
    thresholds = {**calibration.thresholds, "deviation": 0.5}
    others = [
        key("random"),
        key("adahi", replace(comparison, seed=6)),
        key("adahi", episodes=range(7)),
        key("adahi", replace(comparison, calibration=replace(calibration, thresholds=thresholds))),
        key("adahi", replace(comparison, calibration=replace(calibration, smoothing=0.6))),
        key("adahi", replace(comparison, calibration=replace(calibration, draft_temperature=0.6))),
        before,
        key(f"{own}:Own"),
    ]
    assert len({json.dumps(each) for each in [key("adahi"), *others]}) == len(others) + 1
    assert key("adahi") == json.loads(json.dumps(key("adahi")))
    recommended = Recommendation("plan", "ahead", "age", 3.0), Recommendation("plan", "wait", "age", 3.0)
    for noted in recommended:
        monkeypatch.setattr("adahi_lab.methods.recommended.recommended", lambda task, noted=noted: noted)
        others.append(key("best"))
    assert others[-2]["threshold"] == others[-1]["threshold"]
    assert others[-2] != others[-1]
    monkeypatch.setitem(GATES.shipped, "weighed", Weighed)
    weights = tmp_path / "gate.safetensors"
    for content in ("one", "another"):
        weights.write_text(content)
        others.append(key(f"plan:weighed:file={weights}@0.3"))
    assert others[-2] != others[-1]
    digests = key("adahi")["digests"]
    policies = comparison.bench().policies
    assert (digests["draft"], digests["target"]) == (policies.draft.digest, policies.target.digest)
    assert digests["corrector"] is None


def test_every_policy_that_there_is_decides_a_row(comparison: Comparison) -> None:
    (entry,), _ = entries(comparison, ["adahi"], EPISODES)
    bench = comparison.bench()
    other = replace(bench, policies=replace(bench.policies, distilled=bench.policies.draft))
    assert entry.key(other) != entry.key(bench)


def test_no_row_is_lost_where_several_write_at_once(comparison: Comparison, path: Path) -> None:
    (row,) = measured(comparison, path, ("draft",))
    begin = threading.Barrier(4)

    def write(first: int) -> None:
        rows = Rows(path)
        begin.wait()
        for seed in range(first, first + 10):
            rows.add({**row, "key": {**row["key"], "seed": seed}})

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(write, range(100, 500, 100)))
    seeds = sorted(each["key"]["seed"] for each in json.loads(path.read_text())["rows"])
    assert seeds == sorted(
        [row["key"]["seed"], *(first + each for first in range(100, 500, 100) for each in range(10))]
    )


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"success": [1]}, "success: of 6 episodes, must be 0 or 1 for each"),
        ({"success": [2] * 6}, "success: of 6 episodes, must be 0 or 1 for each"),
        ({"success": None}, "NoneType"),
        ({"transmission_rate": ...}, "'transmission_rate'"),
        ({"transmission_rate": "x"}, "'x', must be numbers"),
        ({"success_ci95": None}, "NoneType"),
        ({"success_ci95": "ab"}, "'a', must be numbers"),
    ],
)
def test_a_row_that_is_not_whole_is_named(
    changed: dict[str, Any], text: str, comparison: Comparison, path: Path
) -> None:
    (row,) = measured(comparison, path, ("draft",))
    damaged = {name: value for name, value in {**row, **changed}.items() if value is not ...}
    path.write_text(json.dumps({"rows": [damaged]}))
    message = f"^{re.escape(str(path))}: not rows of 'adahi lab compare' .*{text}"
    with pytest.raises(ValueError, match=message):
        Rows(path)


@pytest.mark.parametrize("text", ["{", "[]", '{"rows": 3}', '{"rows": [{}]}', '{"rows": [{"key": 3}]}'])
def test_a_file_of_something_else_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}"):
        Rows(path)


def test_what_a_task_has_no_policies_for_is_left_out(comparison: Comparison, checkpoints: Path) -> None:
    bare = replace(comparison, files=PolicyFiles(checkpoints, "torch"))
    found, skipped = entries(bare, ["adahi", "plan_4", "corrector_4", "oracle"], EPISODES)
    assert [entry.name for entry in found] == ["adahi", "oracle"]
    assert list(skipped) == ["plan_4", "corrector_4"]
    assert skipped["plan_4"].startswith("plan_4: there is no target that plans")


def lot(comparison: Comparison, name: str, path: Path, episodes: range = range(20)) -> tuple[Any, Any]:
    (entry,), _ = entries(comparison, [name], episodes)
    (row,) = measure([entry], Rows(path), 1)
    chance = random_baseline(entry, row)
    return row, None if chance is None else (chance, *measure([chance], Rows(path), 1))


@pytest.mark.parametrize("name", ["adahi", "uncertainty", "oracle", "plan_2", "plan_4", "plan_8", "plan_4+3"])
def test_a_random_gate_asks_as_often(name: str, comparison: Comparison, path: Path) -> None:
    row, (entry, chance) = lot(comparison, name, path)
    assert (entry.kind, chance["key"]["gate"], row["key"]["kind"]) == (BASELINE, "random", ITSELF)
    assert chance["key"]["method"] == name
    rate, steps = row["transmission_rate"], chance["steps_per_episode"] * 20
    assert abs(chance["transmission_rate"] - rate) < 3 * np.sqrt(rate * (1 - rate) / steps)
    assert chance["weights_on_robot"] == row["weights_on_robot"]
    assert chance["needs"] == [each for each in row["needs"] if each != "what no robot knows"]


@pytest.mark.parametrize("name", ["intent", "intent_of_plan"])
def test_an_intent_takes_one_request_an_episode(name: str, path: Path) -> None:
    row, _ = lot(Comparison.shipped("ball_instructed", 0), name, path, range(4))
    assert row["transmission_rate"] * row["steps_per_episode"] == pytest.approx(1.0, abs=0.3)


def test_a_random_gate_of_intents_knows_that_they_last(path: Path) -> None:
    row, (_, chance) = lot(Comparison.shipped("ball_instructed", 0), "intent+age@29", path, range(40))
    assert row["transmission_rate"] > 1.3 * 40 / (40 * row["steps_per_episode"])  # not the first step alone
    assert chance["transmission_rate"] == pytest.approx(row["transmission_rate"], rel=0.3)


def test_who_asks_always_or_never_has_no_random_gate_beside_him(comparison: Comparison, path: Path) -> None:
    assert [lot(comparison, name, path)[1] for name in ("target", "hybrid", "draft")] == [None] * 3


def test_a_gate_of_ones_own_has_one(comparison: Comparison, tmp_path: Path, path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "class Gate:\n    threshold = 0.4\n    def score(self, context): return context.deviation\n"
        "class Plan:\n    proposer, threshold = 'plan', 3\n    def score(self, context): return context.age\n"
        "class Own:\n    gate, threshold = 'random', 0.5\n    def __init__(self, policy): self.of = policy\n"
        "    def propose(self, context): return self.of.propose(context.observations, context.draws)\n"
    )
    for name, shipped in (("Gate", "adahi"), ("Plan", "plan_4")):
        row, (_, chance) = lot(comparison, f"{own}:{name}", path)
        expected, (_, like) = lot(comparison, shipped, path)
        assert row["transmission_rate"] == expected["transmission_rate"]
        assert chance["transmission_rate"] == like["transmission_rate"]
    assert lot(comparison, f"{own}:Own", path)[1] is None


@pytest.mark.parametrize(("rate", "horizon", "late"), [(0.3, 8, 0), (0.15, 8, 0), (0.2, 16, 4), (0.6, 4, 1)])
def test_between_plans_chance_makes_the_rate(rate: float, horizon: int, late: int) -> None:
    steps = 5000
    chance, draw = chance_between_plans(rate, steps, horizon, late), np.random.default_rng(0)
    requested, latest = 0, -horizon
    for step in range(steps):
        waits = late > 1 and step - latest < late
        if not waits and (step - latest >= horizon or draw.random() < chance):
            requested, latest = requested + 1, step
    assert 0.0 < chance < 1.0
    assert requested / steps == pytest.approx(rate, abs=0.02)


def row_of(method: str, kind: str, success: list[int]) -> dict[str, Any]:
    key = {"method": method, "kind": kind, "gate": "age", "threshold": 1.0}
    return {"key": key, "success": success, "success_rate": float(np.mean(success))}


def test_standings_are_paired_with_the_target_and_with_chance() -> None:
    ours, target, chance = [1, 1, 1, 0, 1, 1, 1], [1] * 7, [0, 0, 0, 1, 0, 0, 0]
    found = standings(
        [row_of("target", ITSELF, target), row_of("adahi", ITSELF, ours)], [row_of("adahi", BASELINE, chance)]
    )
    assert list(found) == ["target", "adahi"]
    assert (found["target"]["against"], found["target"]["random"]) == (None, None)
    against = found["adahi"]["against"]
    assert (against["method"], against["only_this"], against["only_other"], against["p"]) == (
        "target",
        0,
        1,
        1.0,
    )
    random = found["adahi"]["random"]
    assert random["success_rate"] == 1 / 7
    expected = mcnemar(np.array(ours, dtype=bool), np.array(chance, dtype=bool))
    assert random["against"] == {"method": "random", **expected._asdict()}
    assert (expected.only_this, expected.only_other) == (6, 1)
    assert "success" not in found["adahi"]
