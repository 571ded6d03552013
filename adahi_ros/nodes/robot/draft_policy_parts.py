# SPDX-License-Identifier: Apache-2.0
"""Builds the parts of the draft policy node from its parameters."""

from __future__ import annotations

import secrets
from dataclasses import replace

import numpy as np

from adahi_ros.contract.assembler import Encode
from adahi_ros.contract.commanded import commanded
from adahi_ros.contract.contract import GOALS, Action, Contract
from adahi_ros.contract.parsing import load_contract
from adahi_ros.core.signature import Signature
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.policies import policy_from
from adahi_ros.nodes.common.verifier_messages import REQUEST
from adahi_ros.nodes.robot.draft_policy_parameters import DRAWN, FIRST_EPISODES, DraftPolicyParameters
from adahi_ros.policies.interface import Policy
from adahi_ros.proposers.registry import PROPOSERS
from adahi_ros.protocol.description import Wants
from adahi_ros.robot.compatibility import (
    check_images,
    check_observation,
    check_sizes,
    offer_of,
    wants_of,
)
from adahi_ros.robot.controller import Controller
from adahi_ros.robot.target_view import VIEWS, TargetView, view_of_contract
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.named_limits import named_limits
from adahi_ros.vision.interface import EncoderSizes


def first_episode(values: DraftPolicyParameters) -> int:
    """Return the number of the first episode, for a robot that counts episodes itself."""
    given = int(values.first_episode)
    return secrets.randbelow(FIRST_EPISODES + 1) if given == DRAWN else given


def planned_positions(action: Action, planned: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Return the names of commanded positions, and them (K, names) in messages' units, of actions (K, A)."""
    what = commanded(action)
    places = [place for place, field in enumerate(what.fields) if field == "positions"]
    commands = np.array([action.to_wire(each) for each in planned]).reshape(-1, len(what.names))
    return [what.names[place] for place in places], commands[:, places]


def controller_config(values: DraftPolicyParameters) -> ControllerConfig:
    """Return the controller's configuration.

    Raises:
        ValueError: names the field, its value and what is allowed.
    """
    return ControllerConfig(
        ThresholdedGate(values.gate.name, values.gate.threshold, arguments=values.gate.arguments),
        values.deviation.smoothing,
        values.deviation.normalization,
        values.draft_temperature,
    )


def controller_of(values: DraftPolicyParameters, policy: Policy, contract: Contract) -> Controller:
    """Return the controller, with this policy as draft or as backup.

    Raises:
        ValueError: the parts do not fit; names the parameter, its value and what is allowed.
    """
    name = values.proposer.name
    controller = Controller(
        policy,
        controller_config(values),
        name,
        policy,
        values.blend,
        [entry for entry, field in enumerate(commanded(contract.action).fields) if field == GOALS],
        values.execution_horizon,
        arguments=values.proposer.arguments,
    )
    if values.wait_policy == "ahead" and controller.sends_drafts:
        raise ParameterError(f"wait_policy: 'ahead', must be wait for the proposer {name}: it sends drafts")
    return controller


def view_of(values: DraftPolicyParameters, contract: Contract) -> TargetView:
    """Return what the target sees of the cameras."""
    given = values.verification
    view = view_of_contract(given.vision, contract.images_for_target, bool(contract.encoder))
    return VIEWS[view](contract.number_dim, given.jpeg_quality, given.jpeg_budget_bytes)


def encoder_of(
    values: DraftPolicyParameters, contract: Contract
) -> tuple[EncoderSizes | None, Encode | None]:
    """Return the encoder of the contract's images, and the function that encodes them on the robot, or None.

    Raises:
        ParameterError: it cannot be loaded.
    """
    if not contract.encoder:
        return None, None
    from adahi_ros.nodes.common.encoders import encoder_files_from, encoder_from

    if contract.images_for_target:  # the verifier encodes them
        return encoder_files_from(contract.encoder), None
    encoder = encoder_from(contract.encoder)
    return encoder, encoder.encode


def policy_and_contract(values: DraftPolicyParameters) -> tuple[Policy, Contract]:
    """Return a robot's own policy and its contract.

    A robot that only executes plans needs no policy: the contract then has the sizes.

    Raises:
        ValueError: one cannot be loaded, or they do not fit; names the parameter, its value and what is
            allowed.
    """
    contract = load_contract(values.contract)
    if values.checkpoint:
        policy = policy_from(values)
        check_sizes(values.contract, contract, policy.signature)
        return policy, contract
    name = values.proposer.name
    if getattr(PROPOSERS[name], "needs_policy", True):
        raise ParameterError(
            f"checkpoint: '', must name a policy for the proposer {name}; it may be empty only with a "
            "proposer that acts by the target's replies, such as plan"
        )
    if contract.encoder and not contract.images_for_target:
        raise ParameterError(
            f"checkpoint: '', must name a policy, because the contract {values.contract!r} has its images "
            "encoded on the robot"
        )
    from adahi_ros.policies.absent import AbsentPolicy

    return AbsentPolicy(contract.number_dim, contract.goal_dim, contract.action.size), contract


def check_fit(
    values: DraftPolicyParameters,
    contract: Contract,
    signature: Signature,
    encoder: EncoderSizes | None,
) -> None:
    """Check that contract, policy and encoder (None without cameras) fit, and that images can be sent.

    Raises:
        FitError: they do not; names the parameter, its value and what is allowed.
    """
    for_target, cameras, most = contract.images_for_target, len(contract.cameras), REQUEST["images"]
    view = view_of_contract(values.verification.vision, for_target, bool(contract.encoder))
    check_observation(values.contract, contract, signature, encoder)
    check_images(view, cameras, signature.history, most, for_target, encoder is not None)


def limits_of(values: DraftPolicyParameters, contract: Contract) -> Limits:
    """Return the limits of the commands; see `named_limits`.

    Without a policy, any finite action of the target passes its check. So limits are required then.
    """
    what, safety = commanded(contract.action), values.safety
    required = safety.require_limits or values.takeover.command != "none" or not values.checkpoint
    return named_limits(safety.limits, required, what, contract.measured(what.names))


def wants_of_robot(
    values: DraftPolicyParameters,
    contract: Contract,
    signature: Signature,
    encoder: EncoderSizes | None,
    controller: Controller,
    limits: Limits,
) -> Wants:
    """Return what a verifier must fit: for the robot's own policy of this signature, and its other parts."""
    at_target = encoder is not None and contract.images_for_target
    image_dim = len(contract.cameras) * encoder.features if encoder is not None and at_target else 0
    offered = offer_of(contract, signature.observation_dim, image_dim, limits)
    if not controller.sends_drafts:  # then the target's codes need not match
        signature = replace(signature, codes=None)
    target, view = values.verification.target_name, view_of(values, contract)
    return wants_of(signature, offered, target, view, encoder, *controller.wanted)
