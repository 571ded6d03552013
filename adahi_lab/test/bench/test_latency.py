from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

import pytest

from adahi_lab.bench import loop_latency
from adahi_lab.bench.growth import grown_policies
from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.evaluation.loaded_policies import PolicyFiles, check_fits
from adahi_lab.evaluation.run_record import Crossed, EpisodeRecord, RunRecord
from adahi_lab.link.emulator import unavailable
from adahi_ros.core.assets import asset
from adahi_ros.protocol.records import StepRecord

Make = Callable[..., StepRecord]
SKIPPED = {
    "transmitted": False,
    "verified": False,
    "accepted": (),
    "verify_ms": 0.0,
    "target_compute_ms": 0.0,
}
PARAMETERS = 200_000


@pytest.fixture
def run(step_record: Make) -> RunRecord:
    steps = (
        step_record(total_ms=14.0, verify_ms=13.0, target_compute_ms=0.5),
        step_record(step=1, total_ms=16.0, verify_ms=15.0, target_compute_ms=1.5),
        step_record(step=2, total_ms=1.0, **SKIPPED),
        step_record(step=3, total_ms=1.0, **SKIPPED),
    )
    return RunRecord(steps, (EpisodeRecord(0, 4, True),), Crossed(3, 1200, 900))


def test_figures_by_hand(run: RunRecord) -> None:
    figures = loop_latency.latency_figures(run, 2)
    assert figures["per_action_latency_ms"]["mean"] == pytest.approx(8.0)
    assert figures["actions_per_s"] == pytest.approx(125.0)
    assert figures["throughput_per_s_p2_5"] == pytest.approx(66.67 + 0.025 * (1000 - 66.67))
    assert figures["transmission_rate"] == 0.5
    assert figures["bytes_up_per_action"] == 400
    assert figures["bytes_down_per_action"] == 300
    assert figures["success_rate"] == 1.0
    assert figures["fallbacks"] == 0
    assert figures["verify_rtt_ms"] == 14.0
    assert figures["target_compute_ms"] == 1.0
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures


def test_rounds_of_a_method_are_one_run(run: RunRecord) -> None:
    whole = loop_latency.joined([run, run])
    assert whole.steps == run.steps * 2
    assert whole.episodes == run.episodes * 2
    assert whole.crossed == Crossed(6, 2400, 1800)
    assert loop_latency.joined([RunRecord(run.steps, run.episodes)]).crossed is None


def test_shares_of_hybrid_by_hand() -> None:
    hybrid = {"success_rate": 0.8, "bytes_up_per_action": 1000.0, "bytes_down_per_action": None}
    adahi = {**hybrid, "success_rate": 0.6, "bytes_up_per_action": 550.0}
    shares = loop_latency.ratios(
        {**adahi, "per_action_latency_ms": {"mean": 9.0}}, {**hybrid, "per_action_latency_ms": {"mean": 20.0}}
    )
    assert shares["latency"] == pytest.approx(0.45)
    assert shares["success_rate"] == pytest.approx(0.75)
    assert shares["bytes_up_per_action"] == pytest.approx(0.55)
    assert shares["bytes_down_per_action"] is None


def test_a_run_is_the_same_after_it_was_written_and_read(run: RunRecord, step_record: Make) -> None:
    first = step_record(deviation=float("inf"), score=float("inf"))
    for each in (run, RunRecord((first,), run.episodes)):
        assert RunRecord.from_values(json.loads(json.dumps(asdict(each)))) == each


def test_the_calibration_goes_with_the_grown_target() -> None:
    grown = grown_policies(asset("checkpoints/ball"), PARAMETERS)
    found = loop_latency.grown_calibration("ball", grown, 0)
    shipped = load_calibration(asset("config/ball.yaml"))
    assert found.target != shipped.target
    check_fits(found, "ball", PolicyFiles(grown, "onnxruntime").load())
    assert found.thresholds == shipped.thresholds


@pytest.mark.skipif(unavailable() is not None, reason=f"no link can be emulated: {unavailable()}")
def test_an_episode_across_the_link() -> None:
    pytest.importorskip("rclpy")
    methods = ("hybrid", "draft")
    done: list[tuple[str, int]] = []
    measured = loop_latency.measure_latency(
        "wired",
        "ball",
        1,
        methods,
        PARAMETERS,
        on_run=lambda name, episodes: done.append((name, episodes)),
    )
    figures = measured.figures
    assert done == [("hybrid", 1), ("draft", 1)]
    assert figures["target_parameters"] >= PARAMETERS
    assert figures["link"]["rtt_ms"]["count"] > 0
    assert figures["adahi_to_hybrid"] is None
    hybrid, draft = (figures["methods"][name] for name in methods)
    assert (hybrid["transmission_rate"], draft["transmission_rate"]) == (1.0, 0.0)
    assert hybrid["fallbacks"] == 0
    assert all(step.verified for step in measured.runs["hybrid"].steps)
    observation_bytes = 4 * 6
    assert hybrid["bytes_up_per_action"] > observation_bytes
    assert hybrid["bytes_up_per_action"] > draft["bytes_up_per_action"]
    json.dumps(figures, allow_nan=False)
