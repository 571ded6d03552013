"""Where a target computes elsewhere, others are served meanwhile, and each request gets one reply."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from adahi_msgs.srv import VerifyDraft

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import ActionRange, Proposal
from adahi_ros.core.signature import Observations, Signature, observed_features
from adahi_ros.nodes.server.request_scheduler import RequestScheduler
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling, TargetUnavailableError
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.request import INTERNAL_ERROR, OK, PROTOCOL_VERSION, RequestFault
from adahi_ros.server.engine import Engine
from adahi_ros.server.schedule import BatchParameters
from adahi_ros.server.service import LoadedTarget, ServedTargets, VerificationService
from adahi_ros.server.verifier import TargetVerifier, Verdicts, VerificationRequest

SIGNATURE = Signature(1, 2, 1, observed_features(1, 0))
OTHER = "other"


class Still(Policy):
    """Proposes to stay."""

    def __init__(self) -> None:
        super().__init__(SIGNATURE, ActionRange(-np.ones(1), np.ones(1)), np.ones(1, np.float32), "still", 1)

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        return Proposal(np.zeros((len(draws), 2, 1), np.float32))


class Elsewhere(TargetVerifier):
    """Verifies once it is told to."""

    def __init__(self, at_once: int, alone: bool = False) -> None:
        super().__init__(Still(), "replace")
        self.at_once, self.alone = at_once, alone
        self.requested: list[tuple[int, float, Future[Verdicts]]] = []

    def submit(self, request: VerificationRequest, draws: np.ndarray, until_s: float) -> Future[Verdicts]:
        future: Future[Verdicts] = Future()
        self.requested.append((len(draws), until_s, future))
        return future

    def say(self, place: int, error: Exception | None = None) -> None:
        count, _, future = self.requested[place]
        verdict = Verdict(np.full((1, 2, 1), place, np.float32), np.zeros((1, 0), bool))
        future.set_result([verdict if error is None else error] * count)


class Air:
    """In the place of rclpy's service."""

    def __init__(self) -> None:
        self.handle = self
        self.waiting: list[VerifyDraft.Request] = []
        self.replies: list[tuple[int, int, float]] = []

    def service_take_request(self, kind: type) -> tuple[Any, Any]:
        return (self.waiting.pop(0), 1) if self.waiting else (None, None)

    def send_response(self, response: VerifyDraft.Response, header: int) -> None:
        self.replies.append((response.step_id, response.status, response.retry_after_s))

    def ask(self, robot: str, step: int, **changes: Any) -> None:
        future = {"protocol": PROTOCOL_VERSION, "observation_window": [0.5], "first_step": step, **changes}
        self.waiting.append(VerifyDraft.Request(robot_id=robot, step_id=step, **future))


