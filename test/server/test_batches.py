"""Requests of many robots that are verified at once: each as if it were alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import GOAL, OBSERVATION, Feature, Observations, Signature
from adahi_ros.policies.absent import AbsentPolicy
from adahi_ros.policies.interface import AS_TRAINED, Sampling, TargetUnavailableError, TooManyAtOnceError
from adahi_ros.protocol.request import Reply, Request, RequestError
from adahi_ros.protocol.window import SentWindows, WireWindow
from adahi_ros.server.engine import Engine
from adahi_ros.server.verifier import TargetVerifier, VerificationRequest, joined

HORIZON, SEED, NOW_S = 4, 3, 1.0
SIGNATURE = Signature(2, HORIZON, 2, (Feature(OBSERVATION, 3),), (Feature(GOAL, 1),), instruction=True)
WEIGHTS = np.random.default_rng(0).normal(size=(6, HORIZON * 2))
UNWELL, GONE, INFINITE = 13.0, 14.0, 15.0  # as a goal


class Planning(AbsentPolicy):
    """Depends on all that it is told, and on its draw; counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__(3, 1, 2)
        self.signature, self.draws = SIGNATURE, 1
        self.action_scale = np.ones(2, np.float32)
        self.sound = lambda actions: np.ones(len(actions), bool)
        self.batches: list[int] = []
        self.episodes: list[object] = []
        self.most = 1000

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        goals = observations.conditions[GOAL][:, 0]
        self.batches.append(len(goals))
        self.episodes += observations.episodes
        if (goals == UNWELL).any():
            raise RuntimeError("unwell")
        if (goals == GONE).any():
            raise TargetUnavailableError("gone")
        if len(goals) > self.most:
            raise TooManyAtOnceError("memory")
        actions = (SIGNATURE.window(observations).reshape(len(goals), -1) @ WEIGHTS).reshape(-1, HORIZON, 2)
        actions += np.where(goals == INFINITE, np.inf, goals)[:, None, None]
        actions += (
            draws[:, :1, None] + np.array([len(each) for each in observations.instructions])[:, None, None]
        )
        if sampling.committed is not None:
            actions += np.nan_to_num(sampling.committed).sum(axis=(1, 2))[:, None, None]
        return Proposal(actions.astype(np.float32))


def request(number: int, goal: float = 0.5, ahead: int = 0) -> Request:
    seen = np.random.default_rng(number).normal(size=(2, 3)).astype(np.float32)
    update = SentWindows().update(WireWindow.pack(seen, np.array([goal])))
    draft = Proposal(np.full((1, ahead, 2), 0.1 * number, np.float32))
    request = Request.from_draft(draft, 2, number, update, ahead, "go" * (1 + number))
    return replace(request, robot_id=f"arm {number}")


def engine(policy: Planning | None = None) -> Engine:
    return Engine(TargetVerifier(policy or Planning(), "replace", agreement="continue"), SEED)


def replies_of(engine: Engine, *requests: Request) -> list[Reply | Exception]:
    return engine.finish(engine.begin(requests), NOW_S)


def test_a_batch_replies_as_to_each_alone_and_asks_once_per_kind() -> None:
    requests = [request(number, ahead=number % 3) for number in range(9)]
    policy = Planning()
    together = replies_of(engine(policy), *requests)
    assert policy.batches == [3, 3, 3]  # those that send as many actions
    for each, requested in zip(together, requests, strict=True):
        alone = engine().verify(requested, NOW_S)
        assert isinstance(each, Reply)
        np.testing.assert_allclose(each.actions, alone.actions, rtol=1e-6)
        np.testing.assert_array_equal(each.accepted, alone.accepted)
        assert each.window_kept


def test_a_policy_with_a_memory_learns_whose_observations_it_reads() -> None:
    """Also where a robot's request makes the policy fail, and the others are verified without it."""
    policy = Planning()
    requests = [replace(request(1), session=7, episode=3), request(2, goal=UNWELL), request(3)]
    replies_of(engine(policy), *requests)
    assert set(policy.episodes) == {("arm 1", 7, 3), ("arm 2", 0, 2), ("arm 3", 0, 2)}
    assert policy.episodes[-1] == ("arm 3", 0, 2)


def test_a_request_that_is_twice_in_a_batch_is_verified_once() -> None:
    policy = Planning()
    one, other, again = replies_of(engine(policy), request(1), request(2), request(1))
    assert policy.batches == [2]
    assert isinstance(one, Reply)
    assert isinstance(again, Reply)
    np.testing.assert_array_equal(one.actions, again.actions)
    assert other is not one


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (request(5, goal=UNWELL), RuntimeError),
        (request(5, goal=INFINITE), RequestError),
        (replace(request(5), instruction=""), RequestError),
        (replace(request(5), first_step=99), RequestError),
        (replace(request(5), actions=np.full(3, np.nan, np.float32)), RequestError),
    ],
)
def test_what_one_has_sent_is_nothing_to_the_others(bad: Request, kind: type) -> None:
    requests = [request(number) for number in range(4)]
    replies = replies_of(engine(), *requests[:2], bad, *requests[2:])
    assert isinstance(replies.pop(2), kind)
    for each, requested in zip(replies, requests, strict=True):
        assert isinstance(each, Reply)
        expected = engine().verify(requested, NOW_S).actions
        np.testing.assert_allclose(each.actions, expected, rtol=1e-6)


def test_an_unavailable_target_is_not_queried_about_each_again() -> None:
    policy = Planning()
    replies = replies_of(engine(policy), request(1), request(2, goal=GONE), request(3))
    assert all(isinstance(each, TargetUnavailableError) for each in replies)
    assert policy.batches == [3]


def test_one_that_is_unwell_costs_no_more_than_halving_does() -> None:
    policy = Planning()
    requests = [request(number, goal=UNWELL if number == 11 else 0.5) for number in range(16)]
    replies = replies_of(engine(policy), *requests)
    assert [isinstance(each, Reply) for each in replies] == [number != 11 for number in range(16)]
    assert len(policy.batches) == 9


def test_data_of_drafts_stay_with_their_robots() -> None:
    observations = Observations({OBSERVATION: np.zeros((1, 2, 3), np.float32)}, {GOAL: np.zeros((1, 1))})
    actions = np.zeros((1, 0, 2), np.float32)
    both = joined(
        [VerificationRequest(observations, Proposal(actions, data={"n": np.array([[n]])})) for n in (7, 8, 9)]
    )
    np.testing.assert_array_equal(both.draft.data["n"], [[7], [8], [9]])
    np.testing.assert_array_equal(both.rows(np.array([2, 0])).draft.data["n"], [[9], [7]])
