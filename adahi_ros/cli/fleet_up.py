# SPDX-License-Identifier: Apache-2.0
"""`adahi serve fleet`: the verifier of a fleet, its policies on Ray Serve."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from typer import Argument

from adahi_ros.cli.terminal import say
from adahi_ros.core.assets import asset

LOOK_S = 0.1


def up(
    file: Annotated[
        Path,
        Argument(help="The fleet's YAML file, here or in the package's config/fleets."),
    ],
) -> None:
    """Start a verifier and the replicas of its policies on Ray Serve, until Ctrl-C.

    Parts that die are restarted. All of them stop with this command.
    """
    from adahi_ros.nodes.launching.fleet import fleet_up

    path = _found(file)
    with fleet_up(path, {}, say) as fleet:
        fleet.await_serving()
        fleet.restart_killed()
        say("serves robots; Ctrl-C stops it")
        while True:
            fleet.restart_killed()
            time.sleep(LOOK_S)


def _found(file: Path) -> Path:
    """Return the file here, or else the package's.

    Raises:
        ValueError: neither exists.
    """
    shipped = asset("config/fleets")
    for path in (file, shipped / file):
        if path.is_file():
            return path
    names = ", ".join(sorted(each.name for each in shipped.glob("*.yaml")))
    raise ValueError(f"{file}: neither here nor in {shipped}, which has {names}")
