"""On Ray Serve a verifier says what it says in one process, whoever is killed meanwhile."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import wait
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import Proposal, counted
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import TargetUnavailableError
from adahi_ros.protocol.request import sent_codes
from adahi_ros.server.ray.fleet_file import FleetPolicy, Replicas, Rule
from adahi_ros.server.ray.ray_head import ENVIRONMENT, RayHead
from adahi_ros.server.ray.ray_policies import RayPolicies, RayVerifier
from adahi_ros.server.verifier import TargetVerifier, Verdicts, VerificationRequest
from test.server.ray.lines import LIMIT_S, Lines

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: requirements/ray.txt"),
    pytest.mark.timeout(600),  # Ray takes its time to start, and starts twice
]
BATCH = 4


class OnRay:
    """A Ray on this machine, with the policy `target` on two replicas, and by the rule speculative on one."""

    def __init__(self, folder: Path, target: Path) -> None:
        self.head = RayHead(2, folder)
        self.policy = FleetPolicy(
            str(target), name="arm", rule=Rule("replace"), batch=BATCH, replicas=Replicas(2, 2), num_cpus=0.5
        )
        policy = load_policy(target, "onnxruntime")
        codes = FleetPolicy(str(target), name="codes", rule=Rule("speculative"), num_cpus=0.5)
        self.lines = Lines()
        self.policies = RayPolicies([self.policy, codes], self.head.address, self.lines.say)
        self.verifier: RayVerifier
        self.codes: RayVerifier
        self.verifier, self.codes = self.policies.open()
        self.here = TargetVerifier(policy, "replace")
        self.codes_here = TargetVerifier(policy, "speculative")

    def request(self, robots: int, seed: int = 0) -> tuple[VerificationRequest, np.ndarray]:
        signature, draw = self.verifier.terms.signature, np.random.default_rng(seed)
        seen = draw.normal(size=(robots, signature.history, signature.observation_dim))
        goals = draw.normal(size=(robots, signature.goal_dim))
        observations = signature.observations(seen.astype(np.float32), goals.astype(np.float32))
        draft = Proposal(np.zeros((robots, 0, signature.action_dim), np.float32))
        return VerificationRequest(observations, draft), draw.random((robots, self.verifier.terms.draws, 2))


@pytest.fixture(scope="module")
def on_ray(exported: Path) -> Iterator[OnRay]:
    with (
        TemporaryDirectory(prefix="ray_", dir="/tmp", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        made = OnRay(Path(folder), exported / "target")
        yield made
        made.policies.close()
        made.head.end()


def check_same(results: Verdicts, expected: Verdicts) -> None:
    for there, here in zip(results, expected, strict=True):
        assert isinstance(there, Verdict), there
        assert isinstance(here, Verdict)
        np.testing.assert_allclose(there.actions, here.actions, rtol=0.0, atol=1e-6)
        np.testing.assert_array_equal(there.accepted, here.accepted)


def until_s() -> float:
    return time.monotonic() + LIMIT_S


@pytest.mark.parametrize("robots", [1, BATCH, 2 * BATCH + 1])
def test_the_same_draws_give_the_same_verdicts_as_in_one_process(on_ray: OnRay, robots: int) -> None:
    request, draws = on_ray.request(robots)
    results = on_ray.verifier.submit(request, draws, until_s()).result()
    check_same(results, on_ray.here.verify_each(request, draws))


def test_batches_that_arrive_together_are_distinguished(on_ray: OnRay) -> None:
    requests = [on_ray.request(1 + seed % 3, seed) for seed in range(24)]
    results = [on_ray.verifier.submit(*each, until_s()) for each in requests]
    for future, each in zip(results, requests, strict=True):
        check_same(future.result(), on_ray.here.verify_each(*each))


def test_drafts_with_codes_get_the_same_verdicts_as_in_one_process(on_ray: OnRay) -> None:
    there, here = on_ray.codes, on_ray.codes_here
    assert there.terms.fingerprint == here.terms.fingerprint == on_ray.verifier.terms.fingerprint != ""
    codes = there.terms.signature.codes
    assert codes is not None
    robots, draw = 24, np.random.default_rng(2)
    bare, draws = on_ray.request(robots)
    counts = counted(draw.dirichlet(np.ones(codes.codebook_size), size=(robots, codes.codebooks)))
    drafted = Proposal(bare.draft.actions, sent_codes(counts.argmax(axis=-1), counts))
    request = VerificationRequest(bare.observations, drafted)
    results = there.submit(request, draws, until_s()).result()
    check_same(results, here.verify_each(request, draws))


def test_what_is_of_no_use_any_more_gets_no_request(on_ray: OnRay) -> None:
    (results,) = on_ray.verifier.submit(*on_ray.request(1), time.monotonic() - 1.0).result()
    assert isinstance(results, TargetUnavailableError)
    assert results.retry_after_s > 0.0


def test_a_replica_is_killed_amid_the_load_and_nothing_is_lost(on_ray: OnRay) -> None:
    requests = [on_ray.request(BATCH, seed) for seed in range(100)]
    results = [on_ray.verifier.submit(*each, until_s()) for each in requests]
    wait(results[:1])
    os.kill(on_ray.head.replicas[0], signal.SIGKILL)
    results += [on_ray.verifier.submit(*each, until_s()) for each in requests]
    for future, each in zip(results, [*requests, *requests], strict=True):
        check_same(future.result(), on_ray.here.verify_each(*each))


def test_robots_are_refused_at_once_while_ray_is_away_and_served_again(on_ray: OnRay) -> None:
    request, draws = on_ray.request(2)
    on_ray.head.end()
    on_ray.lines.wait_for("Ray is away")
    for results in on_ray.verifier.submit(request, draws, until_s()).result():
        assert isinstance(results, TargetUnavailableError)
        assert results.retry_after_s > 0.0
    on_ray.head.start()
    on_ray.lines.wait_for("Ray is back")
    assert all(
        isinstance(results, Verdict) for results in on_ray.verifier.submit(request, draws, until_s()).result()
    )
