# SPDX-License-Identifier: Apache-2.0
"""Which verifiers need an encoder unless told otherwise: those of robots that send images and encode none."""

from __future__ import annotations

from adahi_ros.contract.parsing import SHIPPED, load_contract
from adahi_ros.core.assets import shipped


def encoder_parameters(task: str) -> dict[str, str]:
    """Return the verifier's parameters that say what encodes the images of a task's robots; none for most.

    Raises:
        ContractError: the shipped contract of that name cannot be used.
    """
    if not shipped(f"{SHIPPED}/{task}.yaml"):  # of a world that somebody described, which has no camera
        return {}
    contract = load_contract(task)
    return {"encoder": contract.encoder} if contract.images_for_target else {}
