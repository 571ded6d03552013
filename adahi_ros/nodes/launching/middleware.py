# SPDX-License-Identifier: Apache-2.0
"""Settings of the middleware for a wireless link, as environment variables of the nodes.

Each file of config/dds belongs to one middleware and is used where that one runs. No other one is assumed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from adahi_ros.core.schema import shown

WIRELESS, DEFAULT = "wireless", "default"
ZENOH = "rmw_zenoh"
ROUTER_FILE = "zenoh_router_wireless.txt"
ROUTER_PORT = 7447  # of rmw_zenoh's router, by default

PROFILES: Mapping[str, Mapping[str, tuple[str, Callable[[Path], str]]]] = {
    "rmw_fastrtps": {
        "FASTRTPS_DEFAULT_PROFILES_FILE": ("fastdds_wireless.xml", str),
        "FASTDDS_DEFAULT_PROFILES_FILE": ("fastdds_3_wireless.xml", str),  # read since Fast DDS 3
    },
    "rmw_cyclonedds": {"CYCLONEDDS_URI": ("cyclonedds_wireless.xml", Path.as_uri)},
}
"""By the start of a middleware's name: its variables, each with a shipped file and how its path is put."""


def middleware_environment(rmw: str, dds: str, peers: str, folder: Path) -> tuple[dict[str, str], list[str]]:
    """Return the environment variables of nodes, and remarks for the user.

    Args:
        rmw: the value of RMW_IMPLEMENTATION. '' is the distribution's default: all variables are set then,
            because each middleware reads only its own.
        dds: `DEFAULT`, `WIRELESS`, or the path of a file of this middleware.
        peers: addresses of hosts at the other end, separated by ;.
        folder: with the shipped files.

    Raises:
        ValueError: `dds` is neither a known word nor a file.
    """
    file = None if dds in (DEFAULT, WIRELESS) else Path(os.path.expanduser(dds)).absolute()
    if file is not None and not os.path.isfile(file):
        raise ValueError(f"dds: {shown(dds)}; allowed are default, wireless, and the path of an XML file")
    if rmw.startswith(ZENOH):
        return _of_zenoh(rmw, dds, peers, file)
    variables: dict[str, str] = {}
    remarks: list[str] = []
    ours = [values for name, values in PROFILES.items() if rmw.startswith(name) or not rmw]
    if dds != DEFAULT:
        for values in ours:
            variables |= {name: form(file or folder / shipped) for name, (shipped, form) in values.items()}
        if not ours:
            known = ", ".join(PROFILES)
            remarks.append(f"dds: {dds!r} has no effect with {rmw}; there are profiles for {known}, {ZENOH}")
    if peers:
        variables["ROS_STATIC_PEERS"] = peers
        # Not LOCALHOST: with it rmw_fastrtps adds transports to the profile's, and sends everything twice.
        variables["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "SUBNET"
    return variables, remarks


def _of_zenoh(rmw: str, dds: str, peers: str, file: Path | None) -> tuple[dict[str, str], list[str]]:
    if file is not None:
        return {"ZENOH_SESSION_CONFIG_URI": str(file)}, []
    if dds == DEFAULT and not peers:
        return {}, []
    router = "ros2 launch adahi_ros zenoh_router.launch.py peers:=ADDRESS"
    return {}, [f"dds, peers: no effect on nodes with {rmw}; its router crosses the link: {router}"]


def router_override(peers: str, folder: Path, before: str = "") -> str:
    """Return the value of ZENOH_CONFIG_OVERRIDE for the router of rmw_zenoh.

    Args:
        peers: addresses of hosts with the routers that this one connects to, separated by ;.
        folder: with the shipped file.
        before: the variable's present value. It comes last, so it wins.
    """
    lines: Sequence[str] = (folder / ROUTER_FILE).read_text().splitlines()
    settings = [line for line in lines if line and not line.startswith("#")]
    endpoints = [f"tcp/{host.strip()}:{ROUTER_PORT}" for host in peers.split(";") if host.strip()]
    if endpoints:
        settings.append(f"connect/endpoints={json.dumps(endpoints)}")
    return ";".join([*settings, *([before] if before else [])])
