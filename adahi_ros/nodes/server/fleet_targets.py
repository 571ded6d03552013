# SPDX-License-Identifier: Apache-2.0
"""The targets of a verifier with policies on Ray Serve, from the file of its fleet."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from adahi_ros.core.assets import asset
from adahi_ros.core.registry import argument
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.verifier_messages import check_signature_bounds
from adahi_ros.nodes.server.target_verifier_parameters import (
    EngineSource,
    Say,
    TargetVerifierParameters,
    target_by,
)
from adahi_ros.protocol.description import why_not_served
from adahi_ros.server.ray.fleet_file import read_fleet
from adahi_ros.server.ray.ray_policies import RayPolicies, RayVerifier
from adahi_ros.server.service import LoadedTarget

FLEETS = "config/fleets"


@dataclass(eq=False)
class FleetTargets(EngineSource):
    """Targets on replicas of a fleet on Ray Serve."""

    file: str = argument(
        "",
        "File of the fleet; a relative path is below the package's config/fleets. It replaces the "
        "parameters of the policies here",
        optional=True,
    )
    address: str = argument(
        "", "Address of Ray, HOST:PORT; '' for the address in the fleet's file, or auto", optional=True
    )

    loads_targets = False

    _policies: RayPolicies | None = field(default=None, init=False)

    def open(self, values: TargetVerifierParameters, warn: Say, away: Say) -> list[LoadedTarget]:
        """See `EngineSource`; deploys the policies if necessary."""
        if not self.file:
            raise ParameterError("engine.file: '', must name the file of a fleet for engine.name:=ray")
        try:
            path = Path(self.file).expanduser()
            fleet = read_fleet(path if path.is_absolute() else asset(FLEETS) / path)
            policies = RayPolicies(fleet.named, self.address or fleet.ray.address or "auto", warn)
        except (ImportError, OSError, ValueError) as error:
            raise ParameterError(f"engine.file: {self.file!r}, {error}") from error
        self._policies = policies
        try:
            named = zip(fleet.named, policies.open(), strict=True)
            return [_target(values, each.name, verifier) for each, verifier in named]
        except ValueError as error:
            raise ParameterError(f"engine.file: {self.file!r}, {error}") from error

    def close(self) -> None:
        """See `EngineSource`; the policies stay deployed."""
        if self._policies is not None:
            self._policies.close()


def _target(values: TargetVerifierParameters, name: str, verifier: RayVerifier) -> LoadedTarget:
    check_signature_bounds(verifier.terms.signature)
    fault = why_not_served(verifier.terms.signature)
    if fault is not None:
        raise ParameterError(f"policies.{name}: {fault}")
    return target_by(values, name, verifier, verifier.device)
