"""A policy that cannot be used is told of where the node is configured."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adahi_ros.nodes.common import policies
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.policies import PolicyParameters, policy_from
from adahi_ros.policy.interface import Policy
from adahi_ros.policy.proposal import Proposal

EVEN = np.full((2, 4), 0.25)


def broken(*arguments: object) -> Proposal:
    raise RuntimeError("no memory")


@pytest.mark.parametrize(
    ("propose", "reason"),
    [
        (
            lambda *arguments: Proposal(np.zeros((1, 9, 2), np.float32)),
            r"predicts actions of shape \(1, 9, 2\), must be \(1, 1, 2\)",
        ),
        (lambda *arguments: Proposal(np.full((1, 1, 2), np.nan, np.float32)), "values that are not finite"),
        (lambda *arguments: None, "AttributeError: 'NoneType'"),
        (broken, "RuntimeError: no memory"),
    ],
    ids=["shape", "not finite", "nothing", "raises"],
)
def test_a_policy_that_proposes_what_it_should_not_cannot_be_used(
    fixed_policy: Callable[..., Policy], monkeypatch: pytest.MonkeyPatch, propose: Any, reason: str
) -> None:
    policy = fixed_policy(EVEN.tolist())
    monkeypatch.setattr(policies, "load_policy", lambda *arguments: policy)
    assert policy_from(PolicyParameters("good")) is policy
    monkeypatch.setattr(policy, "propose", propose)
    with pytest.raises(ParameterError, match=rf"^checkpoint: 'liar', .*{reason}"):
        policy_from(PolicyParameters("liar"))


def test_what_is_no_policy_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "load_policy", lambda *arguments: SimpleNamespace())
    with pytest.raises(ParameterError, match="checkpoint: 'none', AttributeError"):
        policy_from(PolicyParameters("none"))


@pytest.mark.parametrize("name", ["/", "x" * 70_000])
def test_a_name_that_no_file_may_have_is_that_of_no_checkpoint(name: str) -> None:
    with pytest.raises(ParameterError, match="no such checkpoint"):
        policy_from(PolicyParameters(name))
