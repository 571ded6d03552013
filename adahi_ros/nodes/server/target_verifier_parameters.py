# SPDX-License-Identifier: Apache-2.0
"""What a verifier is told, and the policy that it makes of that."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from adahi_ros.acceptance.interface import WITHIN
from adahi_ros.acceptance.registry import ACCEPTANCES, BY_TARGET, semantic_arguments
from adahi_ros.core.registry import LARGEST_INTEGER
from adahi_ros.core.texts import NAME_LENGTH
from adahi_ros.nodes.common.managed import ManagedParameters
from adahi_ros.nodes.common.parameters import ParameterError, group, parameter
from adahi_ros.nodes.common.policies import (
    CHECKPOINT,
    PolicyParameters,
    VerificationParameters,
    policy_from,
)
from adahi_ros.nodes.server.request_scheduler import BatchParameters
from adahi_ros.nodes.server.target_worker import TargetWorker
from adahi_ros.policies.registry import COMPUTE, DTYPES
from adahi_ros.protocol.description import Description, why_not_served
from adahi_ros.protocol.request import ROUND_TRIP_MS
from adahi_ros.server.engine import Engine
from adahi_ros.server.service import ServedTarget, target_name
from adahi_ros.server.verifier import AGREEMENTS, SAMPLES, TargetVerifier, Verifier
from adahi_ros.server.window_cache import MAX_AGE_S, ROBOTS_KEPT

ROBOT_NAME = f"[A-Za-z_][A-Za-z0-9_]{{0,{NAME_LENGTH - 1}}}"  # also that of a namespace

ENGINES = ("batched", "ray")


@dataclass(frozen=True)
class CacheParameters:
    """How much is remembered of robots."""

    robots: int = parameter(
        ROBOTS_KEPT,
        "Robots whose last windows are remembered, four of each, so that they send only what is new; more "
        "robots are served alike, and send whole windows",
        1,
        65536,
    )
    max_age_s: float = parameter(
        MAX_AGE_S, "A robot that has asked nothing for so long leaves its place to another", 1.0, 86400.0
    )


@dataclass(frozen=True)
class SemanticParameters:
    """For the rule semantic."""

    file: str = parameter(
        "",
        "Weights of its head, which 'adahi acceptance train' writes; a relative path is below the package's "
        "checkpoints, '' for none",
        optional=True,
    )
    tolerance: float = parameter(
        0.0,
        "Probability that it matters below which the draft stands; 0 is speculative sampling. Where "
        "patience_ms is told, of robots that do not know their link",
        0.0,
        1.0,
    )
    patience_ms: float = parameter(
        0.0,
        "The round trip at which the draft stands whatever it is: tolerance is then the robot's own round "
        "trip as a share of this. 0: the link does not count",
        0.0,
        ROUND_TRIP_MS[1],
    )


@dataclass(frozen=True)
class TargetVerifierParameters(PolicyParameters, ManagedParameters):
    """What the node is told."""

    autostart: bool = parameter(
        True, "Configure and activate the node as it starts; where that cannot be, it ends with exit code 1"
    )
    checkpoint: str = parameter("ball/target", CHECKPOINT)
    target: str = parameter(
        "",
        "Name of the policy, by which robots may ask for it; '' for checkpoint, of a long path its last two "
        "parts",
        optional=True,
    )
    robots: tuple[str, ...] = parameter(
        (),
        "Names (robot_id) of the robots that may ask, each by services of its own, NAME/verify_draft and "
        "NAME/describe_target, so that its replies go to it alone; '' for any robot, by verify_draft and "
        "describe_target, where every reply goes to all",
    )
    engine: str = parameter(
        "batched",
        "Where policies compute: batched, in this process; ray, on the replicas of a fleet on Ray Serve",
        choices=ENGINES,
    )
    fleet: str = parameter(
        "",
        "File of the fleet, for engine:=ray; a relative one is below the package's config/fleets. It says "
        "which policies there are, and what else of these parameters is a policy's",
        optional=True,
    )
    ray_address: str = parameter(
        "", "Of the Ray that the fleet is on, as HOST:PORT; '' is as its file says, or auto", optional=True
    )
    loads_targets: bool = parameter(
        False,
        "Whether ~/load_target and ~/unload_target may change what is served: whoever reaches the node may "
        "call them, and a target that takes another's place moves robots",
    )
    device: str = parameter(
        "",
        "Where the target computes, as torch calls it; auto is cuda where there is one. '' is as its file "
        "says, or on the CPU. For the backends torch and lerobot, and targets of LeRobot",
        optional=True,
    )
    dtype: str = parameter(
        "",
        "Of its matrix products, by autocast; for the same, and '' is as its file says",
        choices=("", *DTYPES),
    )
    compile: bool = parameter(
        False,
        "Compile it by torch.compile as the node is configured, which may take minutes; for the same, and "
        "false is as its file says",
    )
    seed: int = parameter(0, "Seed of the draws that accept and resample", 0, LARGEST_INTEGER)
    rule: str = parameter(
        BY_TARGET,
        "speculative accepts or resamples the drafted codes; replace takes the target's own proposal, "
        "whatever was drafted; distance lets the draft stand where it is near to the target's own proposal; "
        "semantic is speculative, but the draft stands where a learned head says that it does not matter; "
        "by_target is speculative for a target that speaks an action tokenizer, else replace",
        choices=(BY_TARGET, *ACCEPTANCES),
    )
    distance: float = parameter(
        WITHIN,
        "For the rule distance: how far off each entry of an action may be, in action scales",
        0.0,
        1e6,
    )
    semantic: SemanticParameters = group(SemanticParameters)
    temperature: float = parameter(1.0, "Of the target's distributions", 1e-3, 100.0)
    added_compute_s: float = parameter(
        0.0,
        "So much longer every proposal of the target takes: what a larger policy, or a slower machine, would "
        "do to robots",
        0.0,
        60.0,
    )
    agreement: str = parameter(
        "none",
        "What becomes of the actions that a robot says it executes whatever is replied. "
        + "; ".join(f"{name}: {what}" for name, what in AGREEMENTS.items()),
        choices=tuple(AGREEMENTS),
    )
    samples: int = parameter(
        SAMPLES, "Of how many plans agreement:=choose takes one; each costs a pass of the target", 1, 1024
    )
    encoder: str = parameter(
        "",
        "Checkpoint of the encoder of images that robots send; a relative path is below the package's "
        "checkpoints/encoders. '' for none: then they send features, or nothing of their cameras",
        optional=True,
    )
    cache: CacheParameters = group(CacheParameters)
    batch: BatchParameters = group(BatchParameters)
    verification: VerificationParameters = group(VerificationParameters)


def check_robots(names: Sequence[str]) -> None:
    """Check names that services are to have.

    Raises:
        ParameterError: one cannot be part of a service's name, is longer than a request may say, or is
            there twice.
    """
    for name in names:
        if not re.fullmatch(ROBOT_NAME, name):
            allowed = f"letters, digits and underscores, at most {NAME_LENGTH}, no digit first"
            raise ParameterError(f"robots: {name!r}, must be {allowed}")
        if names.count(name) > 1:  # each of its services would reply to every request
            raise ParameterError(f"robots: {name!r}, must not be there twice")


def told_to_compute(values: TargetVerifierParameters) -> dict[str, Any]:
    """Return what the parameters say of where and how the target computes."""
    return {name: value for name in COMPUTE if (value := getattr(values, name))}


def served_target(values: TargetVerifierParameters, away: Callable[[str], None]) -> ServedTarget:
    """Load the policy that a verifier is told, and let it plan once.

    Args:
        values: what it is told.
        away: told why a policy that runs elsewhere cannot plan now.

    Raises:
        ParameterError: it cannot be loaded, or does not go with the other parameters; names the parameter,
            its value and what is allowed.
        ValueError: likewise.
    """
    policy = policy_from(values, away, **told_to_compute(values))
    fault = why_not_served(policy.signature)
    if fault is not None:
        raise ParameterError(f"checkpoint: {values.checkpoint!r}, {fault}")
    device = policy.device
    if values.added_compute_s:
        from adahi_ros.policies.slowed import SlowedPolicy

        policy = SlowedPolicy(policy, values.added_compute_s, time.sleep)
    name = target_name(values.target, values.checkpoint)
    arguments = semantic_arguments(**vars(values.semantic)) if values.rule == "semantic" else {}
    try:
        verifier = TargetVerifier(
            policy,
            values.rule,
            values.temperature,
            agreement=values.agreement,
            samples=values.samples,
            distance=values.distance,
            arguments=arguments,
        )
    except ValueError as error:
        of_rule = str(error).partition(":")[0] in arguments
        raise ParameterError(f"{values.rule}.{error}" if of_rule else str(error)) from error
    return target_by(values, name, TargetWorker(verifier), device)


def target_by(values: TargetVerifierParameters, name: str, verifier: Verifier, device: str) -> ServedTarget:
    """Return a target as it is served, wherever it computes.

    Args:
        values: what the verifier is told.
        name: of the target.
        verifier: of its drafts.
        device: where it computes.

    Raises:
        ParameterError: the encoder of images cannot be loaded.
    """
    images = None
    if values.encoder:
        from adahi_ros.nodes.common.encoders import encoder_from
        from adahi_ros.server.received_images import ReceivedImages

        images = ReceivedImages(encoder_from(values.encoder))
    engine = Engine(verifier, values.seed, images, values.cache.robots, values.cache.max_age_s)
    terms, eye = verifier.terms, "" if images is None else images.fingerprint
    description = Description(name, terms.rule, terms.signature, eye, policy_fingerprint=terms.fingerprint)
    return ServedTarget(engine, description, device)
