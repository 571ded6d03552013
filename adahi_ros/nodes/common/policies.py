# SPDX-License-Identifier: Apache-2.0
"""Loads a policy from a node's parameters, and runs it once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adahi_ros.contract.contract import RELIABILITIES
from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.nodes.common.parameters import ParameterError, parameter
from adahi_ros.nodes.common.verifier_messages import check_signature_bounds
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy, TargetUnavailableError
from adahi_ros.policies.registry import BACKENDS

CHECKPOINT = "DIRECTORY/NAME of the policy's checkpoint; a relative path is below the package's checkpoints"


@dataclass(frozen=True)
class PolicyParameters:
    """Parameters for `policy_from`."""

    checkpoint: str = parameter("", CHECKPOINT, optional=True)
    backend: str = parameter("onnxruntime", "Inference backend", choices=tuple(sorted(BACKENDS)))


@dataclass(frozen=True)
class VerificationParameters:
    """The group `verification`, which must be the same at robot and verifier."""

    reliability: str = parameter(
        "best_effort",
        "QoS of verify_draft, the same at both ends. best_effort: the robot repeats lost requests; "
        "reliable: DDS does, for requests of many packets such as images",
        choices=RELIABILITIES,
    )


def policy_from(
    values: PolicyParameters, away: Callable[[str], object] | None = None, **compute: object
) -> Policy:
    """Load the policy, and run it once, because the first prediction is slow.

    Args:
        values: of the node.
        away: called with the reason if a policy behind a server is unavailable for now. With None, this is
            an error.
        compute: see `load_policy`.

    Raises:
        ParameterError: it cannot be loaded, or its sizes are too large for messages; names the parameter,
            its value and why.
    """
    if not values.checkpoint:
        raise ParameterError(f"checkpoint: '', must be {CHECKPOINT}")
    try:
        policy = load_policy(named(values.checkpoint, CHECKPOINTS), values.backend, **compute)
    except (CheckpointError, OSError) as error:
        raise ParameterError(f"checkpoint: {values.checkpoint!r}, cannot be loaded: {error}") from error
    except ValueError as error:  # it names the parameter itself
        raise ParameterError(str(error)) from error
    try:
        check_signature_bounds(policy.signature)
        first = first_actions(policy)
    except Exception as error:  # a policy of another package may raise anything
        if away is not None and isinstance(error, TargetUnavailableError):
            away(str(error))
            return policy
        reason = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ParameterError(f"checkpoint: {values.checkpoint!r}, {reason}") from error
    if policy.weights_known and not np.isfinite(first).all():  # else a pose may be missing in `nothing`
        raise ParameterError(f"checkpoint: {values.checkpoint!r}, predicts values that are not finite")
    return policy


def first_actions(policy: Policy) -> np.ndarray:
    """Return a policy's actions for an empty observation.

    Raises:
        ValueError: their shape differs from the signature's.
    """
    signature = policy.signature
    actions = policy.propose(signature.nothing(), np.zeros((1, policy.draws))).actions
    expected = 1, signature.horizon, signature.action_dim
    if actions.shape != expected:
        raise ValueError(
            f"predicts actions of shape {actions.shape}, must be {expected} as its signature says"
        )
    return actions
