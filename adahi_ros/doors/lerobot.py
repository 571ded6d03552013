# SPDX-License-Identifier: Apache-2.0
"""The arguments of the door for LeRobot's remote inference; the door itself is `lerobot_server`."""

from __future__ import annotations

from dataclasses import dataclass

from adahi_ros.core.registry import argument, at_place
from adahi_ros.doors.interface import CONNECTIONS_MOST, Door, OpenDoor


@dataclass(frozen=True)
class LeRobotDoor(Door):
    """The door's arguments."""

    port: int = argument(0, "Port for LeRobot's clients; 0 for none", 0, 65535)
    address: str = argument("127.0.0.1", "Address; one of the network needs zenoh_file")
    zenoh_file: str = argument("", "zenoh's file with TLS and users", optional=True)
    names_file: str = argument("", "YAML file of LeRobot's names", optional=True)
    sessions: int = argument(32, "Sessions at once", 1, CONNECTIONS_MOST)

    def open(self) -> OpenDoor:
        """See `Door`."""
        opened: OpenDoor = at_place("adahi_ros.doors.lerobot_server:opened")(self)
        return opened
