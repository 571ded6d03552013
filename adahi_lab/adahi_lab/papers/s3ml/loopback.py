# SPDX-License-Identifier: Apache-2.0
"""A domain on the loopback interface alone, by UDP, and its visible traffic; needs root.

For `adahi_lab.papers.s3ml.table` and `adahi_lab.papers.s3ml.cost_table`.
"""

from __future__ import annotations

import os
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from adahi_lab.nodes.domain import exclusive_domain

OUTGOING = 4  # of a packet: on the loopback interface each is seen twice
LOOPBACK = """\
<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles"><profiles>
  <transport_descriptors><transport_descriptor>
    <transport_id>loopback</transport_id><type>UDPv4</type>
    <interfaceWhiteList><address>127.0.0.1</address></interfaceWhiteList>
  </transport_descriptor></transport_descriptors>
  <participant profile_name="loopback" is_default_profile="true"><rtps>
    <userTransports><transport_id>loopback</transport_id></userTransports>
    <useBuiltinTransports>false</useBuiltinTransports>
  </rtps></participant>
</profiles></dds>
"""


@dataclass
class Wire:
    """What goes over the loopback interface to a domain's ports. Use `watched`.

    Attributes:
        ports: of the domain.
        mark: bytes to look for.
        packets: so far.
        payload: bytes of UDP's so far.
        marked: packets so far with the mark.
    """

    ports: range
    mark: bytes
    packets: int = 0
    payload: int = 0
    marked: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def see_packets(self) -> None:
        """Count until it is over."""
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003)) as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
            raw.bind(("lo", 0))
            raw.settimeout(0.2)
            while not self.over.is_set():
                try:
                    frame, (_, _, direction, *_) = raw.recvfrom(1 << 17)
                except TimeoutError:
                    continue
                if direction == OUTGOING and frame[23:24] == bytes([socket.IPPROTO_UDP]):
                    self._count(frame)

    def _count(self, frame: bytes) -> None:
        (port,) = struct.unpack_from("!H", frame, 36)
        if port in self.ports:
            self.packets += 1
            self.payload += len(frame) - 42  # Ethernet, IPv4, UDP
            self.marked += self.mark in frame


@contextmanager
def watched(domain: int, mark: bytes) -> Iterator[Wire]:
    """Watch what goes to a domain's ports (RTPS 2.5, 9.6.2), and look for these bytes."""
    wire = Wire(range(7400 + 250 * domain, 7400 + 250 * (domain + 1)), mark)
    thread = threading.Thread(target=wire.see_packets)
    thread.start()
    try:
        yield wire
    finally:
        wire.over.set()
        thread.join()


@contextmanager
def stage() -> Iterator[tuple[int, Path]]:
    """Yield a domain and a folder; what is started from here is on the loopback interface alone."""
    with ExitStack() as stack:
        domain = stack.enter_context(exclusive_domain())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        profile = folder / "loopback.xml"
        profile.write_text(LOOPBACK)
        # With LOCALHOST rmw_fastrtps would add shared memory, where nothing is to be seen.
        os.environ.update(
            ROS_SECURITY_ENABLE="false", ROS_DOMAIN_ID=str(domain), ROS_AUTOMATIC_DISCOVERY_RANGE="SUBNET"
        )
        os.environ.update(ROS_STATIC_PEERS="127.0.0.1", FASTRTPS_DEFAULT_PROFILES_FILE=str(profile))
        yield domain, folder
