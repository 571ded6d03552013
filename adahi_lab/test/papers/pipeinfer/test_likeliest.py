"""The rule of runs of tokens: kept up to the first that is not the target's likeliest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_lab.papers.pipeinfer.likeliest import Likeliest
from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_ros.core.proposal import CodeDistribution, Proposal, counted
from adahi_ros.core.signature import CodeSpace, Feature, Signature

T, A, K = 3, 2, 8
TARGET = Signature(2, T, A, (Feature("observation", 4),), codes=CodeSpace("0" * 16, T * A, K, True))


def actions_of(codes: np.ndarray) -> np.ndarray:
    return codes.reshape(len(codes), T, A).astype(np.float32)


def drafted(codes: list[list[int]]) -> Proposal:
    found = np.array(codes)
    p = np.full((*found.shape, K), 1 / K)
    return Proposal(np.zeros((len(found), 0, A)), CodeDistribution(p, found, actions_of, counted(p)))


def judged(own: list[list[int]]) -> Proposal:
    """A target with these likeliest tokens: of each drafted one, and the next."""
    q = np.full((len(own), len(own[0]), K), 0.1)
    q[np.arange(len(own))[:, None], np.arange(len(own[0])), np.array(own)] = 0.3
    drawn = TokenDistribution(q, np.array(own)[:, :-1], actions_of)
    return Proposal(np.full((len(own), T, A), np.nan), drawn)


def test_tokens_are_kept_up_to_the_first_that_is_not_the_likeliest() -> None:
    draft = drafted([[1, 2, 3], [1, 5, 3], [6, 2, 3]])
    target = judged([[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]])
    made = Likeliest().verify(draft, target, np.zeros((3, T * A, 2)))
    assert made.accepted.tolist() == [[True] * 3, [True, False, False], [False] * 3]
    tokens = made.actions.reshape(3, -1)
    assert tokens[0, :4].tolist() == [1, 2, 3, 4]
    assert tokens[1, :2].tolist() == [1, 2]
    assert tokens[2, 0] == 1


def test_it_needs_a_target_of_tokens() -> None:
    rule = Likeliest()
    rule.check_target(TARGET, "")
    with pytest.raises(ValueError, match="one after another"):
        rule.check_target(replace(TARGET, codes=None), "")
    assert rule.compatible(replace(TARGET, codes=None), TARGET) is None
    assert "action_dim" in str(rule.compatible(replace(TARGET, action_dim=3), TARGET))
