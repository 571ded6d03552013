"""ADAHI as it is shipped is better than a random gate at its rate."""

from __future__ import annotations

import pytest

from adahi_lab.calibration.calibrate import RATE
from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.evaluate import Comparison, play_all
from adahi_lab.evaluation.metrics import mcnemar, transmission_rate

SEED = 12  # of no figure on a page


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
