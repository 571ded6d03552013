"""A replica that must be attested does not start without keys. No cluster is started."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from adahi_lab.papers.s3ml.attestation import (
    AttestationError,
    EmulatedAppraiser,
    EmulatedPlatform,
    measure_replica,
)
from adahi_lab.papers.s3ml.attested import Attested
from adahi_lab.papers.s3ml.key_http import key_server
from adahi_lab.papers.s3ml.key_service import KeyService
from adahi_ros.core.assets import asset
from adahi_ros.server.ray.fleet_file import FleetPolicy, read_fleet

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
        url = f"http://127.0.0.1:{server.server_address[1]}"
        keys = {
            "name": "keys",
            "service": url,
            "platform": str(tmp_path / "platform"),
            "platform_name": "here",
        }
        arm = {"checkpoint": str(asset("checkpoints/ball") / "target"), "rule": {"name": "replace"}}
        file = tmp_path / "fleet.yaml"
        file.write_text(yaml.safe_dump({"policies": {"arm": {**arm, "start_condition": keys}}}))
        (made,) = read_fleet(file).named
        yield made
        server.shutdown()
        thread.join()


def admit_only(folder: Path, *measurements: str, revoked: tuple[str, ...] = ()) -> None:
    public = EmulatedPlatform(folder / "platform", "here", "").public
    content = {"measurements": [*measurements], "platforms": {"here": public}, "revoked": [*revoked]}
    (folder / "admitted.yaml").write_text(yaml.safe_dump(content))


def test_a_replica_without_keys_does_not_begin(policy: FleetPolicy, tmp_path: Path) -> None:
    from adahi_ros.server.ray.replica import Replica

    measurement = measure_replica(Path(policy.checkpoint))
    admit_only(tmp_path, "ab" * 32)
    with pytest.raises(AttestationError, match="measurement: not admitted"):
        Replica(policy)
    admit_only(tmp_path, measurement, revoked=("here",))
    with pytest.raises(AttestationError, match="here: revoked"):
        Replica(policy)
    admit_only(tmp_path, measurement)
    assert isinstance(policy.start_condition, Attested)
    policy.start_condition.check(Path(policy.checkpoint))
