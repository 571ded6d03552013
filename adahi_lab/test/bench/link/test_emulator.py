"""Real packets across an emulated link, and what is left of it afterwards."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from adahi_lab.link.emulator import (
    EmulatedLink,
    LinkEnd,
    command_link,
    emulated_link,
    emulated_links,
    unavailable,
)
from adahi_lab.link.link_profile import LinkProfile
from adahi_lab.link.namespaces import LinkUnavailable
from adahi_ros.core.schema import checked
from test.waiting import wait_for

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))

QUICK = LinkProfile(rtt_mean_ms=1.0, rtt_jitter_ms=0.0, rate_mbit_s=100.0)
DEADLINE_S = 20.0  # only a broken link is slower
HEADERS = 42  # Ethernet, IPv4 and UDP
GROUP = "239.255.0.1"  # where DDS looks for others
MAKE_SOCKET = """
import socket, sys
made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
made.bind(("", 0))
socket.send_fds(socket.socket(fileno=int(sys.argv[1])), [b"."], [made.fileno()])
"""
OPEN_LINK = """
import sys, time
from adahi_lab.link.emulator import emulated_link
from adahi_lab.link.link_profile import LinkProfile
with emulated_link(LinkProfile(1.0, 0.0, 100.0)) as link:
    print(link.robot.net, link.control, flush=True)
    time.sleep(1000)
"""


@pytest.fixture
def link() -> Iterator[EmulatedLink]:
    with emulated_link(QUICK) as link:
        yield link


def socket_at(end: LinkEnd) -> socket.socket:
    """A UDP socket that a process at this end has made; it stays there whoever has it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [*end.prefix, sys.executable, "-S", "-c", MAKE_SOCKET, str(theirs.fileno())]
        subprocess.run(command, pass_fds=[theirs.fileno()], check=True)
        made = socket.socket(fileno=socket.recv_fds(ours, 1, 1)[1][0])
    made.settimeout(DEADLINE_S)
    return made


@pytest.fixture
def sockets(link: EmulatedLink) -> Iterator[tuple[socket.socket, socket.socket]]:
    """One at the robot's end that sends to one at the server's end."""
    with socket_at(link.robot) as robot, socket_at(link.server) as server:
        robot.connect((link.server.address, server.getsockname()[1]))
        yield robot, server


Sockets = tuple[socket.socket, socket.socket]


def test_packets_cross_both_ways_and_take_their_time(link: EmulatedLink, sockets: Sockets) -> None:
    link.change(rtt_mean_ms=40.0)
    robot, server = sockets
    sent_s = time.monotonic()
    robot.send(b"request")
    request, sender = server.recvfrom(100)
    server.sendto(b"reply", sender)
    assert (request, robot.recv(100)) == (b"request", b"reply")
    assert sender[0] == link.robot.address
    assert time.monotonic() - sent_s > 0.039


def test_what_is_sent_is_counted_and_nothing_else(link: EmulatedLink, sockets: Sockets) -> None:
    robot, server = sockets
    for _ in range(10):
        robot.send(bytes(100))
    for _ in range(10):
        server.recv(200)
    traffic = link.traffic()
    assert (traffic.up.packets, traffic.up.bytes) == (10, 10 * (100 + HEADERS))
    assert (traffic.up.delivered, traffic.up.dropped) == (10, 0)
    assert (traffic.down.packets, traffic.down.bytes) == (0, 0)


def test_a_cut_stops_everything_until_it_ends(link: EmulatedLink, sockets: Sockets) -> None:
    robot, server = sockets
    link.cut(1000)
    for _ in range(3):
        robot.send(b"lost")
    wait_for(lambda: link.traffic().up.dropped == 3)
    link.cut(0)
    robot.send(b"through")
    assert server.recv(100) == b"through"
    with pytest.raises(ValueError, match=r"^cut_s: -1, must be a number from 0"):
        link.cut(-1)


