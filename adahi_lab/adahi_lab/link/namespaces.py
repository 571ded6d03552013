# SPDX-License-Identifier: Apache-2.0
"""Hosts on this machine: network and mount namespaces, made by system calls, that end with their process.

As a program, it makes two hosts, or prints why that is impossible here. It also finds and ends the processes
in a network.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

END_S, LOOK_S = 5.0, 0.02

Find = Callable[[], Collection[int]]


def processes_in(network: int) -> set[int]:
    """Return the ids of the processes that run in a network namespace, given by its inode."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.stat(folder / "ns/net").st_ino == network:
                found.add(int(folder.name))
        except OSError:  # has ended, or belongs to another user
            continue
    return found


def gone(find: Find, within_s: float) -> bool:
    """Wait until no such process is left; return whether that happened in time."""
    deadline_s = time.monotonic() + within_s
    while find():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(LOOK_S)
    return True


def end_all(find: Find) -> None:
    """End processes with SIGTERM; kill the remaining ones and new ones."""
    _send(find(), signal.SIGTERM)
    if not gone(find, END_S):

        def killed() -> Collection[int]:
            _send(found := find(), signal.SIGKILL)
            return found

        gone(killed, END_S)


def _send(processes: Collection[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


NETWORK = "10.77.0"
ROBOT, SERVER = f"{NETWORK}.1", f"{NETWORK}.2"
INTERFACE, WIRE = "link0", "wire0"

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 2, 4, 0x4000, 0x40000
_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 2, 0x1000
_SIOCADDRT, _SIOCSARP, _SIOCETHTOOL = 0x890B, 0x8955, 0x8946
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK = 0x8913, 0x8914, 0x8916, 0x891C
_SIOCSIFHWADDR = 0x8924
_IFF_UP, _RTF_UP, _ARP_PERMANENT, _ARPHRD_ETHER = 1, 1, 0x06, 1
_ETHTOOL_OFF = (0x17, 0x1F, 0x25)  # transmit checksum, TCP segmentation, generic segmentation
_PACKET_IGNORE_OUTGOING, _ETH_P_ALL, _SOL_PACKET = 23, 0x0003, 263
_LIBC = ctypes.CDLL(None, use_errno=True)


class LinkUnavailable(RuntimeError):  # noqa: N818
    """This machine refuses what an emulated link needs; the message names it."""


@dataclass(frozen=True)
class Host:
    """File descriptors that hold a host: its namespaces, and the other end of its network interface.

    Attributes:
        net: its network namespace.
        mount: its mount namespace.
        wire: reading gives a frame sent by the host, writing one delivers it there.
    """

    net: int
    mount: int
    wire: int


def _call(name: str, *arguments: object) -> None:
    if getattr(_LIBC, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def server_address(number: int) -> str:
    """Return the address of a server; the first has number 0."""
    return f"{NETWORK}.{2 + number}"


def make_hosts(servers: int = 1) -> list[Host]:
    """Make the robot and servers; the calling process stays in the last one's namespaces.

    Raises:
        LinkUnavailable: the machine refuses.
    """
    if sys.platform != "linux":
        raise LinkUnavailable("an emulated link needs Linux")
    if shutil.which("nsenter") is None:
        raise LinkUnavailable("an emulated link needs the program nsenter (util-linux)")
    try:
        addresses = [server_address(number) for number in range(servers)]
        return [_host(ROBOT, addresses), *(_host(address, [ROBOT]) for address in addresses)]
    except OSError as error:
        raise LinkUnavailable(
            f"an emulated link needs network namespaces: root (CAP_NET_ADMIN and CAP_SYS_ADMIN), "
            f"or user namespaces for everyone; here: {error}"
        ) from None


def _host(address: str, peers: Sequence[str]) -> Host:
    try:
        _call("unshare", CLONE_NEWNET | CLONE_NEWNS)
    except PermissionError:
        _become_root_of_user_namespace()
        _call("unshare", CLONE_NEWNET | CLONE_NEWNS)
    _call("mount", None, b"/", None, _MS_REC | _MS_PRIVATE, None)
    # Separate shared memory: otherwise DDS would use it between the two.
    _call("mount", b"tmpfs", b"/dev/shm", b"tmpfs", _MS_NOSUID | _MS_NODEV, b"mode=1777")
    for which in ("all", "default"):  # count only intended traffic
        with suppress(OSError):
            Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6").write_text("1")
    wire = _wire()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        _configure(control, address, peers)
    return Host(os.open("/proc/self/ns/net", os.O_RDONLY), os.open("/proc/self/ns/mnt", os.O_RDONLY), wire)


def _become_root_of_user_namespace() -> None:
    user, group = os.geteuid(), os.getegid()
    _call("unshare", CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def _wire() -> int:
    """Make the network interface; return the file descriptor of its other end."""
    try:
        wire = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENODEV, errno.ENXIO):
            raise
        return _wire_of_veth()
    fcntl.ioctl(wire, _TUNSETIFF, _request(INTERFACE, struct.pack("H", _IFF_TAP | _IFF_NO_PI)))
    return wire


def _wire_of_veth() -> int:
    """Make a pair of interfaces without /dev/net/tun; a raw socket reads and writes one of them."""
    if shutil.which("ip") is None:
        raise LinkUnavailable("an emulated link needs /dev/net/tun, or the program ip (iproute2)")
    made = subprocess.run(
        ["ip", "link", "add", INTERFACE, "type", "veth", "peer", "name", WIRE],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise LinkUnavailable(f"an emulated link needs /dev/net/tun or veth; here: {made.stderr.strip()}")
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(_ETH_P_ALL))
    _up(raw, WIRE)
    raw.bind((WIRE, _ETH_P_ALL))
    raw.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    for command in _ETHTOOL_OFF:  # frames must be complete and no longer than the MTU
        value = ctypes.create_string_buffer(struct.pack("II", command, 0))
        fcntl.ioctl(raw, _SIOCETHTOOL, _request(INTERFACE, struct.pack("P", ctypes.addressof(value))))
    return raw.detach()


def _configure(control: socket.socket, address: str, peers: Sequence[str]) -> None:
    """Give the interface its address and routes, and bring it up.

    The peers' hardware addresses are fixed entries: ARP would cost a first round trip, or seconds if the
    request is lost.
    """
    fcntl.ioctl(control, _SIOCSIFHWADDR, _request(INTERFACE, _hardware(address)))
    fcntl.ioctl(control, _SIOCSIFADDR, _request(INTERFACE, _internet(address)))
    fcntl.ioctl(control, _SIOCSIFNETMASK, _request(INTERFACE, _internet("255.255.255.0")))
    _up(control, "lo")
    _up(control, INTERFACE)
    name = INTERFACE.encode()
    for peer in peers:
        neighbour = struct.pack("16s16si16x16s", _internet(peer), _hardware(peer), _ARP_PERMANENT, name)
        fcntl.ioctl(control, _SIOCSARP, neighbour)
    device = ctypes.create_string_buffer(name)
    multicast, mask = _internet("224.0.0.0"), _internet("240.0.0.0")
    route = struct.pack(  # struct rtentry
        "@L16s16s16sHhLPhPLLH",
        *(0, multicast, _internet("0.0.0.0"), mask, _RTF_UP, 0, 0, 0, 0),
        *(ctypes.addressof(device), 0, 0, 0),
    )
    fcntl.ioctl(control, _SIOCADDRT, route)


def _up(control: socket.socket, name: str) -> None:
    reply = fcntl.ioctl(control, _SIOCGIFFLAGS, _request(name, b""))
    (flags,) = struct.unpack_from("H", reply, 16)
    fcntl.ioctl(control, _SIOCSIFFLAGS, _request(name, struct.pack("H", flags | _IFF_UP)))


def _request(name: str, value: bytes) -> bytes:
    """Return a struct ifreq."""
    return struct.pack("16s24s", name.encode(), value)


def _internet(address: str) -> bytes:
    """Return a struct sockaddr_in."""
    return struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))


def _hardware(address: str) -> bytes:
    """Return a struct sockaddr of the hardware address that goes with an address."""
    return struct.pack("H6s8x", _ARPHRD_ETHER, hardware_address(address))


def hardware_address(address: str) -> bytes:
    """Return the hardware address that goes with an address."""
    return b"\x02\x00" + socket.inet_aton(address)


if __name__ == "__main__":
    try:
        make_hosts()
    except LinkUnavailable as refused:
        print(refused)
