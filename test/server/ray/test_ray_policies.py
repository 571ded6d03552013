"""The verifier's end of policies on Ray Serve, with Ray stood in for: what Ray may do to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.acceptance.replace import Replace
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Observations, Signature, observed_features
from adahi_ros.policies.interface import TargetUnavailableError
from adahi_ros.server.ray import ray_policies
from adahi_ros.server.ray.fleet_file import FleetPolicy
from adahi_ros.server.ray.ray_policies import RayPolicies
from adahi_ros.server.verifier import Terms, VerificationRequest
from test.server.ray.lines import Lines

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: requirements/ray.txt")
LIMIT_S = 10.0
POLICY = FleetPolicy("ball/target", name="arm")
SIGNATURE = Signature(1, 2, 1, observed_features(1, 0))
VERDICT = Verdict(np.zeros((1, 2, 1), np.float32), np.zeros((1, 0), bool))
REQUEST = VerificationRequest(
    Observations({"observation.state": np.zeros((1, 1, 1), np.float32)}, {}),
    Proposal(np.zeros((1, 0, 1), np.float32)),
)


class Response:
    """Of Ray Serve: what a call comes to."""

    def __init__(self, scripted: Any) -> None:
        self._scripted = scripted

    def __await__(self) -> Iterator[Any]:
        if isinstance(self._scripted, BaseException):
            raise self._scripted
        return self._scripted
        yield

    def cancel(self) -> None:
        pass


class RefusedError(RuntimeError):
    """Raised by the call itself."""


class Ray:
    """Its head is a port; what replicas say comes from a list."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scripted: list[Any] = []
        self.disconnects: list[Exception | None] = []
        self.lines = Lines()
        self.fingerprint = "0123456789abcdef"
        monkeypatch.setattr(ray_policies, "_disconnect", self._disconnect)
        monkeypatch.setattr(ray_policies, "LOOK_S", 0.001)
        self.policies = RayPolicies([POLICY], "auto", self.lines.say)
        monkeypatch.setattr(self.policies, "_handles", self._handles)

    def _disconnect(self) -> None:
        error = self.disconnects.pop(0) if self.disconnects else None
        if error is not None:
            raise error

    def _handles(self) -> dict[str, Any]:
        self.policies._head = self.head
        terms = Terms(SIGNATURE, 1, "replace", Replace(), self.fingerprint)
        lines = SimpleNamespace(made_of=POLICY, terms=terms, device="cpu")
        describe = SimpleNamespace(remote=lambda: Response(lines))
        verify = SimpleNamespace(remote=self._verify)
        return {"arm": SimpleNamespace(describe=describe, verify=verify)}

    def _verify(self, jobs: Any) -> Response:
        scripted = self.scripted.pop(0)
        if isinstance(scripted, RefusedError):
            raise scripted
        return Response(scripted)

    def listen(self, port: int = 0) -> None:
        """Be there, in the loop that asks."""
        self.connected: list[asyncio.StreamWriter] = []
        serve = asyncio.start_server(lambda _, writer: self.connected.append(writer), "127.0.0.1", port)
        self.server = self.policies.run(serve).result(LIMIT_S)
        self.head = self.server.sockets[0].getsockname()

    def vanish(self) -> None:
        async def end() -> None:
            while not self.connected:
                await asyncio.sleep(0.001)
            self.server.close()
            for writer in self.connected:
                writer.close()

        self.policies.run(end()).result(LIMIT_S)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ray]:
    import_module("ray.serve.exceptions")  # which takes seconds, and not in the loop that watches Ray
    made = Ray(monkeypatch)
    made.listen()
    yield made
    made.policies.close()
    assert made.policies._loop.is_closed()


def test_a_call_that_ray_cancels_is_made_again(ray: Ray) -> None:
    (verifier,) = ray.policies.open()
    ray.scripted = [asyncio.CancelledError(), [VERDICT]]
    scripted = verifier.submit(REQUEST, np.zeros((1, 1, 2)), time.monotonic() + LIMIT_S)
    assert scripted.result(LIMIT_S) == [VERDICT]


def test_a_ray_that_is_not_left_in_order_is_found_again(ray: Ray) -> None:
    ray.policies.open()
    ray.disconnects = [RuntimeError("the raylet is gone")]
    ray.vanish()
    ray.lines.wait_for("Ray is away")
    ray.listen(ray.head[1])
    ray.lines.wait_for("Ray is back")


@pytest.mark.parametrize("kind", [RuntimeError, RefusedError])
def test_while_ray_dies_robots_retry_whatever_its_calls_raise(
    ray: Ray, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    """Before the end of its head is noticed."""
    monkeypatch.setattr(ray_policies, "NOTICE_S", LIMIT_S)
    (verifier,) = ray.policies.open()
    ray.scripted = [kind("the raylet is gone")]
    scripted = verifier.submit(REQUEST, np.zeros((1, 1, 2)), time.monotonic() + LIMIT_S)
    ray.vanish()
    (fault,) = scripted.result(LIMIT_S)
    assert isinstance(fault, TargetUnavailableError)
    assert fault.retry_after_s > 0.0


@pytest.mark.parametrize("of_replica", [False, True])
def test_what_fails_while_ray_is_there_is_reported_as_what_it_is(
    ray: Ray, monkeypatch: pytest.MonkeyPatch, of_replica: bool
) -> None:
    raised: Exception = ValueError("weights: none")
    if of_replica:  # Ray lives, then, and its end is not waited for
        errors = import_module("ray.exceptions")
        raised = errors.RayTaskError("verify", "weights: none", raised).as_instanceof_cause()
    monkeypatch.setattr(ray_policies, "NOTICE_S", 10.0 * LIMIT_S if of_replica else 0.01)
    (verifier,) = ray.policies.open()
    ray.scripted = [raised]
    (fault,) = verifier.submit(REQUEST, np.zeros((1, 1, 2)), time.monotonic() + 10.0 * LIMIT_S).result(
        LIMIT_S
    )
    assert type(fault) is RuntimeError
    assert "weights: none" in str(fault)


def test_a_policy_that_comes_back_with_other_weights_is_reported(ray: Ray) -> None:
    (verifier,) = ray.policies.open()
    assert verifier.terms.fingerprint == "0123456789abcdef"
    ray.vanish()
    ray.lines.wait_for("Ray is away")
    ray.fingerprint = "fedcba9876543210"
    ray.listen(ray.head[1])
    ray.lines.wait_for("policy 'arm' is back with other weights than its description says")
    ray.lines.wait_for("Ray is back")
