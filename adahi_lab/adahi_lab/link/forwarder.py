# SPDX-License-Identifier: Apache-2.0
"""The process that is the link: it makes the hosts, and carries frames between the robot and each server.

`adahi_lab.link.emulator` starts it. It ends when its standard input closes, which also happens when its
parent ends. The hosts and all processes on them end with it.
"""

from __future__ import annotations

import gc
import heapq
import json
import math
import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from adahi_lab.link import namespaces
from adahi_lab.link.channel import Channel
from adahi_lab.link.link_profile import AtLeastZero, LinkProfile
from adahi_ros.core.schema import checked
from adahi_ros.core.signals import with_parent

FRAME_BYTES = 2048
FOR_ALL = 1  # bit of a frame's first byte: multicast
BATCH = 16  # frames read in a row before due ones are written
MESSAGE_BYTES = 1 << 16
PRIORITY = 50
AWAKE_S = 3e-4  # before a frame is due: sleeping processes wake up late
LATENESS_S, SMOOTHING = 1e-4, 0.1
END_S = 1.0  # for processes that were already signalled that their parent is gone


class Line:
    """Carries frames one way: those to a host's address, and multicast."""

    def __init__(self, sink: int, address: str, channel: Channel) -> None:
        self.channel = channel
        self._sink = sink
        self._address = namespaces.hardware_address(address)
        self._under_way: list[tuple[float, int, bytes]] = []
        self.counts = {"packets": 0, "bytes": 0, "delivered": 0, "dropped": 0}

    @property
    def due_s(self) -> float:
        """When the next frame is to be written."""
        return self._under_way[0][0] if self._under_way else math.inf

    def take(self, frame: bytes, sent_s: float) -> None:
        """Take a sent frame if it is for this line's end."""
        if not frame[0] & FOR_ALL and frame[: len(self._address)] != self._address:
            return
        counts = self.counts
        counts["packets"] += 1
        counts["bytes"] += len(frame)
        releases = self.channel.arrivals(sent_s, len(frame))
        counts["dropped"] += not releases
        for release_s in releases:
            heapq.heappush(self._under_way, (release_s, counts["packets"], frame))

    def release(self, now_s: float) -> None:
        """Write what is due."""
        while self.due_s <= now_s:
            frame = heapq.heappop(self._under_way)[2]
            try:
                os.write(self._sink, frame)
                self.counts["delivered"] += 1
            except OSError:  # the receiver's queue is full
                self.counts["dropped"] += 1


class Way:
    """The two lines between the robot and one numbered server."""

    def __init__(
        self, profile: LinkProfile, seed: int, number: int, robot: namespaces.Host, server: namespaces.Host
    ) -> None:
        of_it = f" {number}" if number else ""
        self.profile = profile
        self.up = Line(server.wire, namespaces.server_address(number), Channel(profile, seed, f"up{of_it}"))
        self.down = Line(robot.wire, namespaces.ROBOT, Channel(profile, seed, f"down{of_it}"))
        self.lines = (self.up, self.down)


