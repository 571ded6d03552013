# SPDX-License-Identifier: Apache-2.0
"""The arguments of the door for openpi's clients; the door itself is `openpi_server`."""

from __future__ import annotations

from dataclasses import dataclass

from adahi_ros.core.registry import argument, at_place
from adahi_ros.doors.interface import CONNECTIONS_MOST, Door, OpenDoor


@dataclass(frozen=True)
class OpenPiDoor(Door):
    """The door's arguments."""

    port: int = argument(0, "Port for clients of openpi's protocol; 0 for none", 0, 65535)
    address: str = argument("127.0.0.1", "Address to listen at; one of the network needs tokens_file")
    tokens_file: str = argument("", "File of lines NAME TOKEN; '' for any client", optional=True)
    certificate: str = argument("", "PEM file of certificates; '' for no TLS", optional=True)
    key: str = argument("", "PEM file of the certificate's key", optional=True)
    keys_file: str = argument("", "YAML file of clients' keys; '' for the target's names", optional=True)
    connections: int = argument(32, "Connections of one client", 1, CONNECTIONS_MOST)

    def open(self) -> OpenDoor:
        """See `Door`."""
        opened: OpenDoor = at_place("adahi_ros.doors.openpi_server:opened")(self)
        return opened
