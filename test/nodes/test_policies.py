"""A policy that cannot be used is told of where the node is configured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adahi_ros.core.proposal import ActionRange, Proposal
from adahi_ros.core.signature import Feature, ImageInput, Observations, Signature
from adahi_ros.nodes.common import policies
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.policies import PolicyParameters, policy_from
from adahi_ros.policies.absent import LARGEST
from adahi_ros.policies.direct import DirectPolicy
from adahi_ros.policies.interface import Policy, TargetUnavailableError
from adahi_ros.protocol.request import Request
from adahi_ros.protocol.window import WireWindow
from adahi_ros.server.engine import Engine
from adahi_ros.server.verifier import TargetVerifier

EVEN = np.full((2, 4), 0.25)
AWAY = "openpi: ws://there:8000, not reachable"


class Elsewhere(DirectPolicy):
    """Proposes its draws; may be out of reach.

    Attributes:
        requested: what was observed whenever it was asked.
    """

    def __init__(self, images: tuple[ImageInput, ...] = (), instruction: bool = False) -> None:
        features = (Feature("observation.state", 3), Feature("observation.force", 1))
        signature = Signature(
            2, 4, 2, features, (Feature("goal", 5),), images=images, instruction=instruction
        )
        most = np.full(2, LARGEST)
        super().__init__(signature, ActionRange(-most, most), np.ones(2), "elsewhere", draws=8)
        self.requested: list[Observations] = []
        self.away = False

    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        self.requested.append(observations)
        if self.away:
            raise TargetUnavailableError(AWAY)
        return draws.reshape(len(draws), 4, 2)


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


def test_what_cannot_be_set_of_where_it_computes_is_named(exported: Path) -> None:
    with pytest.raises(ParameterError, match=r"^device: 'cuda', must not be given for the backend onnx"):
        policy_from(PolicyParameters(str(exported / "target"), "onnxruntime"), device="cuda")


@pytest.mark.parametrize("name", ["/", "x" * 70_000])
def test_a_name_that_no_file_may_have_is_that_of_no_checkpoint(name: str) -> None:
    with pytest.raises(ParameterError, match="no such checkpoint"):
        policy_from(PolicyParameters(name))


def test_it_is_queried_once_before_anyone_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Elsewhere((ImageInput("observation.images.front", 6, 8),), instruction=True)
    monkeypatch.setattr(policies, "load_policy", lambda *arguments: policy)
    policy_from(PolicyParameters("large"))
    (requested,) = policy.requested
    assert {name: values.shape for name, values in requested.features.items()} == {
        "observation.state": (1, 2, 3),
        "observation.force": (1, 2, 1),
    }
    assert requested.conditions["goal"].shape == (1, 5)
    (picture,) = requested.images.values()
    assert (picture.shape, picture.dtype, picture.max()) == ((1, 2, 6, 8, 3), np.uint8, 0)
    assert len(requested.instructions) == 1


def test_what_robots_get_is_the_same_whether_it_was_requested_before(monkeypatch: pytest.MonkeyPatch) -> None:
    earlier, new = Elsewhere(), Elsewhere()
    monkeypatch.setattr(policies, "load_policy", lambda *arguments: earlier)
    policy_from(PolicyParameters("large"))
    window = WireWindow.pack(np.ones((2, 4), np.float32), np.zeros(5, np.float32))
    draft = Proposal(np.zeros((1, 0, 2), np.float32))
    request = replace(Request.from_draft(draft, 3, 7, window), robot_id="arm")
    first, second = (
        Engine(TargetVerifier(policy, "replace"), 0).verify(request, 1.0) for policy in (earlier, new)
    )
    np.testing.assert_array_equal(np.asarray(first.actions), np.asarray(second.actions))
    assert np.asarray(first.actions).std() > 0


def test_a_target_may_be_unavailable_at_first_and_a_draft_must_be_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = Elsewhere()
    policy.away = True
    monkeypatch.setattr(policies, "load_policy", lambda *arguments: policy)
    reported: list[str] = []
    assert policy_from(PolicyParameters("large"), reported.append) is policy
    assert reported == [AWAY]
    with pytest.raises(ParameterError, match=rf"^checkpoint: 'large', TargetUnavailableError: {AWAY}$"):
        policy_from(PolicyParameters("large"))