class Link:
    """The robot's lines to its servers, and the control socket that changes them."""

    def __init__(
        self,
        profiles: Sequence[LinkProfile],
        seed: int,
        robot: namespaces.Host,
        servers: Sequence[namespaces.Host],
    ) -> None:
        self._lateness_s = LATENESS_S
        self._started_s = time.monotonic()
        self._ways = [
            Way(profile, seed, number, robot, server)
            for number, (profile, server) in enumerate(zip(profiles, servers, strict=True))
        ]
        self._lines = [line for way in self._ways for line in way.lines]
        self._from = {robot.wire: [way.up for way in self._ways]}
        self._from |= {server.wire: [way.down] for server, way in zip(servers, self._ways, strict=True)}

    def clock(self) -> float:
        """Return the time since the link's start, s."""
        return time.monotonic() - self._started_s

    def _sent_s(self) -> float:
        """Return the send time of a frame that is ready now: before this process woke up for it."""
        return self.clock() - self._lateness_s

    def obey(self, command: dict[str, Any]) -> dict[str, Any]:
        """Execute a command; return the reply. It concerns the first server, or that of its number.

        Raises:
            ValueError: it cannot be done.
        """
        way = self._ways[command.get("server", 0)]
        if "change" in command:
            way.profile = way.profile.changed(command["change"])
            for line in way.lines:
                line.channel.change(way.profile)
        if "cut_s" in command:
            for line in way.lines:
                line.channel.cut(self._sent_s() + checked(AtLeastZero, command["cut_s"], "cut_s"))
        return {"up": way.up.counts, "down": way.down.counts, "profile": way.profile.values()}

    def _read(self, source: int) -> None:
        """Read the frames sent by a host."""
        for _ in range(BATCH):
            try:
                frame = os.read(source, FRAME_BYTES)
            except OSError:  # no more, or the interface is down
                return
            for line in self._from[source]:
                line.take(frame, self._sent_s())

    def carry(self, listener: socket.socket) -> None:
        """Carry frames and reply to commands until the standard input ends."""
        handlers: dict[int, Callable[[], object]] = {
            listener.fileno(): lambda: accept(),
            sys.stdin.fileno(): leave,
            **{source: partial(self._read, source) for source in self._from},
        }

        def reply(connection: socket.socket) -> None:
            with suppress(OSError):
                message = connection.recv(MESSAGE_BYTES)
                if message:
                    connection.send(self._reply(message))
                    return
            del handlers[connection.fileno()]
            connection.close()

        def accept() -> None:
            connection, _ = listener.accept()
            connection.setblocking(False)
            handlers[connection.fileno()] = lambda: reply(connection)

        while True:
            for descriptor in self._wait(handlers):
                handlers[descriptor]()
            for line in self._lines:
                line.release(self.clock())

    def _wait(self, descriptors: Iterable[int]) -> list[int]:
        """Wait until hosts are readable or a frame is almost due; return the readable ones."""
        wake_s = min(line.due_s for line in self._lines) - AWAKE_S
        wait_s = max(0.0, wake_s - self.clock())
        ready = select.select(descriptors, (), (), None if wait_s == math.inf else wait_s)[0]
        if wait_s and not ready:
            late_s = min(self.clock() - wake_s, AWAKE_S)
            self._lateness_s += SMOOTHING * (late_s - self._lateness_s)
        return ready

    def _reply(self, message: bytes) -> bytes:
        try:
            return json.dumps(self.obey(json.loads(message))).encode()
        except (ValueError, TypeError) as error:
            return json.dumps({"error": str(error)}).encode()


def take_priority() -> bool:
    """Request real-time priority for this process; return whether that is allowed."""
    gc.freeze()
    gc.disable()  # nothing here has cycles
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except PermissionError:
        return False
    return True


def leave(number: int = 0, frame: FrameType | None = None) -> None:
    """End this process once: SIGTERM and the end of the standard input may both occur."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit()


def end_inhabitants(*hosts: namespaces.Host) -> None:
    """End all processes on the hosts: the parent may no longer exist."""
    networks = [os.fstat(host.net).st_ino for host in hosts]
    ours = {os.getpid(), os.getppid()}

    def inhabitants() -> set[int]:
        return set().union(*map(namespaces.processes_in, networks)) - ours

    if not namespaces.gone(inhabitants, END_S):
        namespaces.end_all(inhabitants)


def main() -> None:
    """Run a link: `forwarder SOCKET PROFILES SEED`, one JSON profile per server; print JSON when it is up."""
    path, seed = Path(sys.argv[1]), int(sys.argv[3])
    profiles = [checked(LinkProfile, values) for values in json.loads(sys.argv[2])]
    signal.signal(signal.SIGTERM, leave)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(path))
            listener.listen()
            before = os.readlink("/proc/self/ns/user")
            robot, *servers = namespaces.make_hosts(len(profiles))
            with_parent(signal.SIGTERM)
            real_time = take_priority()
            link = Link(profiles, seed, robot, servers)
            ready = {
                "robot": vars(robot),
                "servers": [vars(server) for server in servers],
                "own_user_namespace": os.readlink("/proc/self/ns/user") != before,
                "real_time": real_time,
            }
            print(json.dumps(ready), flush=True)
            try:
                link.carry(listener)
            finally:
                end_inhabitants(robot, *servers)
    except namespaces.LinkUnavailable as refused:
        print(json.dumps({"error": str(refused)}), flush=True)
    finally:
        shutil.rmtree(path.parent, ignore_errors=True)  # the parent may have been killed


if __name__ == "__main__":
    main()
