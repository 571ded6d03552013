from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from adahi_lab.calibration.calibrate import Wanted, calibrate_recorded
from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.calibration.replay import (
    REPLAYED,
    Replay,
    calibration_of,
    load_pair,
    replay,
)
from adahi_lab.datasets.bag_dataset import read_dataset
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation import step_latency as latency
from adahi_lab.evaluation.evaluate import Comparison, Run, expert_error
from adahi_lab.evaluation.loaded_policies import Policies, plans_in, with_plans
from adahi_lab.link.link_profile import LinkProfile
from adahi_lab.methods.methods import METHODS
from adahi_lab.methods.recommended import Recommendation
from adahi_lab.reporting.bag_tables import replay_table
from adahi_lab.reporting.replay_figure import draw_replay
from adahi_ros.contract.contract import Contract
from adahi_ros.core.assets import CHECKPOINTS, named

LINK = LinkProfile(rtt_mean_ms=20.0, rtt_jitter_ms=0.0, rate_mbit_s=1000.0)


@pytest.fixture(scope="module")
def data(bag: Path, contract: Contract) -> Trajectories:
    return read_dataset([bag], contract).trajectories


@pytest.fixture(scope="module")
def found(data: Trajectories, policies: Policies, calibration: Calibration) -> Replay:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latency, "REPETITIONS", 3)
        return replay(data, policies, calibration, LINK, seed=5)


def test_errors_are_those_of_the_evaluation_on_the_same_episodes(
    found: Replay, data: Trajectories, comparison: Comparison
) -> None:
    assert list(found.figures) == list(REPLAYED)
    for name in ("adahi", "draft", "target"):
        assert found.figures[name]["mse"] == expert_error(Run(METHODS[name], comparison, ()), data)


def test_gates_transmit_and_cost_as_they_are_meant_to(found: Replay) -> None:
    rates = {name: figures["transmission_rate"] for name, figures in found.figures.items()}
    assert (rates["hybrid"], rates["target"], rates["draft"]) == (1.0, 1.0, 0.0)
    assert 0.0 < rates["adahi"] < 1.0
    costs = found.costs
    draft_ms = found.figures["draft"]["modelled_latency_ms"]["mean"]
    hybrid_ms = found.figures["hybrid"]["modelled_latency_ms"]["mean"]
    assert draft_ms == pytest.approx(costs.draft_ms)
    transfer = LINK.transfer_ms(costs.request_bytes + costs.response_bytes)
    assert hybrid_ms == pytest.approx(costs.draft_ms + costs.target_ms + 20.0 + transfer)
    spent = found.figures["adahi"]["modelled_latency_ms"]["mean"]
    assert spent == pytest.approx(draft_ms + rates["adahi"] * (hybrid_ms - draft_ms))
    json.dumps(found.figures, allow_nan=False)


def test_a_wrong_rate_is_reported(data: Trajectories, policies: Policies) -> None:
    with pytest.raises(ValueError, match=r"rate: 1.5, must be between 0 and 1"):
        calibrate_recorded(policies, data, Wanted(1.5), seed=0)


BY_PLANS = ["best", "plan_8", "corrector_8", "corrector_8+2", "plan:age@3", "draft_checks_plan:never"]


def with_the_balls_plans(policies: Policies) -> Policies:
    return with_plans(policies, plans_in(named("ball/plans", CHECKPOINTS)), "onnxruntime")


@pytest.fixture(scope="module")
def by_plans(data: Trajectories, policies: Policies, calibration: Calibration) -> Replay:
    """The toy robot, of the ball's sizes, by the plans for the ball."""
    both = with_the_balls_plans(policies)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latency, "REPETITIONS", 3)
        return replay(replace(data, task="ball"), both, calibration, LINK, seed=5, names=BY_PLANS)


def test_methods_that_go_by_plans_are_replayed(
    by_plans: Replay, data: Trajectories, policies: Policies
) -> None:
    figures = by_plans.figures
    assert list(figures) == BY_PLANS
    calls = {name: each["calls"] for name, each in figures.items()}
    assert calls["plan_8"] == calls["corrector_8"] == 12 * 4  # of episodes of 30 steps
    assert calls["plan:age@3"] == 12 * 8
    assert figures["plan_8"]["transmission_rate"] == calls["plan_8"] / figures["plan_8"]["steps"] == 48 / 360
    assert calls["draft_checks_plan:never"] < calls["best"] < calls["plan_8"]
    assert figures["plan_8"]["mse"] != figures["corrector_8"]["mse"]
    done = by_plans.logs["plan_8"].action.transpose(1, 0, 2).reshape(-1, 2)
    error = (done - data.actions) / policies.draft.action_scale
    assert figures["plan_8"]["mse"] == pytest.approx((error**2).mean())
    json.dumps(figures, allow_nan=False)


