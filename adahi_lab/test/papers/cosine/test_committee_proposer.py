"""A robot with several drafts learns from the target's replies which of them fits, episode by episode."""

from __future__ import annotations

import numpy as np
import pytest
from test.papers.cosine.fixed_codes import B, FixedAction, FixedCodes, K, N

from adahi_lab.papers.cosine.committee import (
    FUSIONS,
    Committee,
    CommitteeProposer,
    CommitteeRules,
)
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.acceptance.speculative import speculative_sample
from adahi_ros.core.signature import OBSERVATION
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.proposers.draft import DraftProposer
from adahi_ros.proposers.registry import PROPOSERS
from adahi_ros.robot.controller import Controller

LEFT, RIGHT = np.array([0.7, 0.2, 0.05, 0.05]), np.array([0.05, 0.05, 0.2, 0.7])
EVERYONE = np.arange(B)
SEEN = {OBSERVATION: np.zeros((B, 1), np.float32)}


def robots(*members: FixedAction, episode: int = 0, **rules: object) -> tuple[Controller, CommitteeProposer]:
    committee = Committee(members, CommitteeRules(**rules))  # type: ignore[arg-type]
    proposer = CommitteeProposer(committee)
    made = Controller(committee, ControllerConfig(ThresholdedGate("always")), made=proposer)
    made.reset(1, [episode + each for each in range(B)])
    return made, proposer


def live(made: Controller, targets: list[np.ndarray], steps: int, seed: int = 0) -> list[np.ndarray]:
    """Run B robots, each with a target that draws from a distribution (K,); return what was executed."""
    random, executed = np.random.default_rng(seed), []
    q = np.repeat(np.stack(targets)[:, None], N, axis=1)
    for _ in range(steps):
        step = made.begin(SEEN)
        assert step.proposal is not None
        drawn = step.proposal.distribution
        assert drawn is not None
        codes, accepted = speculative_sample(drawn.probabilities, q, drawn.codes, random.random((B, N, 2)))
        verdict = Verdict(np.repeat(codes[:, :1, None], 2, axis=2).astype(np.float32), accepted)
        executed.append(made.finish(step, verdict))
        made.executed(executed[-1])
    return executed


@pytest.mark.parametrize("fusion", FUSIONS)
def test_each_robot_finds_the_draft_that_its_target_accepts(fusion: str) -> None:
    made, proposer = robots(FixedCodes(LEFT), FixedCodes(RIGHT), fusion=fusion)
    np.testing.assert_allclose(proposer.credit, np.zeros((0, 2)))
    live(made, [LEFT, RIGHT, LEFT, RIGHT, RIGHT], 40)
    wanted = np.array([0, 1, 0, 1, 1])
    assert (proposer.credit[EVERYONE, wanted] > 0.95).all()


def test_what_was_executed_is_distributed_as_the_target_for_every_draft() -> None:
    target = np.array([0.1, 0.4, 0.1, 0.4])
    made, _ = robots(FixedCodes(LEFT), FixedCodes(RIGHT), fusion="drawn")
    executed = np.stack(live(made, [target] * B, 2000))[..., 0].ravel()
    shares = np.bincount(executed.astype(int), minlength=K) / len(executed)
    np.testing.assert_allclose(shares, target, atol=0.015)  # of 10,000 draws: three standard errors


def test_drafts_without_codes_are_judged_by_their_distance_from_the_target() -> None:
    made, proposer = robots(FixedAction(0.0), FixedAction(1.0))
    for _ in range(4):
        step = made.begin(SEEN)
        near_second = Verdict(np.full((B, 1, 2), 0.9, np.float32), np.zeros((B, 0), dtype=bool))
        made.executed(made.finish(step, near_second))
    assert (proposer.credit[:, 1] > 0.95).all()


def test_only_those_who_hear_learn_and_a_reply_counts_once() -> None:
    made, proposer = robots(FixedAction(0.0), FixedAction(1.0))
    made.begin(SEEN)
    reply = Verdict(np.ones((1, 1, 2), np.float32), np.zeros((1, 0), dtype=bool))
    third = EVERYONE == 2
    made.receive(reply, 0, third)
    once = proposer.credit.copy()
    assert once[2, 1] > 0.5
    np.testing.assert_array_equal(once[~third], 0.5)
    made.receive(reply, 0, third)
    np.testing.assert_array_equal(proposer.credit, once)


def test_one_draft_runs_as_ever_and_several_learn() -> None:
    alone = FixedCodes(LEFT)
    assert isinstance(PROPOSERS.made("proposer", "draft", {}, alone), DraftProposer)
    several = Committee([alone, FixedCodes(RIGHT)], CommitteeRules())
    assert isinstance(PROPOSERS.made("proposer", "draft", {}, several), CommitteeProposer)
    one, _ = robots(alone)
    plain = Controller(alone, ControllerConfig(ThresholdedGate("always")))
    plain.reset(1, list(range(B)))
    np.testing.assert_array_equal(live(one, [RIGHT] * B, 10), live(plain, [RIGHT] * B, 10))
