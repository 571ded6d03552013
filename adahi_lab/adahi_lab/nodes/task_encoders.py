# SPDX-License-Identifier: Apache-2.0
"""The verifiers that need an encoder by default: those of robots that send images."""

from __future__ import annotations

from adahi_ros.contract.parsing import SHIPPED, load_contract
from adahi_ros.core.assets import shipped


def encoder_parameters(task: str) -> dict[str, str]:
    """Return the verifier's parameters for the encoder of a task's images; empty for most tasks.

    Raises:
        ContractError: the shipped contract of that name is invalid.
    """
    if not shipped(f"{SHIPPED}/{task}.yaml"):  # a task from a file has no camera
        return {}
    contract = load_contract(task)
    return {"encoder": contract.encoder} if contract.images_for_target else {}
