# SPDX-License-Identifier: Apache-2.0
"""Emulates a link between a robot and a server, two network namespaces of this machine.

A robot may have a link to each of several servers.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adahi_lab.link.link_profile import LinkProfile
from adahi_lab.link.namespaces import ROBOT, LinkUnavailable, processes_in, server_address

logger = logging.getLogger(__name__)
CONTROL = "control"
END_S = 15.0  # the link's process may have to end other processes
REPLY_S = 5.0
MESSAGE_BYTES = 1 << 16
# Entering a mount namespace changes to its root; the second shell restores the working directory.
ENTER = """exec nsenter {namespaces} -- sh -c 'cd "$0" && exec "$@"' "$PWD" "$@"
"""


@dataclass(frozen=True)
class LinkEnd:
    """A host at one end of the link.

    Attributes:
        address: its IPv4 address, which only the two ends know.
        net: file of its network namespace, in /proc of the link's process.
        network: inode of that namespace.
        prefix: put it before a command to run that there, in the same process.
    """

    address: str
    net: Path
    network: int
    prefix: tuple[str, ...]

    def processes(self) -> set[int]:
        """Return the ids of the processes that run there, without the link's process."""
        return processes_in(self.network) - {int(self.net.parts[2])}


@dataclass(frozen=True)
class Counts:
    """Traffic of one direction, in Ethernet frames.

    Attributes:
        packets: sent.
        bytes: in them.
        delivered: packets that arrived, with duplicates.
        dropped: packets that did not arrive.
    """

    packets: int
    bytes: int
    delivered: int
    dropped: int


@dataclass(frozen=True)
class Traffic:
    """Traffic of the link: `up` from robot to server, `down` from server to robot."""

    up: Counts
    down: Counts


class EmulatedLink:
    """A link that is up.

    Attributes:
        robot: the end with the robot.
        server: the end with the server.
        control: path of the socket that takes commands (`command_link`).
        real_time: whether the link's process has real-time priority; without it, delays vary more.

    Args:
        robot, server, control, real_time: as above.
        number: of the server, where the robot has a link to each of several.
    """

    def __init__(
        self, robot: LinkEnd, server: LinkEnd, control: Path, real_time: bool, number: int = 0
    ) -> None:
        self.robot = robot
        self.server = server
        self.control = control
        self.real_time = real_time
        self._server = {"server": number}

    def change(self, **fields: object) -> None:
        """Replace fields of the profile from now on; fields of a state take precedence.

        Raises:
            ValueError: as `LinkProfile`.
        """
        command_link(self.control, {**self._server, "change": fields})

    def cut(self, for_s: float) -> None:
        """Cut the link for this many seconds; 0 ends a cut."""
        command_link(self.control, {**self._server, "cut_s": for_s})

    def traffic(self) -> Traffic:
        """Return its traffic so far."""
        reply = command_link(self.control, self._server)
        return Traffic(Counts(**reply["up"]), Counts(**reply["down"]))


def command_link(control: Path, command: Mapping[str, object]) -> dict[str, Any]:
    """Send a command to a running link; return its traffic and its profile.

    Args:
        control: path of its socket.
        command: `change`, a mapping of the profile's fields; `cut_s`, the duration of a cut; both or none.
            With several servers, `server` is the number of the link's server, from 0.

    Raises:
        ValueError: a value is not allowed.
        LinkUnavailable: there is no such link.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(REPLY_S)
            connection.connect(str(control))
            connection.send(json.dumps(command).encode())
            received = connection.recv(MESSAGE_BYTES)
    except OSError as error:
        raise LinkUnavailable(f"{control}: no link replies there ({error})") from None
    if not received:
        raise LinkUnavailable(f"{control}: the link has ended")
    reply: dict[str, Any] = json.loads(received)
    if "error" in reply:
        raise ValueError(reply["error"])
    return reply


def on_cores(cores: Collection[int] | None) -> list[str]:
    """Return the prefix that runs a command on these cores of the machine; empty for None.

    Raises:
        LinkUnavailable: the program taskset is missing.
    """
    if cores is None:
        return []
    if shutil.which("taskset") is None:
        raise LinkUnavailable("ends with cores of their own need the program taskset (util-linux)")
    return ["taskset", "--cpu-list", ",".join(map(str, sorted(cores)))]


@contextmanager
def emulated_link(
    profile: LinkProfile, seed: int = 0, cores: Collection[int] | None = None
) -> Iterator[EmulatedLink]:
    """Yield a running link. It ends with the block or with this process.

    All processes at its ends are ended with it.

    Args:
        profile: of the link.
        seed: of every draw.
        cores: of this machine, that the link's process may use; None for all.

    Raises:
        LinkUnavailable: this machine refuses; names what is needed.
    """
    with emulated_links([profile], seed, cores) as (link,):
        yield link


@contextmanager
def emulated_links(
    profiles: Sequence[LinkProfile], seed: int = 0, cores: Collection[int] | None = None
) -> Iterator[list[EmulatedLink]]:
    """Yield links from one robot to several isolated servers; otherwise as `emulated_link`.

    Args:
        profiles: of each link; at least one.
        seed: of every draw.
        cores: of this machine, that the links' process may use; None for all.

    Raises:
        LinkUnavailable: this machine refuses; names what is needed.
    """
    interpreter = [*on_cores(cores), sys.executable]
    folder = Path(tempfile.mkdtemp(prefix="adahi_link_"))
    arguments = [str(folder / CONTROL), json.dumps([each.values() for each in profiles]), str(seed)]
    process = subprocess.Popen(
        [*interpreter, "-m", "adahi_lab.link.forwarder", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a process with threads cannot change namespaces
        start_new_session=True,  # Ctrl-C must not reach it
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield _links(process.stdout.readline(), process.pid, folder)
    finally:
        process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)


def _links(message: bytes, pid: int, folder: Path) -> list[EmulatedLink]:
    """Parse the message of the links' process that they are up."""
    if not message:
        raise LinkUnavailable("the link's process has ended; what it printed says why")
    ready = json.loads(message)
    if "error" in ready:
        raise LinkUnavailable(ready["error"])
    if not ready["real_time"]:
        logger.warning("no real-time priority (SCHED_FIFO): the link's delays spread more")
    user = [f"--user=/proc/{pid}/ns/user", "--preserve-credentials"] if ready["own_user_namespace"] else []

    def end(name: str, address: str, host: Mapping[str, int]) -> LinkEnd:
        net, mount = (Path(f"/proc/{pid}/fd/{host[kind]}") for kind in ("net", "mount"))
        enter = folder / name
        enter.write_text(ENTER.format(namespaces=" ".join([*user, f"--net={net}", f"--mount={mount}"])))
        return LinkEnd(address, net, os.stat(net).st_ino, ("sh", str(enter)))

    robot = end("robot", ROBOT, ready["robot"])
    return [
        EmulatedLink(
            robot,
            end(f"server_{number}", server_address(number), host),
            folder / CONTROL,
            ready["real_time"],
            number,
        )
        for number, host in enumerate(ready["servers"])
    ]


@functools.cache
def unavailable() -> str | None:
    """Return why no link can be emulated on this machine, or None."""
    probe = [sys.executable, "-m", "adahi_lab.link.namespaces"]
    ended = subprocess.run(probe, capture_output=True, text=True, check=False)
    return ended.stdout.strip() or ended.stderr.strip() or None
