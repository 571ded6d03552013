"""A replica before it serves. No cluster is started."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from adahi_ros.core.assets import asset
from adahi_ros.core.schema import checked
from adahi_ros.server.ray.fleet_file import FleetPolicy, Replicas, Rule
from adahi_ros.server.ray.start_condition import START_CONDITIONS, StartCondition

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: requirements/ray.txt")
TARGET = str(asset("checkpoints/ball") / "target")


@dataclass(frozen=True)
class Never(StartCondition):
    why: str

    def check(self, checkpoint: Path) -> None:
        raise RuntimeError(f"{checkpoint.name}: {self.why}")


def test_a_replica_starts_only_where_its_condition_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    from adahi_ros.server.ray.replica import Replica

    monkeypatch.setitem(START_CONDITIONS.shipped, "never", Never)
    condition = {"name": "never", "why": "not today"}
    policy: FleetPolicy = checked(FleetPolicy, {"checkpoint": TARGET, "start_condition": condition})
    with pytest.raises(RuntimeError, match="target: not today"):
        Replica(policy)


@pytest.mark.parametrize(
    ("condition", "fault"),
    [
        ({"name": "never"}, "why: missing"),
        ({"name": "never", "why": "no", "else": 1}, "else: unknown, must be one of why"),
        ({"why": "no"}, "name: None, must be one of "),
        ({"name": "sometimes"}, "name: 'sometimes', must be one of "),
        ("never", "start_condition: 'never', must be a mapping"),
    ],
)
def test_a_wrong_condition_is_refused(condition: object, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(START_CONDITIONS.shipped, "never", Never)
    with pytest.raises(ValueError, match=fault):
        checked(FleetPolicy, {"checkpoint": TARGET, "start_condition": condition})


def test_what_ray_serve_is_asked_for() -> None:
    from adahi_ros.server.ray.replica import deployment
    from adahi_ros.server.ray.scaling import ObjectiveScaling

    replicas = Replicas(1, 9, objective_ms=50.0, memory_mib=64.0, budget_mib=200.0)
    policy = FleetPolicy(TARGET, name="arm", rule=Rule("replace"), replicas=replicas)
    made = deployment(policy)._bound_deployment  # type: ignore[attr-defined]
    assert made.ray_actor_options["memory"] == 64 * 2**20
    scaling = made._deployment_config.autoscaling_config
    assert (scaling.min_replicas, scaling.max_replicas) == (1, 3)  # three fit into the budget
    scale = scaling.policy.get_policy()(**scaling.policy.policy_kwargs)
    assert type(scale).__name__ == ObjectiveScaling.__name__
