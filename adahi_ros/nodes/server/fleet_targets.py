# SPDX-License-Identifier: Apache-2.0
"""The targets of a verifier with policies on Ray Serve, from the file of its fleet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from adahi_ros.core.assets import asset
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.verifier_messages import check_signature_bounds
from adahi_ros.nodes.server.target_verifier_parameters import TargetVerifierParameters, target_by
from adahi_ros.protocol.description import why_not_served
from adahi_ros.server.ray.fleet_file import read_fleet
from adahi_ros.server.ray.ray_policies import RayPolicies, RayVerifier
from adahi_ros.server.service import LoadedTarget

FLEETS = "config/fleets"


def fleet_targets(
    values: TargetVerifierParameters, say: Callable[[str], None]
) -> tuple[RayPolicies, list[LoadedTarget]]:
    """Deploy a fleet's policies if necessary; return them, which the caller closes, and their targets.

    Args:
        values: parameters of the verifier.
        say: called with log texts on Ray and replicas, in any thread.

    Raises:
        ParameterError: the file cannot be used, there is no Ray, or a policy cannot be loaded.
    """
    if not values.fleet:
        raise ParameterError("fleet: '', must name the file of a fleet for engine:=ray")
    if values.idle_unload_s:
        raise ParameterError(f"idle_unload_s: {values.idle_unload_s:g}, must be 0 with engine:=ray")
    try:
        path = Path(values.fleet).expanduser()
        fleet = read_fleet(path if path.is_absolute() else asset(FLEETS) / path)
        policies = RayPolicies(fleet.named, values.ray_address or fleet.ray.address or "auto", say)
    except (ImportError, OSError, ValueError) as error:
        raise ParameterError(f"fleet: {values.fleet!r}, {error}") from error
    try:
        named = zip(fleet.named, policies.open(), strict=True)
        return policies, [_target(values, each.name, verifier) for each, verifier in named]
    except ValueError as error:
        policies.close()
        raise ParameterError(f"fleet: {values.fleet!r}, {error}") from error


def _target(values: TargetVerifierParameters, name: str, verifier: RayVerifier) -> LoadedTarget:
    check_signature_bounds(verifier.terms.signature)
    fault = why_not_served(verifier.terms.signature)
    if fault is not None:
        raise ParameterError(f"policies.{name}: {fault}")
    return target_by(values, name, verifier, verifier.device)
