from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_lab.evaluation.loaded_policies import Policies
from adahi_lab.evaluation.rollout import Log
from adahi_lab.evaluation.step_latency import Costs, measure_costs, simulated_latency, throughput
from adahi_lab.link.link_profile import LinkProfile

COSTS = Costs(draft_ms=0.5, target_ms=3.0, request_bytes=900, response_bytes=100)
LINK = LinkProfile(rtt_mean_ms=12.0, rtt_jitter_ms=0.5, rate_mbit_s=8.0)  # 1 ms for the bytes above
STEPS, EPISODES = 200, 7


@pytest.fixture
def log() -> Log:
    sent = np.random.default_rng(1).random((STEPS, EPISODES)) < 0.5
    zeros, action = np.zeros((STEPS, EPISODES)), np.zeros((STEPS, EPISODES, 2))
    no = np.zeros_like(sent)
    return Log(~no, sent, zeros, zeros, sent[..., None], action, action, no, zeros, no)


def test_a_step_costs_what_it_did(log: Log) -> None:
    latency = simulated_latency(log, True, COSTS, LINK, 0, range(EPISODES))
    assert latency.shape == (STEPS, EPISODES)
    np.testing.assert_array_equal(latency[~log.transmitted], 0.5)
    beyond = latency[log.transmitted] - (0.5 + 1.0 + 3.0)  # draft, bytes and target; what is left is the link
    assert beyond.min() > 0.0
    assert beyond.mean() == pytest.approx(12.0, abs=5 * 0.5 / np.sqrt(len(beyond)))
    assert beyond.std() == pytest.approx(0.5, rel=0.15)


def test_a_link_without_jitter_is_exact(log: Log) -> None:
    steady = replace(LINK, rtt_jitter_ms=0.0)
    latency = simulated_latency(log, True, COSTS, steady, 0, range(EPISODES))
    np.testing.assert_allclose(latency[log.transmitted], 0.5 + 12.0 + 1.0 + 3.0)


def test_without_a_draft_its_time_is_not_paid(log: Log) -> None:
    with_draft, without = (
        simulated_latency(log, drafts, COSTS, LINK, 0, range(EPISODES)) for drafts in (True, False)
    )
    np.testing.assert_allclose(with_draft - without, 0.5)
    np.testing.assert_array_equal(without[~log.transmitted], 0.0)


def test_however_the_link_varies_no_reply_comes_before_the_request(log: Log) -> None:
    wild = LinkProfile(rtt_mean_ms=1.0, rtt_jitter_ms=100.0, rate_mbit_s=8.0)
    latency = simulated_latency(log, True, COSTS, wild, 0, range(EPISODES))
    assert latency[log.transmitted].min() == pytest.approx(0.5 + 1.0 + 3.0)
    assert np.isfinite(latency).all()


def test_throughput_of_windows_by_hand() -> None:
    latency = np.array([[1.0], [3.0], [10.0], [10.0], [5.0]])
    active = np.ones((5, 1), dtype=bool)
    assert throughput(latency, active, 2).tolist() == pytest.approx([500.0, 100.0])
    assert throughput(latency, active, 9).tolist() == pytest.approx([5 / 29 * 1e3])


def test_costs_are_those_of_one_robots_message(policies: Policies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adahi_lab.evaluation.step_latency.REPETITIONS", 3)
    costs = measure_costs(policies.draft, policies.target)
    # O 6, N 2, K 8, W 1, A 2: floats of four bytes, codes and probabilities of two, verdicts of one.
    assert costs.request_bytes == 4 * 6 + 2 * 2 + 2 * 2 * 8
    assert costs.response_bytes == 2 + 4 * 1 * 2
    assert costs.draft_ms > 0
    assert costs.target_ms > 0
