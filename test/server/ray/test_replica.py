"""A replica before it serves: without keys it does not begin. No cluster is started."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

import adahi_ros
from adahi_ros.core.assets import asset
from adahi_ros.security.attestation import (
    AttestationError,
    EmulatedAppraiser,
    EmulatedPlatform,
    measure_replica,
)
from adahi_ros.security.key_http import key_server
from adahi_ros.security.key_service import KeyService
from adahi_ros.server.ray.fleet_file import Attested, FleetPolicy, Replicas

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: requirements/ray.txt"),
    pytest.mark.timeout(120),
]


@pytest.fixture
def policy(tmp_path: Path) -> Iterator[FleetPolicy]:
    """A policy that needs keys; `admitted.yaml` admits nothing yet."""
    (tmp_path / "server").mkdir()
    (tmp_path / "server/key.pem").write_text("the verifier's private key")
    admitted = tmp_path / "admitted.yaml"
    service = KeyService(tmp_path / "server", admitted, EmulatedAppraiser(admitted), time.monotonic)
    with key_server(service, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        attested = Attested(
            f"http://127.0.0.1:{server.server_address[1]}", str(tmp_path / "platform"), "here"
        )
        replicas = Replicas(1, 9, objective_ms=50.0, memory_mib=64.0, budget_mib=200.0)
        target = str(asset("checkpoints/ball") / "target")
        yield FleetPolicy(target, name="arm", rule="replace", attested=attested, replicas=replicas)
        server.shutdown()
        thread.join()


def admit_only(folder: Path, *measurements: str, revoked: tuple[str, ...] = ()) -> None:
    public = EmulatedPlatform(folder / "platform", "here", "").public
    content = {"measurements": [*measurements], "platforms": {"here": public}, "revoked": [*revoked]}
    (folder / "admitted.yaml").write_text(yaml.safe_dump(content))


def test_a_replica_without_keys_does_not_begin(policy: FleetPolicy, tmp_path: Path) -> None:
    from adahi_ros.server.ray.replica import Replica, admit

    measurement = measure_replica(Path(adahi_ros.__file__).parent, Path(policy.checkpoint))
    admit_only(tmp_path, "ab" * 32)
    with pytest.raises(AttestationError, match="measurement: not admitted"):
        Replica(policy)
    admit_only(tmp_path, measurement, revoked=("here",))
    with pytest.raises(AttestationError, match="here: revoked"):
        Replica(policy)
    admit_only(tmp_path, measurement)
    assert policy.attested is not None
    admit(policy, policy.attested)


def test_what_ray_serve_is_asked_for(policy: FleetPolicy) -> None:
    from adahi_ros.server.ray.replica import deployment
    from adahi_ros.server.ray.scaling import ObjectiveScaling

    made = deployment(policy)._bound_deployment  # type: ignore[attr-defined]
    assert made.ray_actor_options["memory"] == 64 * 2**20
    scaling = made._deployment_config.autoscaling_config
    assert (scaling.min_replicas, scaling.max_replicas) == (1, 3)  # three fit into the budget
    scale = scaling.policy.get_policy()(**scaling.policy.policy_kwargs)
    assert type(scale).__name__ == ObjectiveScaling.__name__
