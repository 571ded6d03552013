# SPDX-License-Identifier: Apache-2.0
"""Parameters of the verifier's node, and the target that they define."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from adahi_ros.acceptance.registry import ACCEPTANCES, BY_TARGET
from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.registry import LARGEST_INTEGER, Registry
from adahi_ros.core.texts import NAME_LENGTH
from adahi_ros.doors.lerobot import LeRobotDoor
from adahi_ros.doors.openpi import OpenPiDoor
from adahi_ros.doors.target_worker import TargetWorker
from adahi_ros.nodes.common.managed import ManagedParameters
from adahi_ros.nodes.common.parameters import ParameterError, arguments_of_named, group, parameter
from adahi_ros.nodes.common.policies import PolicyParameters, VerificationParameters, policy_from
from adahi_ros.policies.registry import COMPUTE, DTYPES
from adahi_ros.protocol.description import why_not_served
from adahi_ros.server.engine import Engine
from adahi_ros.server.schedule import BatchParameters
from adahi_ros.server.service import LoadedTarget, target_name
from adahi_ros.server.verifier import AGREEMENTS, SAMPLES, ReplyEncoder, TargetVerifier, Verifier
from adahi_ros.server.window_cache import MAX_AGE_S, ROBOTS_KEPT

ROBOT_NAME = f"[A-Za-z_][A-Za-z0-9_]{{0,{NAME_LENGTH - 1}}}"  # also valid as a namespace


Say = Callable[[str], None]


class EngineSource:
    """Opens the engines of a verifier; here in the node's process, for all waiting requests at once.

    A new source derives from this. Arguments are fields of a dataclass, made with `argument`.

    Attributes:
        loads_targets: a verifier may load and unload targets there while it serves others.
    """

    loads_targets: bool = True

    def open(self, values: TargetVerifierParameters, warn: Say, away: Say) -> list[LoadedTarget]:
        """Load the targets, the default one first; `target_by` makes one of a `Verifier`.

        Args:
            values: parameters of the verifier.
            warn: called with warnings, in any thread.
            away: called with the reason if a target cannot plan now, in any thread.

        Raises:
            ValueError: one cannot be loaded; names the parameter, its value and what is allowed.
        """
        return [served_target(values, away)]

    def close(self) -> None:
        """End what computes elsewhere; called before the node opens targets again, and at its end."""


ENGINES: Registry[type[EngineSource]] = Registry(
    "adahi_ros.engines",
    {"batched": EngineSource, "ray": "adahi_ros.nodes.server.fleet_targets:FleetTargets"},
    EngineSource,
)


@dataclass(frozen=True)
class EngineParameters:
    """Parameters of the engines: where policies compute."""

    name: str = parameter("batched", "batched: in this process; ray: by replicas of a fleet", names=ENGINES)
    arguments: Mapping[str, object] = arguments_of_named("name")


@dataclass(frozen=True)
class RuleParameters:
    """Parameters of the rule for drafts."""

    name: str = parameter(
        BY_TARGET,
        "What happens to a draft, see docs/reference/methods.md. by_target: speculative for a target with "
        "an action tokenizer, else replace",
        choices=(BY_TARGET, *ACCEPTANCES),
        names=ACCEPTANCES,
    )
    arguments: Mapping[str, object] = arguments_of_named("name")


@dataclass(frozen=True)
class CacheParameters:
    """The cache of robots' windows."""

    robots: int = parameter(
        ROBOTS_KEPT,
        "Robots with four cached windows, which send only new observations; others send whole windows",
        1,
        65536,
    )
    max_age_s: float = parameter(
        MAX_AGE_S, "A robot without a request for this time leaves its place to another, s", 1.0, 86400.0
    )


@dataclass(frozen=True)
class DoorsParameters:
    """Other wires to the same engine; a new door is a line here."""

    openpi: OpenPiDoor = group(OpenPiDoor)
    lerobot: LeRobotDoor = group(LeRobotDoor)


