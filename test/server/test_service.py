"""Whatever a request is, it gets one reply, it is counted, and the next one is served."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from adahi_ros.core.proposal import Proposal, counted
from adahi_ros.core.texts import NAME_LENGTH, TEXT_LENGTH
from adahi_ros.policies.interface import Policy
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.request import INTERNAL_ERROR, OK, Request, RequestError, RequestFault, sent_codes
from adahi_ros.protocol.window import WireWindow
from adahi_ros.server.engine import Engine
from adahi_ros.server.service import (
    LATE_S,
    LoadedTarget,
    Served,
    ServedTargets,
    VerificationService,
    target_name,
)
from adahi_ros.server.verifier import TargetVerifier

EVEN = np.full((2, 4), 0.25)
WINDOW = WireWindow.pack(np.zeros((2, 3), np.float32), np.zeros(1, np.float32))
REQUEST = Request(3, 7, 7, robot_id="arm", session=1)
NOW_S = 100.0


@pytest.fixture
def policy(fixed_policy: Callable[..., Policy]) -> Policy:
    return fixed_policy(EVEN.tolist())


@pytest.fixture
def service(policy: Policy) -> VerificationService:
    description = Description("toy", "speculative", policy.signature)
    return VerificationService(ServedTargets(LoadedTarget(Engine(TargetVerifier(policy), 0), description)))


@pytest.fixture
def good(policy: Policy) -> Request:
    assert policy.signature.codes is not None
    draft = Proposal(np.zeros((1, 0, 2), np.float32), sent_codes(np.array([[1, 2]]), counted(EVEN)[None]))
    fingerprint = int(policy.signature.codes.fingerprint, 16)
    return replace(
        Request.from_draft(draft, 3, 7, WINDOW), robot_id="arm", session=1, fingerprint=fingerprint
    )


def faulty(fault: Exception) -> Request:
    return replace(REQUEST, fault=fault)


def serve(service: VerificationService, request: Request, now_s: float = NOW_S) -> Served:
    (served,) = service.replies([request], now_s)
    return served


def test_a_good_request_gets_what_the_engine_says(
    service: VerificationService, good: Request, policy: Policy
) -> None:
    served = serve(service, good)
    expected = Engine(TargetVerifier(policy), 0).verify(good, NOW_S)
    reply = served.reply
    assert (reply.status, reply.message, reply.episode, reply.step, reply.first_step) == (OK, "", 3, 7, 7)
    np.testing.assert_array_equal(reply.actions, expected.actions)
    assert reply.accepted == expected.accepted
    assert all(isinstance(kept, bool) for kept in reply.accepted)
    assert reply.window_kept
    assert served.refusal == served.shared == ""
    assert service.counts.replies == {"ok": 1}


@pytest.mark.parametrize("fault", RequestFault)
def test_a_refusal_is_replied_with_its_status_and_counted(
    service: VerificationService, good: Request, fault: RequestFault
) -> None:
    served = serve(service, faulty(RequestError(fault, "field: 1, must be 2")))
    reply = served.reply
    assert (reply.status, reply.message) == (fault, "field: 1, must be 2")
    assert (reply.episode, reply.step, reply.first_step) == (3, 7, 7)
    assert (len(reply.actions), reply.accepted, reply.window_kept) == (0, (), False)
    assert service.counts.replies == {fault.name.lower(): 1}
    if fault in (RequestFault.WINDOW_UNKNOWN, RequestFault.SUPERSEDED):  # nobody's fault
        assert (service.counts.refused, served.refusal) == (0, "")
    else:
        assert service.counts.refused == 1
        assert served.refusal == "refused 'arm', episode 3, step 7: field: 1, must be 2"
    assert serve(service, good).reply.status == OK


def test_what_is_overtaken_is_refused_as_such_and_counted(service: VerificationService) -> None:
    reply = service.overtaken(REQUEST)
    assert reply.status == RequestFault.SUPERSEDED
    assert reply.message == "step_id: 7, was overtaken by a later request while it waited for its turn"
    assert (reply.episode, reply.step, reply.first_step) == (3, 7, 7)
    assert (service.counts.replies, service.counts.refused) == ({"superseded": 1}, 0)


def test_an_error_of_the_target_is_internal_and_the_next_is_served(
    service: VerificationService, policy: Policy, good: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> Proposal:
        raise RuntimeError("no memory\n" + "x" * TEXT_LENGTH)

    with monkeypatch.context() as patch:
        patch.setattr(policy, "propose", fail)
        reply = serve(service, good).reply
    assert reply.status == INTERNAL_ERROR
    assert reply.message.startswith("RuntimeError: no memory?xxx")
    assert len(reply.message) == TEXT_LENGTH
    assert (len(reply.actions), reply.accepted, reply.window_kept) == (0, (), False)
    assert serve(service, good).reply.status == OK


def test_a_long_name_is_reported_in_short(service: VerificationService) -> None:
    long = faulty(RequestError(RequestFault.WRONG_SHAPE, "y" * 1_000_000))
    served = serve(service, replace(long, robot_id="\n" + "x" * 1_000_000))
    assert len(served.reply.message) == TEXT_LENGTH
    assert served.refusal.startswith("refused '?xxx")
    assert len(served.refusal) < TEXT_LENGTH + 2 * NAME_LENGTH


def test_two_robots_of_one_name_are_served_alike_and_it_is_reported(
    service: VerificationService, good: Request
) -> None:
    later_s = NOW_S + 2 * LATE_S
    one, other = serve(service, good), serve(service, replace(good, session=2))
    assert (one.shared, other.shared, service.shared_names(NOW_S)) == ("", "", {})  # one that restarted
    back = serve(service, good, later_s)
    assert back.shared == "robot_id: 'arm', two robots use this name, must be unique for each robot"
    assert service.shared_names(later_s) == {"arm": 1}
    assert service.shared_names(later_s + 60.0) == {}
    for served in (other, back):
        np.testing.assert_array_equal(served.reply.actions, one.reply.actions)


def test_a_refused_request_is_no_session(service: VerificationService, good: Request) -> None:
    bad = replace(good, target="kitchen")
    for session, now_s in ((1, NOW_S), (2, NOW_S), (1, NOW_S + 2 * LATE_S)):
        assert serve(service, replace(bad, session=session), now_s).shared == ""


def test_a_bad_request_is_nothing_to_the_others_of_its_batch(
    service: VerificationService, good: Request
) -> None:
    alone = serve(service, good).reply
    bad = replace(good, codes=np.array([1, 8]))
    requests = [faulty(KeyError("robot")), bad, good, replace(good, target="kitchen")]
    served = service.replies(requests, NOW_S)
    assert [each.reply.status for each in served] == [
        INTERNAL_ERROR,
        RequestFault.CODE_OUT_OF_RANGE,
        OK,
        RequestFault.UNKNOWN_TARGET,
    ]
    np.testing.assert_array_equal(served[2].reply.actions, alone.actions)


@pytest.mark.parametrize(
    ("given", "checkpoint", "name"),
    [
        ("", "ball/target", "ball/target"),
        ("", "/robots/checkpoints/ball/target", "ball/target"),
        ("", "target", "target"),
        ("", "ball/plans/target", "ball/plans/target"),
        ("", f"{'a' * NAME_LENGTH}/ball/target", "ball/target"),
        ("mine", "ball/target", "mine"),
        ("x" * NAME_LENGTH, "ball/target", "x" * NAME_LENGTH),
    ],
)
def test_a_target_is_named_as_configured_or_by_its_checkpoint(given: str, checkpoint: str, name: str) -> None:
    assert target_name(given, checkpoint) == name


def test_a_name_that_no_request_can_say_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^target: 'x{65}', must have at most 64 characters$"):
        target_name("x" * (NAME_LENGTH + 1), "ball/target")
    with pytest.raises(ValueError, match=r"^target: 'ball/x{64}', must have at most 64 characters$"):
        target_name("", "ball/" + "x" * NAME_LENGTH)
