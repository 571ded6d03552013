from __future__ import annotations

import numpy as np

from adahi_ros.core.assets import asset
from adahi_ros.policies.self_correction import load_self_correction
from benchmarks.self_correction import FILE, JudgedTwice


def test_a_correction_that_would_be_refused_is_not_executed() -> None:
    network = load_self_correction(asset(FILE))
    judged = JudgedTwice(**vars(network))
    draw, actions = np.random.default_rng(0), network.bias_2.size - 1
    windows, goals = draw.normal(size=(400, 1, network.mean.size - actions)), np.zeros((400, 0))
    drafted = draw.normal(size=(400, actions))
    refused, corrected = network.judge(windows, goals, drafted)
    again, _ = network.judge(windows, goals, corrected)
    executed = judged.judge(windows, goals, drafted)[0] > judged.above
    np.testing.assert_array_equal(executed, (refused > judged.above) & (again <= judged.above))
    assert 0 < executed.sum() < (refused > judged.above).sum()
