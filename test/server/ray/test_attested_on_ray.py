"""On Ray Serve a replica that is not attested gets no keys, and never serves."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

import adahi_ros
from adahi_ros.security.attestation import EmulatedAppraiser, EmulatedPlatform, measure_replica
from adahi_ros.security.key_http import key_server
from adahi_ros.security.key_service import KeyService
from adahi_ros.server.ray.fleet_file import Attested, FleetPolicy, Replicas
from adahi_ros.server.ray.ray_head import ENVIRONMENT, RayHead
from adahi_ros.server.ray.ray_policies import RayPolicies
from test.server.ray.lines import Lines

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: requirements/ray.txt"),
    pytest.mark.timeout(240),
]


@pytest.fixture(scope="module")
def head() -> Iterator[tuple[RayHead, Path]]:
    with (
        TemporaryDirectory(prefix="ray_", dir="/tmp", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        made = RayHead(2, Path(folder))
        yield made, Path(folder)
        made.end()


def test_only_an_attested_replica_serves(head: tuple[RayHead, Path], exported: Path) -> None:
    ray_head, folder = head
    machine = folder / "server"
    machine.mkdir()
    (machine / "key.pem").write_text("the verifier's private key")
    measurement = measure_replica(Path(adahi_ros.__file__).parent, exported / "target")
    public = EmulatedPlatform(folder / "platform", "here", measurement).public
    admitted, heard = folder / "admitted.yaml", Lines()

    def admit(**content: object) -> None:
        admitted.write_text(yaml.safe_dump({"platforms": {"here": public}, **content}))

    service = KeyService(machine, admitted, EmulatedAppraiser(admitted), time.monotonic, heard.say)
    with key_server(service, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        policy = FleetPolicy(
            str(exported / "target"),
            name="arm",
            rule="replace",
            num_cpus=0.5,
            replicas=Replicas(1, 2, objective_ms=50.0, memory_mib=64.0, budget_mib=200.0),
            attested=Attested(url, str(folder / "platform"), "here"),
        )
        admit(measurements=["ab" * 32])
        policies = RayPolicies([replace(policy, name="refused")], ray_head.address, Lines().say)
        with pytest.raises(RuntimeError):
            policies.open()
        policies.close()
        heard.wait_for(f"refused: 'here', measurement {measurement[:16]}: measurement: not admitted")
        admit(measurements=[measurement])
        policies = RayPolicies([policy], ray_head.address, Lines().say)
        (verifier,) = policies.open()
        heard.wait_for("released: to 'here'")
        assert verifier.terms.signature.action_dim == 2
        policies.close()
        server.shutdown()
