"""What pages for users quote from benchmarks: a capability that falls to a tenth is a fault.

Limits are far below the figures, and count what works instead of how long it takes: the machine may be busy.
`test_two_verifiers.py` has the robot whose first verifier is dead.
"""

from __future__ import annotations

import pytest

from adahi_lab.bench.fleet_bench import measure_fleet
from adahi_lab.bench.fleet_load import FleetLoad
from adahi_lab.evaluation.evaluate import Comparison, Run, play
from adahi_lab.link.emulator import unavailable
from adahi_lab.methods.methods import METHODS, parse_methods
from benchmarks import batching_engine, own_services

pytestmark = pytest.mark.soak


def test_one_verifier_serves_many_robots_of_one_client_in_time() -> None:
    """Quoted: 200 of 200 (several_robots.md). With one quota for all of them, a few were in time."""
    found = measure_fleet(FleetLoad(60, seconds=6.0, engine="batched", every=2))["batched"]
    assert found["served_in_time"] >= 20, found


def test_a_server_that_batches_by_itself_gets_requests_at_once() -> None:
    """Quoted: 185 replies/s of 16 robots (openpi_groot.md). One by one, 25 are the most."""
    found = batching_engine._measure("batching", 16, 16, (16, 40.0, 0.0), 2.5)
    assert found["replies_per_s"] >= 40.0, found


@pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))
def test_a_robot_with_its_own_service_receives_no_replies_of_others() -> None:
    """Quoted: 1 kB per reply, with a shared service 14 kB of 16 robots (several_robots.md)."""
    found = own_services._measure("kitchen/plans/target", 8, True, 4.0, 2.5)
    assert found["replies"] >= 8, found
    assert found["bytes_per_reply"] <= 3500.0, found


@pytest.mark.parametrize(
    ("task", "method", "episodes", "requests"),
    [
        ("ball", "corrector_7", 20, 7.4),  # README.md
        ("libero_goal", "best", 10, 1.9),
        ("ball_instructed", "plan_4+1", 20, 15.9),  # which_method.md
        ("ball_instructed", "corrector_7+1", 20, 8.0),
        ("ball_instructed", "adahi", 20, 33.1),
        ("ball_instructed", "best", 20, 5.7),
        ("swarm", "best", 20, 4),
        ("metaworld", "best", 10, 1.6),
        ("kitchen", "best", 2, 22),
    ],
)
def test_shipped_policies_succeed_with_few_requests(
    task: str, method: str, episodes: int, requests: float
) -> None:
    (name,) = parse_methods(method)
    outcome = play(Run(METHODS[name].on(task), Comparison.shipped(task, 0), range(episodes)))
    assert outcome.success.mean() >= 0.5
    asked = (outcome.log.transmitted & outcome.log.active).sum() / episodes
    assert asked <= 3.0 * requests