class Front:
    def __init__(
        self,
        at_once: int = 1,
        size: int = 1,
        late: str = "answer",
        verifiers: tuple[Any, Any] | None = None,
        wake: Callable[[], object] | None = None,
        batch: BatchParameters | None = None,
        service: Any = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.air, self.woken = Air(), 0
        self.first: Any
        self.other: Any
        self.first, self.other = verifiers or (Elsewhere(at_once), Elsewhere(at_once))
        targets = ServedTargets(self._served(self.first, "first"))
        targets.put(self._served(self.other, OTHER))
        batch = batch or BatchParameters(size=size, late=late)
        self.service = VerificationService(targets)
        self.turns = RequestScheduler(
            {"": service or self.air},
            self.service,
            batch,
            lambda *_: None,
            lambda request: None,
            wake or self._wake,
            clock,
        )

    def _wake(self) -> None:
        self.woken += 1

    def _served(self, verifier: Any, name: str) -> LoadedTarget:
        return LoadedTarget(Engine(verifier, 0), Description(name, "replace", SIGNATURE))

    def serve(self) -> list[tuple[int, int, float]]:
        """Serve until there is nothing to do; return the replies that went out."""
        self.turns.serve()
        while self.turns.wait_s == 0.0:
            self.turns.serve()
        sent, self.air.replies = self.air.replies, []
        return sent


def test_replies_go_out_when_they_are_there_and_waiting_threads_wake() -> None:
    front = Front(at_once=2)
    for number in range(3):
        front.air.ask(f"arm {number}", number)
    assert front.serve() == []
    assert [count for count, _, _ in front.first.requested] == [1, 1]  # no more than it takes side by side
    assert front.turns.wait_s == float("inf")
    front.first.say(1)
    assert front.woken == 1
    assert front.turns.wait_s == 0.0
    assert front.serve() == [(1, OK, 0.0)]
    assert len(front.first.requested) == 3
    front.first.say(0)
    front.first.say(2)
    assert front.serve() == [(0, OK, 0.0), (2, OK, 0.0)]
    assert front.service.counts.batch_sizes.total == 3


def test_a_target_that_is_busy_does_not_hold_up_another() -> None:
    front = Front()
    front.air.ask("arm", 0)
    front.serve()
    front.air.ask("leg", 1)
    front.air.ask("hand", 2, target=OTHER)
    front.serve()
    assert (len(front.first.requested), len(front.other.requested)) == (1, 1)
    front.other.say(0)
    assert front.serve() == [(2, OK, 0.0)]


def test_robots_of_a_target_that_batches_by_itself_are_apart() -> None:
    front = Front(size=16, verifiers=(Elsewhere(2, alone=True), Elsewhere(1)))
    for number in range(4):
        front.air.ask(f"arm {number}", number, needed_in_s=1.0 - number / 10)
    front.air.ask("hand", 9, target=OTHER)
    front.air.ask("leg", 8, target=OTHER)
    assert front.serve() == []
    assert [count for count, _, _ in front.first.requested] == [1, 1]
    assert [count for count, _, _ in front.other.requested] == [2]  # requests to the other one share a batch
    front.first.say(1)
    assert front.serve() == [(2, OK, 0.0)]  # the earliest deadlines come first, and wait for nothing else
    assert len(front.first.requested) == 3
    front.first.say(0, TargetUnavailableError("dropped the connection"))
    assert front.serve() == [(3, RequestFault.TARGET_UNAVAILABLE, 0.0)]
    front.first.say(3)
    front.first.say(2)
    assert sorted(front.serve()) == [(0, OK, 0.0), (1, OK, 0.0)]


def test_a_copy_of_a_request_that_is_under_way_is_not_verified_again() -> None:
    front = Front(at_once=4)
    front.air.ask("arm", 3)
    front.serve()
    front.air.ask("arm", 3)
    assert front.serve() == []
    assert len(front.first.requested) == 1
    front.first.say(0)
    assert front.serve() == [(3, OK, 0.0), (3, OK, 0.0)]
    assert len(front.first.requested) == 1


def test_a_robot_that_cannot_be_served_now_learns_when_to_come_again() -> None:
    front = Front()
    front.air.ask("arm", 0)
    front.serve()
    front.first.say(0, TargetUnavailableError("away", 0.25))
    assert front.serve() == [(0, RequestFault.BUSY, 0.25)]
    assert front.service.counts.refused == 0


@pytest.mark.parametrize("late", ["answer", "refuse"])
def test_what_comes_too_late_is_answered_or_refused_as_configured(
    late: str,
) -> None:
    now_s = [10.0]
    front = Front(late=late, clock=lambda: now_s[0])
    for number in range(2):
        front.air.ask(f"arm {number}", number, needed_in_s=0.5)
    front.serve()
    assert front.first.requested[0][1] == (10.5 if late == "refuse" else 15.0)
    now_s[0] = 11.0
    front.first.say(0)
    replies = front.serve()
    assert replies[0] == (0, OK, 0.0)
    if late == "answer":
        assert len(front.first.requested) == 2
        assert len(replies) == 1
    else:
        assert len(front.first.requested) == 1
        assert replies[1][:2] == (1, RequestFault.BUSY)
        assert replies[1][2] > 0.0


def test_what_is_under_way_when_the_service_ends_gets_one_reply() -> None:
    front = Front(at_once=2)
    front.air.ask("arm", 0)
    front.serve()
    front.turns.dismiss()
    assert len(front.air.replies) == 1
    front.first.say(0)
    assert front.turns.wait_s == float("inf")
    assert len(front.air.replies) == 1


@pytest.mark.parametrize("how", ["cancelled", "raised", "too few"])
def test_a_verifier_that_breaks_its_word_costs_a_reply_and_not_the_service(how: str) -> None:
    front = Front(size=2)
    front.air.ask("arm", 0)
    front.air.ask("leg", 1)
    front.serve()
    future = front.first.requested[0][2]
    if how == "cancelled":
        future.cancel()
    elif how == "raised":
        future.set_exception(OSError("broken"))
    else:
        future.set_result([])
    assert sorted(front.serve()) == [(0, INTERNAL_ERROR, 0.0), (1, INTERNAL_ERROR, 0.0)]
    front.air.ask("arm", 2)
    front.serve()
    front.first.say(1)
    assert front.serve() == [(2, OK, 0.0)]


def test_the_end_does_not_wait_for_replies_that_block(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [10.0]
    front = Front(clock=lambda: now_s[0])

    def block(response: VerifyDraft.Response, header: int) -> None:
        now_s[0] += 0.1
        front.air.replies.append((response.step_id, response.status, 0.0))

    monkeypatch.setattr(front.air, "send_response", block)
    for number in range(256):
        front.air.ask(f"gone {number}", number)
    front.turns.dismiss()
    assert 0 < len(front.air.replies) <= 6
    assert now_s[0] < 11.0
    assert not len(front.turns)


def test_a_full_queue_refuses_the_client_with_the_most_requests() -> None:
    """Whatever names it uses; the robot that comes last waits for its turn."""
    front = Front(batch=BatchParameters(size=1, waiting=3, quota_hz=0.0))
    clients = iter(4 * [b"flood"] + [b"arm"])
    front.turns._clients = Mock(client_of=lambda header: next(clients))
    front.air.ask("flood 0", 0)
    front.serve()  # it is verified, and the next ones wait
    for number in range(1, 4):
        front.air.ask(f"flood {number}", number)
    assert front.serve() == []
    front.air.ask("arm", 9)
    ((step, status, _),) = front.serve()
    assert (step, status) == (3, RequestFault.BUSY)
    assert len(front.turns) == 3
