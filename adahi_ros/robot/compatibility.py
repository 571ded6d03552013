# SPDX-License-Identifier: Apache-2.0
"""Whether a robot's parts fit: contract, policy, encoder, what it sends; and what a verifier must fit."""

from __future__ import annotations

from collections.abc import Sequence

from adahi_ros.contract.contract import Contract
from adahi_ros.contract.parsing import load_contract
from adahi_ros.core.signature import GOAL, IMAGE_FEATURES, OBSERVATION, Offer, Signature
from adahi_ros.protocol.description import Wants
from adahi_ros.robot.target_view import VIEWS, TargetView
from adahi_ros.vision.interface import EncoderSizes


class FitError(ValueError):
    """Parts do not fit; the message names the parameter, its value and what is allowed."""


def named_contract(name: str, signature: Signature) -> Contract:
    """Return the contract of a name or file, whose goal and action have the sizes of the policy's.

    A policy that is told no goal fits any: it is passed on to the target.

    Raises:
        FitError: they have not.
        ContractError: there is none, or it says nothing that can be used.
    """
    contract = load_contract(name)
    for part, size in {"goal": contract.goal_dim, "action": contract.action.size}.items():
        wanted = getattr(signature, f"{part}_dim")
        if size != wanted and (part, wanted) != ("goal", 0):
            raise FitError(
                f"contract: {name!r}, its {part} has {size} entries, must be {wanted}, the "
                "size of the policy's"
            )
    return contract


def contract_of_joints(
    observed: Sequence[str],
    commanded: Sequence[str],
    command_field: str,
    rate_hz: float,
    max_skew_s: float,
    max_age_s: float,
    signature: Signature,
) -> Contract:
    """Return the contract of joints and a task's state, of the sizes of the policy's.

    Args:
        observed: joints whose positions are the leading entries of an observation; there may be none.
        commanded: what the entries of an action command; empty for the joints that are observed.
        command_field: of a trajectory point, where they go.
        rate_hz: control steps per second.
        max_skew_s: between the stamps of joint state and task state.
        max_age_s: of a message when it arrives.
        signature: the policy's.

    Raises:
        FitError: there are too few or too many names.
        ContractError: they, or a number, can be none of a contract.
    """
    names = list(commanded or observed)
    if len(names) != signature.action_dim:
        field = "command.joint_names" if commanded else "joint_names"
        raise FitError(f"{field}: {names}, must be {signature.action_dim}, the size of the policy's action")
    state_dim = signature.observation_dim - len(observed)
    if state_dim < 0:
        raise FitError(
            f"joint_names: {list(observed)}, must be {signature.observation_dim} at most, "
            "the size of an observation"
        )
    from adahi_ros.contract.plain import (
        plain_contract,  # a robot with a contract of its own has no use for it
    )

    return plain_contract(
        "robot",
        rate_hz,
        observed,
        state_dim,
        signature.goal_dim,
        names,
        command_field,
        max_skew_s,
        max_age_s,
    )


def check_observation(
    name: str, contract: Contract, signature: Signature, encoder: EncoderSizes | None
) -> None:
    """Check that numbers and features make an observation of the policy's size.

    Args:
        name: of the contract, as it was given.
        contract: of the robot.
        signature: the policy's.
        encoder: of the images, which may be the verifier's alone; None without cameras.

    Raises:
        FitError: they do not, or the images are not of the encoder's size.
    """
    features = 0 if encoder is None or contract.images_for_target else encoder.features
    if encoder is not None:
        try:
            contract.check_image_size(encoder.image_size)
        except ValueError as error:
            raise FitError(str(error)) from None
    entries = contract.number_dim + len(contract.cameras) * features
    if entries != signature.observation_dim:
        raise FitError(
            f"contract: {name!r}, {contract.number_dim} numbers and {len(contract.cameras)} "
            f"cameras of {features} features, must make {signature.observation_dim} entries, the size of the "
            "policy's observation"
        )


def check_images(
    view: str,
    cameras: int,
    history: int,
    most: int,
    images_for_target: bool = False,
    encoded: bool = True,
) -> None:
    """Check that a target can be sent what it is to see, and a window of images not more than a request has.

    Args:
        view: what the target sees of cameras, a key of `VIEWS`.
        cameras: of the robot.
        history: observations of a window.
        most: images of a request.
        images_for_target: the robot has no features of them.
        encoded: somebody has.

    Raises:
        FitError: it cannot, or has more.
    """
    if images_for_target and view == "features":
        raise FitError(
            f"verification.vision: {view!r}, must be jpeg or none, or by_contract: the contract's images are "
            "for the target, and the robot makes no features of them"
        )
    if cameras and not encoded and VIEWS[view].needs_encoder:
        raise FitError(
            f"verification.vision: {view!r}, must be none or by_contract: the contract names no encoder for "
            "its images, which go to a target that reads images as they are whatever is said here, and to no "
            "other"
        )
    images = history * cameras
    if VIEWS[view].needs_encoder and images > most:
        raise FitError(
            f"verification.vision: {view!r}, sends {images} images with a window, "
            f"must be at most {most}; features has no such bound"
        )


def offer_of(contract: Contract, observation_dim: int, image_dim: int = 0) -> Offer:
    """Return what a robot of a contract can tell a target.

    Args:
        contract: its.
        observation_dim: O, of all that its own policy may read.
        image_dim: features that the verifier makes of an observation's images, where they are for the target.
    """
    named = contract.named
    sizes = {name: len(entries) for name, entries in named.items()}
    sizes |= {OBSERVATION: observation_dim, GOAL: contract.goal_dim}
    if image_dim:
        sizes[IMAGE_FEATURES] = image_dim
    return Offer(
        sizes,
        named,
        tuple(camera.key for camera in contract.cameras),
        instruction=True,
        action_names=contract.action.select,
        rate_hz=contract.rate_hz,
    )


def wants_of(
    signature: Signature,
    offered: Offer,
    target: str,
    view: TargetView,
    encoder: EncoderSizes | None,
    horizon: int | None = None,
) -> Wants:
    """Return what a verifier must fit.

    Args:
        signature: the draft policy's.
        offered: to the target.
        target: name of the policy to ask; empty for the verifier's only one.
        view: what it gets to see; only of images must it have the robot's encoder.
        encoder: of the images; None without cameras.
        horizon: see `Wants`.
    """
    return Wants(
        signature,
        offered,
        target,
        encoder.fingerprint if encoder is not None and view.needs_encoder else None,
        horizon,
    )
