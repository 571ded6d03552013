from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from adahi_ros.assets import asset
from adahi_ros.evaluation.calibrate import FIRST_EPISODE, SMOOTHINGS, calibrate, deviations, measure
from adahi_ros.evaluation.calibration_figure import draw_calibration
from adahi_ros.evaluation.evaluate import Policies
from adahi_ros.evaluation.metrics import transmission_rate
from adahi_ros.evaluation.rollout import rollout
from adahi_ros.policy.backends import load_policy
from adahi_ros.speculation.controller import Controller, ControllerConfig
from adahi_ros.speculation.gates import Gate
from adahi_ros.speculation.parameter_file import Calibration, load_calibration
from adahi_ros.speculation.verifier import TargetVerifier
from adahi_ros.tasks import make

RATE = 0.45


def assert_rate(policies: Policies, found: Calibration, gate: str, episodes: int, within: float) -> None:
    controller = Controller(policies.draft, found.controller(gate))
    log = rollout(make("ball"), controller, TargetVerifier(policies.target), 0, range(episodes))
    rate = transmission_rate(log.transmitted, log.active)
    assert rate == pytest.approx(found.transmission_rate, abs=within), gate


@pytest.fixture(scope="module")
def found(policies: Policies) -> Calibration:
    return calibrate("ball", policies, RATE, seed=0, episodes=40, smoothing=0.5)


@pytest.fixture(scope="module")
def shipped() -> Policies:
    folder = asset("checkpoints/ball")
    return Policies(*(load_policy(folder / name, "onnxruntime") for name in ("draft", "target")))


def test_every_gate_reaches_the_rate_on_fresh_episodes(policies: Policies, found: Calibration) -> None:
    assert found.thresholds.keys() == {"deviation", "uncertainty", "random"}
    assert found.thresholds["random"] == 1 - RATE
    for gate in found.thresholds:
        assert_rate(policies, found, gate, 100, within=0.05)


def test_the_shipped_policies_reach_the_rate_on_fresh_episodes(shipped: Policies) -> None:
    found = calibrate("ball", shipped, 0.6, seed=0, episodes=30, smoothing=0.5)
    for gate in found.thresholds:
        assert_rate(shipped, found, gate, 60, within=0.05)
    assert found.figures["rank_correlation"] > 0.2  # with these, deviation tells rejection


def test_a_wanted_rejection_sets_the_threshold_and_the_others_follow(shipped: Policies) -> None:
    log = rollout(
        make("ball"),
        Controller(shipped.draft, ControllerConfig(Gate("always"))),
        TargetVerifier(shipped.target),
        0,
        range(FIRST_EPISODE, FIRST_EPISODE + 10),
    )
    best = measure(log, shipped.draft.decoder.action_scale, 0.5, "std").best
    wanted = float(best.rejection(np.array(1.0)))
    found = calibrate("ball", shipped, 0.9, 0, episodes=10, smoothing=0.5, rejection=wanted)
    rates = found.figures["measured_rates"]
    assert found.thresholds["deviation"] == pytest.approx(1.0)
    assert found.transmission_rate == pytest.approx(rates["deviation"], abs=1e-4)
    assert rates["uncertainty"] == pytest.approx(rates["deviation"], abs=0.02)
    assert found.thresholds["random"] == 1 - found.transmission_rate
    assert found.figures["rejection_at_threshold"] == pytest.approx(wanted, abs=1e-4)


def test_figures_say_what_was_measured(found: Calibration, policies: Policies) -> None:
    figures = found.figures
    json.dumps(figures, allow_nan=False)
    assert (found.draft, found.target) == (policies.draft.digest, policies.target.digest)
    assert figures["episodes"] == 40
    assert figures["measured_rates"].keys() == {"deviation", "uncertainty"}
    for rate in figures["measured_rates"].values():
        assert rate == pytest.approx(RATE, abs=0.01)
    assert figures["bins"]["deviation"] == sorted(figures["bins"]["deviation"])
    assert all(0 <= share <= 1 for share in figures["bins"]["rejection"])


def test_the_smoothing_that_ranks_best_is_taken_and_again_with_the_same_seed(policies: Policies) -> None:
    found = calibrate("ball", policies, RATE, seed=0, episodes=6)
    log = rollout(
        make("ball"),
        Controller(policies.draft, ControllerConfig(Gate("always"))),
        TargetVerifier(policies.target),
        0,
        range(FIRST_EPISODE, FIRST_EPISODE + 6),
    )
    scale = policies.draft.decoder.action_scale
    ranks = {s: measure(log, scale, s, "std").rank_correlation for s in SMOOTHINGS}
    assert ranks[found.smoothing] == max(ranks.values()) > min(ranks.values())
    assert calibrate("ball", policies, RATE, seed=0, episodes=6, smoothing=found.smoothing) == found


def test_a_cooler_draft_gets_thresholds_of_its_own(policies: Policies, found: Calibration) -> None:
    cooled = calibrate("ball", policies, RATE, seed=0, episodes=40, smoothing=0.5, draft_temperature=0.3)
    assert cooled.controller("deviation").draft_temperature == 0.3
    assert cooled.thresholds["uncertainty"] < found.thresholds["uncertainty"]
    assert_rate(policies, cooled, "uncertainty", 100, within=0.05)


def test_deviations_of_a_log_are_those_that_the_robot_saw(policies: Policies) -> None:
    config = ControllerConfig(Gate("deviation", 0.4), smoothing=0.3, normalization="average")
    controller = Controller(policies.draft, config)
    log = rollout(make("ball"), controller, TargetVerifier(policies.target), 0, range(3))
    again = deviations(log, policies.draft.decoder.action_scale, 0.3, "average")
    np.testing.assert_array_equal(again, log.deviation)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rate": 0.0}, "rate: 0.0, must be between 0 and 1"),
        ({"rate": 1.5}, "rate: 1.5, must be between 0 and 1"),
        ({"rejection": -0.1}, "rejection: -0.1, must be 0 to 1"),
        ({"episodes": 0}, "episodes: 0, must be at least 1"),
        ({"smoothing": 0.0}, "smoothing: 0.0, must be above 0 and at most 1"),
        ({"normalization": "max"}, "normalization: 'max', must be one of average, std"),
        ({"draft_temperature": 0.0}, "draft_temperature: 0.0, must be above 0"),
        ({"task": "billiards"}, "task: 'billiards', expected one of ball"),
    ],
)
def test_wrong_settings_are_named_before_anything_is_run(
    policies: Policies, changes: dict[str, object], message: str
) -> None:
    said: list[str] = []
    settings = {"task": "ball", "rate": 0.5, "seed": 0, "episodes": 2, "say": said.append, **changes}
    with pytest.raises(ValueError, match=message):
        calibrate(policies=policies, **settings)  # type: ignore[arg-type]
    assert not [line for line in said if "threshold" in line]


def test_the_file_and_the_picture_of_a_calibration(found: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "new" / "ball.yaml"
    found.save(path, "deviation", "adahi calibrate ball")
    assert load_calibration(path) == found
    assert yaml.safe_load(path.read_text())["/**"]["ros__parameters"]["gate"]["name"] == "deviation"
    draw_calibration(found, path.with_suffix(".png"))
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