def test_a_link_changes_while_it_is_up(link: EmulatedLink, sockets: Sockets) -> None:
    robot, server = sockets
    link.change(loss=1.0)
    robot.send(b"lost")
    wait_for(lambda: link.traffic().up.dropped == 1)
    link.change(loss=0.0, duplicate=1.0)
    robot.send(b"twice")
    assert [server.recv(100), server.recv(100)] == [b"twice", b"twice"]


def test_there_is_no_way_out_of_the_two_ends(sockets: Sockets) -> None:
    with pytest.raises(OSError, match="unreachable"):
        sockets[0].connect(("192.0.2.1", 9))  # an address that is nobody's (RFC 5737)


def test_a_command_at_an_end_is_where_it_was_and_hands_its_status_on(
    link: EmulatedLink, tmp_path: Path
) -> None:
    for end in (link.robot, link.server):
        ended = subprocess.run(
            [*end.prefix, "sh", "-c", 'pwd; echo "$1"; exit 7', "sh", "two  words"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.stdout, ended.returncode) == (f"{tmp_path}\ntwo  words\n", 7), ended.stderr
    with subprocess.Popen([*link.robot.prefix, "sleep", "1000"]) as process:
        wait_for(lambda: link.robot.processes() == {process.pid})
        assert link.server.processes() == set()
        process.kill()


def test_shared_memory_is_each_ends_own(link: EmulatedLink) -> None:
    name = f"/dev/shm/adahi_{os.getpid()}"
    subprocess.run([*link.robot.prefix, "touch", name], check=True)
    assert subprocess.run([*link.robot.prefix, "test", "-e", name], check=False).returncode == 0
    assert subprocess.run([*link.server.prefix, "test", "-e", name], check=False).returncode == 1
    assert not os.path.exists(name)


def test_nothing_is_left_of_a_link_even_after_an_error() -> None:
    with suppress(KeyError), emulated_link(QUICK) as link:
        assert link.robot.net.exists()
        raise KeyError
    assert not link.robot.net.exists()
    assert not link.control.parent.exists()
    with pytest.raises(LinkUnavailable, match="no link replies there"):
        command_link(link.control, {})


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_link_ends_with_the_process_that_made_it(number: int) -> None:
    with subprocess.Popen([sys.executable, "-c", OPEN_LINK], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        net, control = map(Path, parent.stdout.readline().split())
        assert net.exists()
        parent.send_signal(number)
        wait_for(lambda: not os.path.exists(net) and not control.parent.exists())


def test_what_a_machine_lacks_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LinkUnavailable, match="nsenter"), emulated_link(QUICK):
        pass


def test_what_the_link_replies_is_its_profile_too(link: EmulatedLink) -> None:
    link.change(loss=0.25)
    reply = command_link(link.control, {})
    assert checked(LinkProfile, json.loads(json.dumps(reply["profile"]))) == QUICK.changed({"loss": 0.25})


def test_servers_of_one_robot_do_not_receive_each_others_packets() -> None:
    slow = replace(QUICK, rtt_mean_ms=40.0)
    with emulated_links([QUICK, slow]) as (first, second), ExitStack() as stack:
        assert first.robot is second.robot
        robot, *servers = (
            stack.enter_context(socket_at(end)) for end in (first.robot, first.server, second.server)
        )
        took_s = []
        for link, server in zip((first, second), servers, strict=True):
            started_s = time.monotonic()
            robot.sendto(b"there", (link.server.address, server.getsockname()[1]))
            _, sender = server.recvfrom(100)
            server.sendto(b"back", sender)
            assert robot.recv(100) == b"back"
            took_s.append(time.monotonic() - started_s)
        assert took_s[0] < 0.03 < 0.04 <= took_s[1] + 1e-3
        assert [link.traffic().up.packets for link in (first, second)] == [1, 1]
        second.cut(60.0)
        robot.sendto(b"lost", (second.server.address, servers[1].getsockname()[1]))
        robot.sendto(b"there", (first.server.address, servers[0].getsockname()[1]))
        assert servers[0].recv(100) == b"there"
        servers[0].sendto(b"aside", (second.server.address, servers[1].getsockname()[1]))
        servers[1].settimeout(0.2)
        with pytest.raises(OSError, match="timed out"):
            servers[1].recv(100)