@dataclass(frozen=True)
class TargetVerifierParameters(PolicyParameters, ManagedParameters):
    """Parameters of the node."""

    renamed = (
        ("fleet", "engine.file"),
        ("ray_address", "engine.address"),
        ("engine", "engine.name"),
        ("rule", "rule.name"),
        ("distance", "rule.within"),
        ("target", "target_name"),
        *((f"{name}.", "rule.") for name in ACCEPTANCES),
    )

    autostart: bool = parameter(
        True, "Configure and activate the node when it starts; on failure the node ends with exit code 1"
    )
    target_name: str = parameter(
        "", "Name of the policy for robots; '' for the last two parts of checkpoint", optional=True
    )
    robots: tuple[str, ...] = parameter(
        (),
        "Robots (robot_id) with services of their own, NAME/verify_draft and NAME/describe_target; '' for "
        "shared services, where all receive all replies",
    )
    engine: EngineParameters = group(EngineParameters)
    loads_targets: bool = parameter(
        False,
        "Allow ~/load_target and ~/unload_target. Anyone who reaches the node may then move robots",
    )
    assigns: bool = parameter(False, "Allow ~/assign. Anyone who reaches the node may then move robots")
    device: str = parameter(
        "",
        "Where the target computes: cpu, cuda, cuda:1, or auto (a GPU if there is one); '' for what "
        "its file has, or the CPU. For the backend torch, and targets of LeRobot",
        optional=True,
    )
    dtype: str = parameter(
        "",
        "Number type by autocast, for the same policies; '' for what the file has",
        choices=("", *DTYPES),
    )
    compile: bool = parameter(
        False,
        "Use torch.compile for the same policies; configuration may then take minutes. false for what"
        " the file has",
    )
    seed: int = parameter(0, "Seed of the target's random draws", 0, LARGEST_INTEGER)
    rule: RuleParameters = group(RuleParameters)
    temperature: float = parameter(1.0, "Temperature of the target's distributions", 1e-3, 100.0)
    added_compute_s: float = parameter(
        0.0,
        "Delay every proposal of the target by this, s, to test a slower machine",
        0.0,
        60.0,
    )
    agreement: str = parameter(
        "none",
        "What the target does with actions executed before the reply arrives. "
        + "; ".join(f"{name}: {what}" for name, what in AGREEMENTS.items()),
        choices=tuple(AGREEMENTS),
    )
    samples: int = parameter(
        SAMPLES, "Plans that agreement:=choose draws; each costs a pass of the target", 1, 1024
    )
    encoder: str = parameter(
        "",
        "Checkpoint of the encoder for images that robots send; a relative path is below the "
        "package's checkpoints/encoders; '' for none",
        optional=True,
    )
    intent: str = parameter(
        "",
        "As checkpoint, a network that acts by intents; its encoder NAME_encoder adds an intent to each "
        "reply. '' for none",
        optional=True,
    )
    metrics_port: int = parameter(0, "Port of the metrics for Prometheus; 0 for none", 0, 65535)
    metrics_host: str = parameter(
        "127.0.0.1", "Address where it listens; who reaches it may read the metrics"
    )
    cache: CacheParameters = group(CacheParameters)
    batch: BatchParameters = group(BatchParameters)
    doors: DoorsParameters = group(DoorsParameters)
    verification: VerificationParameters = group(VerificationParameters)


def check_robots(names: Sequence[str]) -> None:
    """Check robots' names that become parts of services' names.

    Raises:
        ParameterError: one has a character that is not allowed, is too long, or occurs twice.
    """
    for name in names:
        if not re.fullmatch(ROBOT_NAME, name):
            allowed = f"letters, digits and underscores, at most {NAME_LENGTH}, no digit first"
            raise ParameterError(f"robots: {name!r}, must be {allowed}")
        if names.count(name) > 1:  # each of its services would reply to every request
            raise ParameterError(f"robots: {name!r}, must not be there twice")


def compute_arguments(values: TargetVerifierParameters) -> dict[str, object]:
    """Return the parameters that are set of where and how the target computes."""
    return {name: value for name in COMPUTE if (value := getattr(values, name))}


def served_target(values: TargetVerifierParameters, away: Say) -> LoadedTarget:
    """Load a verifier's policy, and run it once.

    Args:
        values: parameters of the verifier.
        away: called with the reason if a policy behind a server cannot plan now.

    Raises:
        ParameterError: it cannot be loaded, or does not fit the other parameters; names the parameter, its
            value and what is allowed.
        ValueError: likewise.
    """
    policy = policy_from(values, away, **compute_arguments(values))
    fault = why_not_served(policy.signature)
    if fault is not None:
        raise ParameterError(f"checkpoint: {values.checkpoint!r}, {fault}")
    device = policy.device
    if values.added_compute_s:
        from adahi_ros.policies.slowed import SlowedPolicy

        policy = SlowedPolicy(policy, values.added_compute_s, time.sleep)
    intents = _encoder_of_intents(values.intent) if values.intent else None
    try:
        verifier = TargetVerifier(
            policy,
            values.rule.name,
            values.temperature,
            agreement=values.agreement,
            samples=values.samples,
            arguments=values.rule.arguments,
            intents=intents,
        )
    except (OSError, ValueError) as error:
        of_rule = str(error).partition(":")[0] in values.rule.arguments
        raise ParameterError(f"rule.{error}" if of_rule else str(error)) from error
    name = target_name(values.target_name, values.checkpoint)
    return target_by(values, name, TargetWorker(verifier), device)


def _encoder_of_intents(name: str) -> ReplyEncoder:
    """Load an encoder of intents; its code is imported only if a parameter names it.

    Raises:
        ParameterError: it cannot be loaded.
    """
    from adahi_ros.policies.intent.intent import load_encoder

    try:
        return load_encoder(named(name, CHECKPOINTS))
    except (CheckpointError, OSError) as error:
        raise ParameterError(f"intent: {name!r}, cannot be loaded: {error}") from error


def target_by(values: TargetVerifierParameters, name: str, verifier: Verifier, device: str) -> LoadedTarget:
    """Return a target, ready to be served.

    Args:
        values: parameters of the verifier.
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
    description = verifier.terms.described(name, "" if images is None else images.fingerprint)
    return LoadedTarget(engine, description, device)
