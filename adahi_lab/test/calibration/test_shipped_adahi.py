"""ADAHI as it is shipped is better than a random gate at its rate; with a real moving average, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adahi_lab.calibration.calibrate import RATE
from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.evaluate import Comparison, play_all
from adahi_lab.evaluation.metrics import mcnemar, transmission_rate
from adahi_ros.core.assets import asset

SEED = 12  # of no figure on a page
CALIBRATED = 50_000  # actions, as in the paper


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("task", "episodes"), [("ball", 200), ("swarm", 60), ("kitchen", 120)])
def test_shipped_adahi_beats_chance_at_its_rate(task: str, episodes: int) -> None:
    """Slow: the kitchen takes half a minute of an idle processor."""
    comparison = Comparison.shipped(task, SEED)
    outcomes = play_all(comparison, ["adahi", "random"], evaluation_episodes(episodes), 1)
    adahi, chance = outcomes["adahi"], outcomes["random"]
    rates = [transmission_rate(each.log.transmitted, each.log.active) for each in (adahi, chance)]
    assert rates == pytest.approx([RATE, RATE], abs=0.025)
    paired = mcnemar(adahi.success, chance.success)
    assert paired.verdict == "better", paired


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("task", "episodes", "threshold"), [("ball", 200, 0.8293), ("swarm", 60, 0.5311)])
def test_an_average_of_several_actions_beats_chance_too(task: str, episodes: int, threshold: float) -> None:
    """With a smoothing factor of 0.3, at the threshold that papers/adahi/moving_average.py found."""
    comparison = Comparison.shipped(task, SEED)
    made = comparison.calibration
    averaged = replace(made, smoothing=0.3, thresholds={**made.thresholds, "deviation": threshold})
    numbers = evaluation_episodes(episodes)
    adahi = play_all(replace(comparison, calibration=averaged), ["adahi"], numbers, 1)["adahi"]
    chance = play_all(comparison, ["random"], numbers, 1)["random"]
    assert transmission_rate(adahi.log.transmitted, adahi.log.active) <= RATE + 0.025
    assert mcnemar(adahi.success, chance.success).verdict == "better"


@pytest.mark.parametrize("task", ["ball", "kitchen", "swarm"])
def test_calibrations_are_made_on_as_many_actions_as_in_the_paper(task: str) -> None:
    assert load_calibration(asset(f"config/{task}.yaml")).figures["actions"] > CALIBRATED
