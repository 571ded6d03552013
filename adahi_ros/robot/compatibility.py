# SPDX-License-Identifier: Apache-2.0
"""Checks that contract, policy, encoder and requests of a robot fit; states what a verifier must fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from adahi_ros.contract.commanded import commanded_by_sink
from adahi_ros.contract.contract import GOALS, JOINT_STATE, Contract, Source
from adahi_ros.core.signature import (
    ACTION,
    GOAL,
    IMAGE_FEATURES,
    OBSERVATION,
    Feature,
    Offer,
    Quantity,
    Signature,
)
from adahi_ros.protocol.description import Wants
from adahi_ros.robot.target_view import VIEWS, TargetView
from adahi_ros.safety.limits import Limits
from adahi_ros.vision.interface import EncoderSizes

UNLIMITED = (-math.inf, math.inf)


class FitError(ValueError):
    """Parts do not fit; the message names the parameter, its value and what is allowed."""


def check_sizes(name: str, contract: Contract, signature: Signature) -> None:
    """Check the goal and action sizes of a contract against the policy's.

    A policy without a goal fits any contract: the robot passes the goal to the target.

    Args:
        name: of the contract, as configured.
        contract: of the robot.
        signature: the policy's.

    Raises:
        FitError: the sizes differ.
    """
    for part, size in {"goal": contract.goal_dim, "action": contract.action.size}.items():
        wanted = getattr(signature, f"{part}_dim")
        if size != wanted and (part, wanted) != ("goal", 0):
            raise FitError(
                f"contract: {name!r}, its {part} has {size} entries, must be {wanted}, the "
                "size of the policy's"
            )


def check_observation(
    name: str, contract: Contract, signature: Signature, encoder: EncoderSizes | None
) -> None:
    """Check that numbers and features add up to the policy's observation size.

    Args:
        name: of the contract, as configured.
        contract: of the robot.
        signature: the policy's.
        encoder: of the images, possibly at the verifier only; None without cameras.

    Raises:
        FitError: the sizes differ, or the images do not have the encoder's size.
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
    """Check that the robot can send the target's view, and that a window's images fit in a request.

    Args:
        view: what the target sees of the cameras, a key of `VIEWS`.
        cameras: number of the robot's cameras.
        history: observations in a window.
        most: largest number of images in a request.
        images_for_target: the robot computes no features of its images.
        encoded: the contract names an encoder.

    Raises:
        FitError: it cannot, or there are too many images.
    """
    if images_for_target and view == "features":
        raise FitError(
            f"verification.vision: {view!r}, must be jpeg or none, or by_contract: the contract's images are "
            "for the target, so the robot computes no features"
        )
    if cameras and not encoded and VIEWS[view].needs_encoder:
        raise FitError(
            f"verification.vision: {view!r}, must be none or by_contract: the contract names no encoder for "
            "its images; only a target that reads raw images gets them"
        )
    images = history * cameras
    if VIEWS[view].needs_encoder and images > most:
        raise FitError(
            f"verification.vision: {view!r}, sends {images} images with a window, "
            f"must be at most {most}; features has no such bound"
        )


def offer_of(
    contract: Contract, observation_dim: int, image_dim: int = 0, limits: Limits | None = None
) -> Offer:
    """Return what a robot offers to a target.

    Args:
        contract: of the robot.
        observation_dim: O, of the robot's own policy.
        image_dim: features that the verifier computes per observation, if the images are for the target.
        limits: of the commanded entries; None if unknown.
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
        quantities=_quantities(contract, limits),
    )


def _quantities(contract: Contract, limits: Limits | None) -> dict[str, Quantity]:
    """Return the robot's numbers by name; positions of joints with limits have these."""
    ends: dict[str, tuple[float, float]] = {}
    acted = [(sink.source, sink.source.select) for sink in contract.action.sinks]
    if limits is not None:
        each = zip(limits.position_low.tolist(), limits.position_high.tolist(), strict=True)
        ends = dict(zip(limits.names, each, strict=True))
        parts = commanded_by_sink(contract.action)
        placed = [part.names if part.field in ("positions", GOALS) else () for part in parts]
        acted = [(source, joints) for (source, _), joints in zip(acted, placed, strict=True)]
    found: dict[str, list[Quantity]] = {}
    found[ACTION] = [_quantity(source, joints, ends) for source, joints in acted]
    for source in contract.numbers:
        named = [path.partition(".") for path in source.select if source.channel.kind == JOINT_STATE]
        joints = tuple(joint if field == "position" else "" for field, _, joint in named)
        for key in (OBSERVATION, source.key):
            found.setdefault(key, []).append(_quantity(source, joints, ends))
    return {name: _joined(each) for name, each in found.items()}


def _quantity(source: Source, joints: Sequence[str], ends: Mapping[str, tuple[float, float]]) -> Quantity:
    """Return the numbers of a source; of positions of `joints`, with their limits."""
    wire = [ends.get(joint, UNLIMITED) for joint in joints] or [UNLIMITED] * source.size
    rows = np.transpose(wire)
    known = np.isfinite(rows).all(axis=0)
    converted = [source.from_wire(np.where(known, row, 0.0)) for row in rows]
    low, high = np.where(known, np.sort(converted, axis=0), np.nan)
    return Quantity(source.select, (0,) * source.size, low, high)


def _joined(parts: Sequence[Quantity]) -> Quantity:
    """Return the numbers of several sources, one after the other; each source has its own unit."""
    names = tuple(name for part in parts for name in part.names)
    units = tuple(unit for unit, part in enumerate(parts) for _ in part.names)
    low, high = (np.concatenate([getattr(part, end) for part in parts]) for end in ("low", "high"))
    return Quantity(names, units, low, high)


def named_values(contract: Contract, values: np.ndarray) -> dict[str, np.ndarray]:
    """Return the numbers (N, S) of N observations by name; nothing without observations."""
    if not len(values):
        return {}
    ends = np.cumsum([len(entries) for entries in contract.named.values()])
    parts = np.split(values, ends[:-1], axis=1)
    return {OBSERVATION: values, **dict(zip(contract.named, parts, strict=True))}


def wants_of_plans(contract: Contract, limits: Limits | None) -> Wants:
    """Return what a target must fit, for a robot without a policy of its own."""
    size = contract.number_dim
    own = Signature(1, 1, contract.action.size, (Feature(OBSERVATION, size),))
    return Wants(own, offer_of(contract, size, limits=limits))


def wants_of(
    signature: Signature,
    offered: Offer,
    target: str,
    view: TargetView,
    encoder: EncoderSizes | None,
    horizon: int | None = None,
    intent: tuple[str, int] | None = None,
    decodes: bool = False,
) -> Wants:
    """Return what a verifier must fit.

    Args:
        signature: the draft policy's.
        offered: what the robot offers to the target.
        target: name of the policy; empty for the verifier's first.
        view: what the target sees; JPEGs need the robot's encoder at the verifier.
        encoder: of the images; None without cameras.
        horizon: see `Wants`.
        intent: see `Wants`.
        decodes: see `Wants`.
    """
    return Wants(
        signature,
        offered,
        target,
        encoder.fingerprint if encoder is not None and view.needs_encoder else None,
        horizon,
        intent,
        decodes,
    )
