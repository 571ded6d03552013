from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adahi_lab.evaluation.repeated_run import repeated_true_skip_ratio
from adahi_lab.evaluation.run_metrics import run_figures, spread
from adahi_lab.evaluation.run_record import Crossed, EpisodeRecord, RunRecord
from adahi_lab.reporting.run_figure import draw_run
from adahi_lab.reporting.training_figure import draw_losses
from adahi_ros.protocol.records import Reason, StepRecord

Make = Callable[..., StepRecord]
SKIPPED = {"transmitted": False, "verified": False, "accepted": (), "request_bytes": 0, "response_bytes": 0}


@pytest.fixture
def run(step_record: Make) -> RunRecord:
    """Two episodes: kept, resampled, skipped; then a late reply and no verifier."""
    return RunRecord(
        (
            step_record(deviation=float("inf"), score=float("inf"), total_ms=2.0, verify_ms=1.0),
            step_record(step=1, accepted=(True, False), total_ms=4.0, verify_ms=3.0, request_bytes=600),
            step_record(step=2, total_ms=1.0, verify_ms=0.0, **SKIPPED),
            step_record(
                episode=1,
                verified=False,
                accepted=(),
                reason=Reason.DEADLINE,
                total_ms=50.0,
                verify_ms=0.0,
                response_bytes=0,
            ),
            step_record(episode=1, step=1, reason=Reason.NO_VERIFIER, total_ms=1.0, verify_ms=0.0, **SKIPPED),
        ),
        (EpisodeRecord(0, 3, True), EpisodeRecord(1, 2, False)),
    )


def test_figures_by_hand(run: RunRecord) -> None:
    figures = run_figures(run, 20)
    assert figures["success_rate"] == 0.5
    assert figures["success_ci95"][0] < 0.5 < figures["success_ci95"][1]
    assert (figures["steps"], figures["transmitted"], figures["fallbacks"]) == (5, 3, 2)
    assert figures["transmission_rate"] == pytest.approx(3 / 5)
    assert figures["acceptance_rate"] == 0.5
    assert figures["per_action_latency_ms"]["mean"] == pytest.approx(58 / 5)
    assert figures["per_action_latency_ms"]["p50"] == 2.0
    assert figures["throughput_per_s"] == [round(3e3 / 7, 2), round(2e3 / 51, 2)]  # of each episode
    assert run_figures(run, 1)["throughput_per_s"] == [500, 250, 1000, 20, 1000]
    assert figures["verify_rtt_ms"]["mean"] == 2.0  # of replies that came
    assert figures["target_compute_ms"]["p99"] == pytest.approx(0.2)
    assert figures["request_bytes"] == pytest.approx((400 + 600 + 400) / 3)
    assert figures["response_bytes"] == 60.0
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures


def test_a_period_is_missed_without_a_command_in_time(run: RunRecord, step_record: Make) -> None:
    assert run_figures(run, 20)["missed_periods"] == 0
    assert run_figures(run, 25)["missed_periods"] == 1  # 50 ms of 40
    held = step_record(episode=1, step=2, reason=Reason.FALLBACK_LIMIT, action=())
    unseen = EpisodeRecord(1, 4, False)  # its fourth observation met a robot that was busy
    longer = RunRecord((*run.steps, held), (run.episodes[0], unseen))
    assert run_figures(longer, 20)["missed_periods"] == 2


def test_what_crossed_a_link_is_reported_per_action(run: RunRecord) -> None:
    names = ("bytes_up_per_action", "bytes_down_per_action")

    def per_action(crossed: Crossed | None) -> list[float | None]:
        figures = run_figures(RunRecord(run.steps, run.episodes, crossed), 20)
        return [figures[name] for name in names]

    assert per_action(Crossed(4, 1000, 600)) == [250, 150]
    assert per_action(Crossed(0, 10, 10)) == [None, None]  # an episode of one step
    assert per_action(None) == [None, None]


def test_spread_of_a_hundred() -> None:
    figures = spread([float(value) for value in range(101)])
    assert figures == {"mean": 50.0, "p50": 50.0, "p95": 95.0, "p99": 99.0}
    assert spread([]) is None


@pytest.mark.parametrize("names", [("adahi", "draft"), ("random",)])
def test_a_run_with_every_kind_of_step_is_drawn(
    run: RunRecord, names: tuple[str, ...], tmp_path: Path
) -> None:
    runs = dict.fromkeys(names, run)
    path = tmp_path / "new" / "run.png"
    draw_run("ball", runs, {name: run_figures(run, 20) for name in names}, path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_losses_are_drawn(tmp_path: Path) -> None:
    draw_losses({"draft": [2.0, 1.0, 0.5], "target": [1.0]}, tmp_path / "losses.png")
    assert (tmp_path / "losses.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_with_a_step_without_action_cannot_be_repeated() -> None:
    steps = [SimpleNamespace(episode=1, action=action) for action in ((0.5, 0.0), ())]
    run: Any = SimpleNamespace(steps=steps)
    log = SimpleNamespace(action=np.zeros((2, 1, 2)))
    method: Any = SimpleNamespace(run=lambda *given: log)
    bench: Any = SimpleNamespace(task="ball")
    assert repeated_true_skip_ratio(run, bench, method, 0) is None
