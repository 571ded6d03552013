"""Self-correction that is learned by exploration: what it foresees, and what it is worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.evaluate import Comparison, play_all
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.papers.e2cl import train_feedback as training
from adahi_lab.papers.e2cl.self_correction import load_self_correction
from adahi_lab.papers.e2cl.train_feedback import explored, fitted, quality, train_feedback
from adahi_ros.core.assets import asset

FILES = PolicyFiles(asset("checkpoints/ball"), "onnxruntime")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "FIT", replace(training.FIT, steps=600))


@pytest.mark.timeout(120)
def test_its_corrections_come_nearer_to_the_replies_and_repeat() -> None:
    network, found = train_feedback("ball", FILES, 0, guided=6, free=6, rounds=1)
    assert found["distance_left"] < 0.9 * found["distance"]
    again, same = train_feedback("ball", FILES, 0, guided=6, free=6, rounds=1)
    assert same == found
    for name, value in vars(network).items():
        np.testing.assert_array_equal(value, getattr(again, name), err_msg=name)


@pytest.mark.timeout(120)
def test_who_acts_in_exploration() -> None:
    policies = FILES.load()
    guided, free = (explored("ball", policies, 0, range(4), led) for led in (True, False))
    assert not np.array_equal(guided.inputs[40:60], free.inputs[40:60])
    corrected = explored("ball", policies, 0, range(4), False, fitted(guided, 0))
    assert not np.array_equal(corrected.inputs[40:60], free.inputs[40:60])
    np.testing.assert_array_equal(corrected.inputs[0], free.inputs[0])


@pytest.mark.timeout(120)
def test_the_shipped_network_foresees_refusals_and_makes_the_draft_succeed() -> None:
    comparison = Comparison.shipped("ball", 0)
    corrected = f"self_correcting:file={asset('checkpoints/ball/feedback.safetensors')}+never"
    seen = explored("ball", FILES.load(), 1, range(8), True)
    found = quality(load_self_correction(asset("checkpoints/ball/feedback.safetensors")), seen, 2)
    assert found["area"] > 0.75
    assert found["distance_left"] < 0.6 * found["distance"]
    outcomes = play_all(comparison, [corrected, "draft"], evaluation_episodes(20), 1)
    assert outcomes[corrected].success.mean() > 0.8
    assert outcomes["draft"].success.mean() < 0.1
    assert not outcomes[corrected].log.transmitted.any()


def test_what_cannot_be_learned_from_is_refused() -> None:
    with pytest.raises(ValueError, match="guided, free: 2 and 2, must be 5 episodes at least"):
        train_feedback("ball", FILES, 0, guided=2, free=2, rounds=1)
    data = explored("ball", FILES.load(), 0, range(2), True)
    with pytest.raises(ValueError, match="drafts refused, must be some"):
        fitted(replace(data, refused=np.ones_like(data.refused)), 0)
