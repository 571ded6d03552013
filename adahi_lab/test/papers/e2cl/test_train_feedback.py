"""An agent that learns to correct itself by exploration: how, and what that is worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.evaluate import Comparison, play_all
from adahi_lab.evaluation.loaded_policies import Policies, PolicyFiles
from adahi_lab.papers.e2cl import train_feedback as training
from adahi_lab.papers.e2cl.agent import feedback, load_agent, wrong
from adahi_lab.papers.e2cl.train_feedback import demonstrated, explored, fitted, quality, train_feedback
from adahi_lab.tasks.demonstrations import collect_parallel
from adahi_ros.core.assets import asset

SHIPPED = asset("checkpoints/ball/feedback.safetensors")


@pytest.fixture(scope="module")
def policies() -> Policies:
    return PolicyFiles(asset("checkpoints/ball"), "onnxruntime").load()


@pytest.fixture(scope="module")
def data() -> Trajectories:
    return collect_parallel("ball", 4, 0, 0.1, workers=1).trajectories


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "FIT", replace(training.FIT, steps=300))


@pytest.mark.timeout(300)
def test_it_foresees_errors_and_corrects_and_repeats(policies: Policies, data: Trajectories) -> None:
    agent, found = train_feedback("ball", policies, data, 0, [(6, 6)], False)
    again, same = train_feedback("ball", policies, data, 0, [(6, 6)], False)
    assert same == found
    for name, value in vars(agent).items():
        np.testing.assert_array_equal(value, getattr(again, name), err_msg=name)
    seen = explored("ball", policies, 1, range(4), True, agent).rows(np.arange(100))
    by_target = agent.correct(seen.seen, seen.action, feedback(seen.change))
    errors = wrong(feedback(seen.change))
    right = seen.action + seen.change
    near, far = (agent.foresee(seen.seen, right + away)[1].mean() for away in (0.0, 3.0))
    assert near < far
    left = np.abs(right - by_target)[errors].mean()
    assert left < 0.8 * np.abs(seen.change[errors]).mean()


@pytest.mark.timeout(300)
def test_replies_are_plans_only_for_dagger(policies: Policies, data: Trajectories) -> None:
    plans = demonstrated(data, policies.draft.signature.history, policies.draft.action_scale)
    np.testing.assert_allclose(plans.change * policies.draft.action_scale, data.actions, rtol=1e-5)
    alone, nothing = train_feedback("ball", policies, data, 0, [], False)
    assert not nothing
    apart, together = (train_feedback("ball", policies, data, 0, [(6, 0)], each)[0] for each in (False, True))
    seen = explored("ball", policies, 1, range(4), True, alone)
    right = seen.action + seen.change
    errors = [np.abs(right - agent.plan(seen.seen)).mean() for agent in (apart, together)]
    assert errors[1] < errors[0]


@pytest.mark.timeout(300)
def test_who_acts_in_exploration(policies: Policies, data: Trajectories) -> None:
    plans = demonstrated(data, policies.draft.signature.history, policies.draft.action_scale)
    agent = fitted(plans, plans.rows(np.zeros(len(plans), bool)), policies.draft.action_scale, 0)
    guided, free = (explored("ball", policies, 0, range(4), led, agent) for led in (True, False))
    assert not np.array_equal(guided.seen[40:60], free.seen[40:60])
    np.testing.assert_array_equal(guided.seen[0], free.seen[0])
    np.testing.assert_array_equal(guided.action, agent.plan(guided.seen))
    np.testing.assert_array_equal(guided.without_action().change, guided.action + guided.change)


@pytest.mark.timeout(300)
def test_the_shipped_agent_needs_to_judge_its_corrections_again(policies: Policies) -> None:
    agent = load_agent(SHIPPED, policies.draft.signature)
    found = quality(agent, explored("ball", policies, 1, range(8), False, agent))
    assert found["foreseen"] > found["false_alarms"] + 0.2
    proposer = f"self_correcting:file={SHIPPED}"
    names = [f"{proposer}{how}+never/replace" for how in ("", ":rounds=0", ":otherwise=correction")]
    outcomes = play_all(Comparison.shipped("ball", 0), [*names, "draft"], evaluation_episodes(60), 1)
    judged, plan, unjudged, draft = (outcomes[name].success.mean() for name in (*names, "draft"))
    assert judged > unjudged
    assert judged >= plan
    assert judged > 0.9
    assert draft < 0.1
    assert not outcomes[names[0]].log.transmitted.any()


def test_a_round_needs_episodes_to_test_by(policies: Policies, data: Trajectories) -> None:
    with pytest.raises(ValueError, match=r"guided, free: \(2, 2\), must be 5 episodes at least"):
        train_feedback("ball", policies, data, 0, [(2, 2)], False)
