# SPDX-License-Identifier: Apache-2.0
"""`adahi keys`: keys and permissions for a server and its robots."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from adahi_ros.cli.terminal import say


def secure(
    keystore: Annotated[Path, Argument(help="Folder, created if missing; it holds private keys.")],
    robots: Annotated[
        str, Option(help="Names of robots, separated by commas; each is the robot's namespace.")
    ] = "",
    revoke: Annotated[
        str, Option(help="Robots with lost keys, or server, separated by commas: revoked.")
    ] = "",
    policies: Annotated[Path | None, Option(help="Folder of policy files. Default: config/sros2.")] = None,
) -> None:
    """Create SROS 2 keys for a server and its robots with 'ros2 security': one folder per machine."""
    from adahi_ros.core.assets import asset
    from adahi_ros.security.keystores import MACHINES, Keystore

    made = Keystore(keystore, policies or asset("config/sros2"))
    lost = [name for name in revoke.split(",") if name]
    if lost:
        made.revoke(lost)
    machines = made.make([name for name in robots.split(",") if name])
    for name, enclaves in machines.items():
        say(f"{keystore / MACHINES / name}: {', '.join(enclaves)}")
    say(f"for ROS_DOMAIN_ID={os.environ.get('ROS_DOMAIN_ID', '0')} only")
    if lost:
        say(f"accepted no more: {', '.join(lost)}; give each machine its new folder, and restart its nodes")
