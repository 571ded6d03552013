"""The shipped files of targets behind servers: they are made, and fit the robots that they name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

REASON = "pip install -r requirements/remote_targets.txt"
for package in ("msgpack", "websockets", "zmq"):
    pytest.importorskip(package, reason=REASON)

from adahi_ros.contract.parsing import load_contract  # noqa: E402
from adahi_ros.core.assets import asset  # noqa: E402
from adahi_ros.policies.backends import load_policy  # noqa: E402
from adahi_ros.policies.interface import TargetUnavailableError  # noqa: E402
from adahi_ros.robot.compatibility import offer_of  # noqa: E402

SHIPPED = {"openpi_droid": (15, 8, 2), "groot_so101": (16, 6, 2), "lerobot_remote_so101": (50, 6, 1)}
"""Actions of a plan, entries of one, images."""


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_file_is_a_target(name: str) -> None:
    if name.startswith("lerobot"):
        pytest.importorskip("zenoh", reason=REASON)
    target = load_policy(asset(f"config/targets/{name}.yaml"), "onnxruntime")
    signature = target.signature
    assert (signature.horizon, signature.action_dim, len(signature.images)) == SHIPPED[name]
    assert signature.instruction
    assert [each.name for each in signature.features] == ["observation.state"]
    with pytest.raises(TargetUnavailableError, match="localhost"):
        target.propose(signature.nothing(), np.zeros((1, 0)))


def test_the_so101_of_the_contract_fits_groots() -> None:
    contract = load_contract("so101")
    offered = offer_of(contract, contract.number_dim)
    offered = replace(offered, images=("observation.images.front", "observation.images.wrist"))
    target = load_policy(asset("config/targets/groot_so101.yaml"), "onnxruntime")
    assert target.signature.unmet(offered) is None
