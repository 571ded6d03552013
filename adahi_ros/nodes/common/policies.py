# SPDX-License-Identifier: Apache-2.0
"""A policy from a node's parameters, ready to predict at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adahi_ros.contract.contract import RELIABILITIES
from adahi_ros.core.assets import CHECKPOINTS, ENCODERS, named
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.signature import Signature
from adahi_ros.nodes.common.parameters import ParameterError, parameter
from adahi_ros.nodes.common.verifier_messages import check_signature_bounds
from adahi_ros.policies.backends import BACKENDS, load_policy
from adahi_ros.policies.corrector.corrector import Corrector
from adahi_ros.policies.corrector.corrector_checkpoint import load_corrector
from adahi_ros.policies.corrector.corrector_features import PlanView
from adahi_ros.policies.interface import Policy, TargetUnavailableError
from adahi_ros.policies.retrieval import Retrieval, load_retrieval
from adahi_ros.vision.encoder import Encoder, EncoderFiles, load_files
from adahi_ros.vision.visual_cache import CachedEncoder

CHECKPOINT = "DIRECTORY/NAME of the policy's checkpoint; a relative path is below the package's checkpoints"


@dataclass(frozen=True)
class PolicyParameters:
    """What `policy_from` reads; a node's own begin with them, and say which checkpoint is its default."""

    checkpoint: str = parameter("ball/draft", CHECKPOINT)
    backend: str = parameter("onnxruntime", "What runs the policy", choices=tuple(sorted(BACKENDS)))


@dataclass(frozen=True)
class VerificationParameters:
    """What both ends of `verify_draft` must be told alike: the group `verification`."""

    reliability: str = parameter(
        "best_effort",
        "QoS of verify_draft, the same at both ends: best_effort, where the robot sends again what is lost, "
        "or reliable, where DDS does; for windows of many packets",
        choices=RELIABILITIES,
    )


def encoder_from(name: str) -> Encoder:
    """Load an image encoder, and let it encode once: the first time takes many times as long.

    Args:
        name: of one below checkpoints/encoders, or a path.

    Raises:
        ParameterError: it cannot be loaded; says why.
    """
    try:
        encoder = Encoder.load(named(name, ENCODERS))
        encoder.encode(np.zeros((1, *encoder.image_size, 3), dtype=np.uint8))
    except (ValueError, OSError) as error:
        raise ParameterError(f"encoder: {name!r}, cannot be loaded: {error}") from error
    return encoder


def cached_encoder_from(name: str) -> CachedEncoder:
    """Load an image encoder that keeps what has not changed. Arguments and errors as above."""
    try:
        encoder = CachedEncoder(named(name, ENCODERS))
        encoder.encode(np.zeros((1, *encoder.image_size, 3), dtype=np.uint8))
    except (ValueError, OSError) as error:
        raise ParameterError(f"encoder_cache: of {name!r}, cannot be had: {error}") from error
    encoder.forget()
    return encoder


def encoder_files_from(name: str) -> EncoderFiles:
    """Read what an image encoder is, of a verifier: it is not run here. Arguments and errors as above."""
    try:
        return load_files(named(name, ENCODERS))
    except (ValueError, OSError) as error:
        raise ParameterError(f"encoder: {name!r}, cannot be read: {error}") from error


def policy_from(
    values: PolicyParameters, away: Callable[[str], object] | None = None, **compute: Any
) -> Policy:
    """Load the policy, and let it predict once: the first prediction takes many times as long.

    Args:
        values: of the node.
        away: told why a policy that runs elsewhere is not to be had yet; it may be later. None where that
            will not do.
        compute: see `load_policy`.

    Raises:
        ParameterError: it cannot be loaded, or its sizes are too large for messages; names the parameter,
            its value and why.
    """
    try:
        policy = load_policy(named(values.checkpoint, CHECKPOINTS), values.backend, **compute)
    except (CheckpointError, OSError) as error:
        raise ParameterError(f"checkpoint: {values.checkpoint!r}, cannot be loaded: {error}") from error
    except ValueError as error:  # it names the parameter itself
        raise ParameterError(str(error)) from error
    try:
        check_signature_bounds(policy.signature)
        first = _first_actions(policy)
    except Exception as error:  # a policy of another package may raise anything
        if away is not None and isinstance(error, TargetUnavailableError):
            away(str(error))
            return policy
        reason = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ParameterError(f"checkpoint: {values.checkpoint!r}, {reason}") from error
    if not np.isfinite(first).all():
        raise ParameterError(f"checkpoint: {values.checkpoint!r}, predicts values that are not finite")
    return policy


def corrector_from(name: str, draft: Signature) -> Corrector:
    """Load a corrector of plans, and let it correct once: the first time takes many times as long.

    Args:
        name: DIRECTORY/NAME of its checkpoint; a relative one is below the package's.
        draft: what the robot's own policy reads and does.

    Raises:
        ParameterError: it cannot be loaded, or is of another robot; names the parameter, its value and why.
    """
    if not name:
        raise ParameterError("corrector: '', must name a checkpoint for the proposer corrector")
    try:
        corrector = Corrector(load_corrector(named(name, CHECKPOINTS)))
    except (CheckpointError, OSError) as error:
        raise ParameterError(f"corrector: {name!r}, cannot be loaded: {error}") from error
    _check_sizes("corrector", name, corrector.signature, draft)
    corrector.correct(PlanView.nothing(corrector.signature))
    return corrector


def index_from(name: str, draft: Signature) -> Retrieval:
    """Load an index of demonstrations, and let it retrieve once; arguments and errors as `corrector_from`."""
    if not name:
        raise ParameterError("index: '', must name an index for the proposers retrieval and mixture")
    try:
        index = load_retrieval(named(name, CHECKPOINTS))
    except (CheckpointError, OSError) as error:
        raise ParameterError(f"index: {name!r}, cannot be loaded: {error}") from error
    _check_sizes("index", name, index.signature, draft)
    _first_actions(index)
    return index


def _check_sizes(parameter: str, name: str, found: Signature, draft: Signature) -> None:
    for size in ("observation_dim", "goal_dim", "action_dim"):
        its, wanted = getattr(found, size), getattr(draft, size)
        if its != wanted:
            raise ParameterError(
                f"{parameter}: {name!r}, its {size} is {its}, must be {wanted}, that of checkpoint"
            )


def _first_actions(policy: Policy) -> np.ndarray:
    """Return what a policy proposes of nothing.

    Raises:
        ValueError: it is of another shape than its signature says.
    """
    signature = policy.signature
    actions = policy.propose(signature.nothing(), np.zeros((1, policy.draws))).actions
    expected = 1, signature.horizon, signature.action_dim
    if actions.shape != expected:
        raise ValueError(
            f"predicts actions of shape {actions.shape}, must be {expected} as its signature says"
        )
    return actions
