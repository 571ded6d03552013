"""Robots that draft a chunk where their plan ends, and send it once."""

from __future__ import annotations

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import ActionRange, CodeDistribution, Proposal, counted
from adahi_ros.core.signature import OBSERVATION, CodeSpace, Feature, Observations, Signature
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling
from adahi_ros.robot.controller import Controller, Step

B, T, K = 3, 4, 5


class Chunks(Policy):
    """Drafts its observation, T times; its codes are all the same."""

    def __init__(self) -> None:
        codes = CodeSpace("0" * 16, T, K, sequential=True)
        signature = Signature(1, T, 1, (Feature(OBSERVATION, 1),), codes=codes)
        allowed = ActionRange(np.array([-100.0]), np.array([100.0]))
        super().__init__(signature, allowed, np.ones(1), "chunks", draws=T)
        self.asked: list[int] = []

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        assert sampling.sendable
        self.asked.append(len(draws))
        seen = observations.features[OBSERVATION][:, -1]
        actions = np.repeat(seen[:, None], T, axis=1).astype(np.float32)
        probabilities = np.full((len(draws), T, K), 1 / K, dtype=np.float32)
        codes = np.repeat(seen.astype(np.int64) % K, T, axis=1)
        drawn = CodeDistribution(probabilities, codes, lambda each: actions, counted(probabilities))
        return Proposal(actions, drawn)


def controller() -> tuple[Controller, Chunks]:
    policy = Chunks()
    made = Controller(policy, ControllerConfig(ThresholdedGate("never", 0.0)), "token_chunk")
    made.reset(1, list(range(B)))
    return made, policy


def observed(step: int) -> dict[str, np.ndarray]:
    return {OBSERVATION: (10.0 * step + np.arange(B, dtype=np.float32))[:, None]}


def verified(step: Step, steps: int = T) -> Verdict:
    count = int(step.transmit.sum())
    return Verdict(np.full((count, steps, 1), -1.0, dtype=np.float32), np.ones((count, T), dtype=bool))


def test_a_chunk_is_drafted_and_sent_once() -> None:
    made, policy = controller()
    assert made.sends_drafts
    assert not made.drafts
    for index in range(2 * T):
        step = made.begin(observed(index))
        assert step.transmit.tolist() == [index % T == 0] * B
        verdict = verified(step) if step.transmit.any() else None
        np.testing.assert_array_equal(made.finish(step, verdict), np.full((B, 1), -1.0))
        made.executed(np.full((B, 1), -1.0))
    assert policy.asked == [B, B]


def test_only_robots_without_a_plan_draft() -> None:
    made, policy = controller()
    step = made.begin(observed(0))
    made.finish(step, verified(step).rows(np.array([0])), np.array([True, False, False]))
    step = made.begin(observed(1))
    assert step.transmit.tolist() == [False, True, True]
    assert policy.asked == [B, 2]
    sent = step.draft(step.transmit).distribution
    assert sent is not None
    assert sent.counts is not None
    np.testing.assert_array_equal(sent.codes[:, 0], [11 % K, 12 % K])
    assert (sent.counts.sum(axis=-1, dtype=np.int64) == 65535).all()
    np.testing.assert_array_equal(step.intended[:, 0], [-1.0, 11.0, 12.0])
