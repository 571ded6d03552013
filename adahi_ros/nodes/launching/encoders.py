"""Which verifiers need an encoder unless told otherwise: those of robots that send images and encode none."""

from __future__ import annotations

from adahi_ros.contract.parsing import ContractError, load_contract


def encoder_of(task: str) -> dict[str, str]:
    """Return the verifier's parameters that say what encodes the images of a task's robots; none for most."""
    try:
        contract = load_contract(task)
    except ContractError:  # of a world that somebody described, which has no camera
        return {}
    return {"encoder": contract.encoder} if contract.images_for_target else {}