def test_who_asks_ahead_does_not_wait(by_plans: Replay) -> None:
    latencies = {name: by_plans.latency_ms[name].max() for name in BY_PLANS}
    assert latencies["plan_8"] > 20.0  # the link's
    assert max(latencies["best"], latencies["corrector_8+2"]) < 20.0
    assert np.median(by_plans.latency_ms["plan_8"]) == 0.0  # nothing is computed on the robot


def test_plans_are_shown(by_plans: Replay, tmp_path: Path) -> None:
    draw_replay(by_plans, 20.0, "test", tmp_path / "plans.png")
    table = replay_table(by_plans, "title")
    console = Console(file=io.StringIO(), width=80)
    console.print(table)
    message = console.file.getvalue()  # type: ignore[attr-defined]
    assert "Corrected plan/8+2" in message
    assert "…" not in message
    assert table.row_count == len(BY_PLANS)


def test_intents_are_replayed(data: Trajectories, policies: Policies, calibration: Calibration) -> None:
    recorded = replace(data, task="ball_instructed")
    files = plans_in(named("ball_instructed/plans", CHECKPOINTS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latency, "REPETITIONS", 3)
        both = with_plans(policies, files, "onnxruntime")
        found = replay(
            recorded, both, calibration, LINK, seed=5, names=["intent:delay=1", "intent", "plan_8"]
        )
    calls = {name: figures["calls"] for name, figures in found.figures.items()}
    assert calls == {"intent:delay=1": 12, "intent": 12, "plan_8": 12 * 4}  # of episodes of 30 steps
    assert found.latency_ms["intent:delay=1"].max() < 20.0  # it never waits
    assert 20.0 < found.latency_ms["intent"].max() < found.latency_ms["plan_8"].max() + 5.0


def test_what_is_best_is_what_one_says(
    by_plans: Replay, data: Trajectories, policies: Policies, calibration: Calibration
) -> None:
    both = with_the_balls_plans(policies)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latency, "REPETITIONS", 3)
        own = Recommendation("plan", "wait", "age", 7.0)
        found = replay(data, both, calibration, LINK, 5, names=["best"], best=own)
    assert data.task == "toy"  # for which nothing is recommended
    assert found.figures["best"]["calls"] == by_plans.figures["plan_8"]["calls"]


def test_a_calibration_is_needed_where_a_threshold_is(policies: Policies, calibration: Calibration) -> None:
    assert calibration_of(calibration, calibration.task, policies, ["adahi"]) is calibration
    empty = calibration_of(None, "toy", policies, ["best", "hybrid", "draft", "target"])
    assert (empty.task, empty.thresholds) == ("toy", {})
    with pytest.raises(ValueError, match=r"^--calibration: none, must be given for adahi, random$"):
        calibration_of(None, "toy", policies, ["adahi", "hybrid", "random"])
    with pytest.raises(ValueError, match=r"^calibration: made for other policies or another task"):
        calibration_of(calibration, "toy", policies, ["adahi"])
    assert calibration_of(calibration, "toy", policies, ["draft"]).task == "toy"


def test_missing_plans_are_reported_before_anything_runs(
    data: Trajectories, policies: Policies, calibration: Calibration
) -> None:
    alone = replace(policies, plans=None)
    for name in ("plan_2", "corrector_2"):
        with pytest.raises(ValueError, match=f"^{name}: there is no target that plans beside these policies"):
            replay(data, alone, calibration, LINK, 5, pytest.fail, ["adahi", name])
    with pytest.raises(ValueError, match=r"^corrector_2: there is no corrector beside these policies"):
        replay(data, policies, calibration, LINK, 5, pytest.fail, ["adahi", "corrector_2"])
    with pytest.raises(ValueError, match=r"^plan_9: the target plans only 8 actions"):
        replay(data, policies, calibration, LINK, 5, pytest.fail, ["plan_9"])


def test_a_pair_is_loaded(checkpoints: Path, calibration: Calibration) -> None:
    draft = checkpoints / "draft"
    pair = load_pair(draft, checkpoints / "target", "torch")
    assert (pair.draft.digest, pair.target.digest) == (calibration.draft, calibration.target)
    assert load_pair(draft, draft, "torch").target.digest == calibration.draft
    with pytest.raises(ValueError, match=r"^no/draft.json: no such checkpoint"):
        load_pair(Path("no/draft"), draft, "torch")
