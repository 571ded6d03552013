# SPDX-License-Identifier: Apache-2.0
"""What a fleet sends, and how its verifier serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from adahi_ros.core.registry import argument


@dataclass(frozen=True)
class FleetLoad:
    """A fleet's requests, and the verifier that serves them; the options of `adahi lab bench fleet`.

    Each robot executes its plan, and requests the next. `seed` is of what robots observe.
    """

    robots: int = argument(64, "Number of robots, all in one process.", 1, 10_000)
    rate_hz: Annotated[float, "--rate"] = argument(20.0, "Of their control, Hz.", 0.1, 1000.0)
    seconds: float = argument(20.0, "How long.", 1.0)
    engine: str = argument("one_by_one,batched", "Separated by commas: batched, one_by_one, ray, openpi.")
    target: str = argument(
        "kitchen/plans/target", "DIRECTORY/NAME of a checkpoint, or a YAML file of a policy elsewhere."
    )
    every: int = argument(
        0, "Control steps of a plan before the next is requested. Default: half of the plan.", 0
    )
    replicas: int = argument(1, "Replicas of the target on this machine, with the engine ray.", 1, 64)
    kill: str = argument("", "With the engine ray: part killed under load: replica, head or front.")
    at_s: Annotated[float, "--at"] = argument(5.0, "Seconds until that part is killed.", 0.0)
    seed: int = argument(0, "Seed of every random draw.", 0)

    @property
    def engines(self) -> list[str]:
        """The names of the engines, in order."""
        return self.engine.split(",")
