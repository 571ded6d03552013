"""A target that no robot requests is unloaded, and loaded again by the next request."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import Proposal
from adahi_ros.nodes.server import idle_target
from adahi_ros.nodes.server.idle_target import IdleTarget
from adahi_ros.policies.interface import TargetUnavailableError
from adahi_ros.protocol.request import OK, RequestFault
from adahi_ros.server.verifier import TargetVerifier, VerificationRequest
from test.nodes.server.test_request_scheduler import SIGNATURE, Front, Still
from test.nodes.server.test_target_worker import Stalling
from test.waiting import wait_for

LONG_S = 20.0


class Loader:
    """Loads a target when it may; remembers all that it loaded, without keeping them."""

    def __init__(self, error: Exception | None = None) -> None:
        self.may = threading.Event()
        self.may.set()
        self.error = error
        self.loaded: list[weakref.ref[Any]] = []
        self.said: list[str] = []
        self.away: list[str] = []
        self.make: Callable[[], TargetVerifier] = lambda: TargetVerifier(Still(), "replace")

    def __call__(self) -> TargetVerifier:
        assert self.may.wait(LONG_S)
        if self.error is not None:
            raise self.error
        verifier = self.make()
        self.loaded.append(weakref.ref(verifier.policy))
        return verifier

    def target(self, idle_s: float = 0.01, took_s: float = 1.5) -> IdleTarget:
        return IdleTarget(self(), self, took_s, idle_s, self.said.append, self.away.append)


def replied(target: Any) -> Verdict | Exception:
    request = VerificationRequest(SIGNATURE.nothing(), Proposal(np.zeros((1, 0, 1), np.float32)))
    verdict: Verdict | Exception = target.submit(request, np.zeros((1, 1, 2)), 0.0).result(LONG_S)[0]
    return verdict


def verified(target: Any) -> bool:
    return isinstance(replied(target), Verdict)


def test_one_that_is_requested_stays_loaded() -> None:
    loader = Loader()
    target = loader.target(idle_s=LONG_S)
    assert verified(target)
    assert target.state == "loaded"
    assert not loader.said


def test_an_idle_one_is_freed_and_loaded_again_when_requested() -> None:
    loader = Loader()
    target = loader.target()
    wait_for(lambda: bool(loader.said))
    assert target.state == "unloaded"
    assert loader.said == ["unloaded: no robot has requested it for 0.01 s"]
    assert [each() for each in loader.loaded] == [None]  # its memory is free
    loader.may.clear()
    busy = replied(target)
    assert isinstance(busy, TargetUnavailableError)
    assert (str(busy), busy.retry_after_s) == ("the target is being loaded", 1.5)
    wait_for(lambda: target.state == "loading")
    again = replied(target)
    assert isinstance(again, TargetUnavailableError)
    assert 0.25 <= again.retry_after_s < 1.5
    loader.may.set()
    wait_for(lambda: len(loader.loaded) == 2)
    wait_for(lambda: len(loader.said) > 1)
    assert "loaded again in" in loader.said[1]
    assert not loader.away


def test_one_that_computes_is_not_unloaded() -> None:
    loader, go_on = Loader(), threading.Event()
    loader.make = lambda: Stalling(go_on)
    target = loader.target(idle_s=0.05)
    request = VerificationRequest(SIGNATURE.nothing(), Proposal(np.zeros((1, 0, 1), np.float32)))
    while (pending := target.submit(request, np.zeros((1, 1, 2)), 0.0)).done():
        time.sleep(0.01)  # unloaded already, on a loaded machine: it is being loaded again
    time.sleep(0.5)  # ten times as long as it may be idle
    assert target.state == "loaded"
    go_on.set()
    assert isinstance(pending.result(LONG_S)[0], Verdict)
    wait_for(lambda: target.state == "unloaded")


def test_one_that_cannot_be_loaded_again_says_why_and_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_target, "PAUSE_S", 0.2)
    loader = Loader()
    target = loader.target()
    wait_for(lambda: target.state == "unloaded")
    loader.error = RuntimeError("the GPU's memory is full")
    replied(target)
    why = "cannot be loaded again: the GPU's memory is full"
    wait_for(lambda: target.state == why)
    fault = replied(target)
    assert isinstance(fault, TargetUnavailableError)
    assert (str(fault), fault.retry_after_s) == (why, 0.2)
    assert loader.away == [why]
    loader.error = None
    wait_for(lambda: not isinstance(replied(target), Exception))


def test_another_policy_is_not_served_as_the_same() -> None:
    class Other(Still):
        def __init__(self) -> None:
            super().__init__()
            self.digest = "other"

    loader = Loader()
    target = loader.target()
    wait_for(lambda: target.state == "unloaded")
    loader.make = lambda: TargetVerifier(Other(), "replace")
    replied(target)
    wait_for(lambda: "its files changed meanwhile" in target.state)


@pytest.mark.parametrize("state", ["loaded", "unloaded"])
def test_its_threads_end_with_it(state: str) -> None:
    before = set(threading.enumerate())
    loader = Loader()
    target = loader.target(idle_s=LONG_S if state == "loaded" else 0.01)
    while target.state != state:
        time.sleep(0.01)
    mine = set(threading.enumerate()) - before
    del target
    gc.collect()
    for thread in mine:
        thread.join(LONG_S)
        assert not thread.is_alive()


def test_robots_get_busy_and_when_to_come_again() -> None:
    loader = Loader()
    target = loader.target(took_s=0.5)
    wait_for(lambda: target.state == "unloaded")
    front = Front(verifiers=(target, target), wake=lambda: None)
    front.air.ask("arm", 0)
    assert front.serve() == [(0, RequestFault.BUSY, 0.5)]

    def served() -> bool:
        front.air.ask("arm", 1)
        return (1, OK, 0.0) in [reply for _ in range(50) for reply in front.serve()]

    wait_for(served)
