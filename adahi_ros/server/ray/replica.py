# SPDX-License-Identifier: Apache-2.0
"""A replica of a policy on Ray Serve, in its own process on any machine of the cluster.

Messages are in Ray's serialisation, after the verifier has checked them. Ray's processes trust each other, so
no raw bytes of a robot may reach a replica.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from ray import serve

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.intent.intent import load_encoder
from adahi_ros.policies.interface import TargetUnavailableError
from adahi_ros.policies.slowed import SlowedPolicy
from adahi_ros.protocol.request import RequestError
from adahi_ros.server.ray.fleet_file import FleetPolicy
from adahi_ros.server.ray.scaling import Load
from adahi_ros.server.verifier import TargetVerifier, Terms, Verdicts, VerificationRequest, joined, kind_of

SCALING = "adahi_ros.server.ray.scaling:ObjectiveScaling"
STARTS = 3  # attempts of a replica that cannot be loaded, or must not start
STUCK_S = 60.0  # for one batch; after it Ray Serve replaces the replica

Job = tuple[VerificationRequest, np.ndarray]
"""Drafts of M robots, and uniform draws (M, draws, 2)."""


@dataclass(frozen=True)
class ReplicaDescription:
    """Description of a replica.

    Attributes:
        made_of: the policy in the fleet's file.
        terms: see `Verifier`.
        device: where it computes.
    """

    made_of: FleetPolicy
    terms: Terms
    device: str


def _robots(jobs: Sequence[Job]) -> int:
    return sum(len(draws) for _, draws in jobs)


class Replica:
    """Verifies drafts, as a deployment of Ray Serve.

    Args:
        made_of: policy and rule.
    """

    def __init__(self, made_of: FleetPolicy) -> None:
        checkpoint = named(made_of.checkpoint, CHECKPOINTS)
        if made_of.start_condition is not None:
            made_of.start_condition.check(checkpoint)
        policy = load_policy(checkpoint, made_of.backend, **made_of.compute)
        device = policy.device
        if made_of.added_compute_s:
            policy = SlowedPolicy(policy, made_of.added_compute_s, time.sleep)
        self._verifier = TargetVerifier(
            policy,
            made_of.rule.name,
            made_of.temperature,
            agreement=made_of.agreement,
            samples=made_of.samples,
            arguments=made_of.rule.arguments,
            intents=load_encoder(named(made_of.intent, CHECKPOINTS)) if made_of.intent else None,
        )
        self._description = ReplicaDescription(made_of, self._verifier.terms, device)
        self._started_s = float("inf")
        self._load = Load(time.monotonic)
        self.verify.set_max_batch_size(made_of.batch)
        policy.propose(policy.signature.nothing(), np.zeros((1, policy.draws)))  # the first one is slow

    async def describe(self) -> ReplicaDescription:
        """Return the description."""
        return self._description

    @serve.batch(max_batch_size=1, batch_wait_timeout_s=0.0, batch_size_fn=_robots)
    async def verify(self, jobs: list[Job]) -> list[Verdicts]:
        """Verify requests as `TargetVerifier.verify_each` does; requests of one kind together."""
        self._started_s = time.monotonic()
        try:
            # In a thread, so that the loop can receive requests and health checks meanwhile.
            return await asyncio.to_thread(verified, self._verifier, jobs)
        finally:
            self._load.served(_robots(jobs), time.monotonic() - self._started_s)
            self._started_s = float("inf")

    def record_autoscaling_stats(self) -> dict[str, float]:
        """Return the load for `ObjectiveScaling`; Ray Serve calls it."""
        return self._load.figures()

    def check_health(self) -> None:
        """Check for Ray Serve that the replica is healthy.

        Raises:
            RuntimeError: it is not.
        """
        if time.monotonic() - self._started_s > STUCK_S:
            raise RuntimeError(f"a batch takes more than {STUCK_S:g} s")


def verified(verifier: TargetVerifier, jobs: Sequence[Job]) -> list[Verdicts]:
    """Return the verdicts of each request from `verify_each`; requests of one kind are joined."""
    found: dict[int, Verdicts] = {}
    kinds = dict.fromkeys(kind_of(request) for request, _ in jobs)
    for kind in kinds:
        places = [place for place, (request, _) in enumerate(jobs) if kind_of(request) == kind]
        draws = [jobs[place][1] for place in places]
        verdicts = verifier.verify_each(joined([jobs[place][0] for place in places]), np.concatenate(draws))
        ends = np.cumsum([len(each) for each in draws])
        for place, end in zip(places, ends, strict=True):
            found[place] = [_sent(each) for each in verdicts[end - len(jobs[place][1]) : end]]
    return [found[place] for place in range(len(jobs))]


def _sent(verdict: Verdict | Exception) -> Verdict | Exception:
    """Return a verdict or error that another process can unpickle, whatever package raised it."""
    if isinstance(verdict, Verdict | RequestError):
        return verdict
    if isinstance(verdict, TargetUnavailableError):
        return TargetUnavailableError(str(verdict), verdict.retry_after_s)
    return RuntimeError(f"{type(verdict).__name__}: {verdict}")


def deployment(policy: FleetPolicy) -> object:
    """Return the application of a policy, for `serve.run`."""
    replicas = policy.replicas
    how_many: dict[str, object] = {"num_replicas": replicas.fitting}
    if replicas.least < replicas.fitting:
        scaling: dict[str, object] = {
            "min_replicas": replicas.least,
            "max_replicas": replicas.fitting,
            "target_ongoing_requests": replicas.under_way,
            "upscale_delay_s": 2.0,
            "downscale_delay_s": 60.0,
        }
        if replicas.objective_ms:
            bounds = {"least": replicas.least, "most": replicas.fitting}
            arguments = {"objective_ms": replicas.objective_ms, "batch": policy.batch, **bounds}
            scaling["policy"] = {"policy_function": SCALING, "policy_kwargs": arguments}
        how_many = {"autoscaling_config": scaling}
    options: dict[str, object] = {"num_cpus": policy.num_cpus, "num_gpus": policy.num_gpus}
    if replicas.memory_mib:
        options["memory"] = int(replicas.memory_mib * 2**20)
    made = serve.deployment(
        Replica,
        name="verifier",
        ray_actor_options=options,
        # The verifier's node limits its requests to the replicas' capacity. The margin is for a replica that
        # has just died: Ray Serve retries a call only after a delay if all replicas are full.
        max_ongoing_requests=replicas.under_way * (replicas.fitting + 1),
        max_constructor_retry_count=STARTS,
        health_check_period_s=1.0,
        health_check_timeout_s=10.0,
        graceful_shutdown_timeout_s=2.0,
        **how_many,
    )
    return made.bind(policy)
