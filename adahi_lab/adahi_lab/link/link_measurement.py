# SPDX-License-Identifier: Apache-2.0
"""Measures a link with real packets, to compare it with its profile.

As a program, it is one of the parties at the link's ends.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO

import numpy as np

from adahi_lab.link.emulator import Counts, EmulatedLink, LinkEnd
from adahi_lab.link.link_profile import LinkProfile

PORT = 7007
PING_BYTES, DATAGRAM_BYTES, HEADER_BYTES = 56, 1400, 42  # Ethernet, IPv4 and UDP headers
PAUSE_S, QUIET_S, LOST_S, START_S = 2e-3, 0.5, 0.5, 10.0
OVERLOAD = 1.1  # offered traffic as a multiple of the link's rate
PRIORITY = 10  # below the link itself
PERCENTILES = (50, 90, 99)


def measure_link(link: EmulatedLink, profile: LinkProfile, pings: int, seconds: float) -> dict[str, object]:
    """Return the measured properties of a link.

    Args:
        link: running and idle.
        profile: of the link.
        pings: round trips.
        seconds: that each stream lasts.

    Returns:
        Round trips in ms (`rtt_mean_ms`, `rtt_jitter_ms`, `rtt_percentiles_ms`), the shares of small
        packets lost (`loss`), and throughput in Mbit/s: `udp_mbit_s`, whole frames under overload, and
        `tcp_mbit_s`, payload. The last three by direction.
    """
    before = link.traffic()
    trips = round_trips_ms(link, profile, pings)
    after = link.traffic()
    figures: dict[str, object] = {
        "round_trips": len(trips),
        "rtt_mean_ms": float(trips.mean()) if len(trips) else None,
        "rtt_jitter_ms": float(trips.std()) if len(trips) else None,
        "rtt_percentiles_ms": {
            str(each): float(np.percentile(trips, each)) if len(trips) else None for each in PERCENTILES
        },
        "loss": {"up": _lost(before.up, after.up), "down": _lost(before.down, after.down)},
    }
    for kind in ("udp", "tcp"):
        figures[f"{kind}_mbit_s"] = {
            "up": _stream(link.robot, link.server, kind, seconds, profile.rate_mbit_s),
            "down": _stream(link.server, link.robot, kind, seconds, profile.rate_mbit_s),
        }
    return figures


def round_trips_ms(link: EmulatedLink, profile: LinkProfile, pings: int) -> np.ndarray:
    """Return the round-trip times of small packets in order, ms, without lost ones.

    Arguments as of `measure_link`.
    """
    with _party(link.server, "echo"):
        lost_s = LOST_S + profile.rtt_mean_ms * 1e-3
        return np.array(_run(link.robot, "ping", link.server.address, str(pings), str(lost_s)))


def _lost(before: Counts, after: Counts) -> float:
    return (after.dropped - before.dropped) / max(1, after.packets - before.packets)


def _stream(source: LinkEnd, sink: LinkEnd, kind: str, seconds: float, rate_mbit_s: float) -> float:
    with _party(sink, "receive", kind) as output:
        _run(source, "send", kind, sink.address, str(seconds), str(OVERLOAD * rate_mbit_s))
        return float(output.readline())


def _command(end: LinkEnd, *arguments: str) -> Sequence[str]:
    return [*end.prefix, sys.executable, "-m", "adahi_lab.link.link_measurement", *arguments]


def _run(end: LinkEnd, *arguments: str) -> object:
    ended = subprocess.run(_command(end, *arguments), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ended.stdout)


@contextmanager
def _party(end: LinkEnd, *arguments: str) -> Iterator[IO[str]]:
    """Run a receiving party at an end; yield its output after it is ready."""
    process = subprocess.Popen(_command(end, *arguments), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        process.stdout.readline()
        yield process.stdout
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _echo() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind(("", PORT))
        print("ready", flush=True)
        while True:
            here.sendto(*here.recvfrom(DATAGRAM_BYTES))


def _ping(address: str, count: str, lost_s: str) -> None:
    trips_ms = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.connect((address, PORT))
        for number in range(int(count)):
            sent_s = time.perf_counter()
            request = number.to_bytes(PING_BYTES, "big")
            here.send(request)
            here.settimeout(float(lost_s))
            with suppress(TimeoutError):
                while here.recv(PING_BYTES) != request:  # a late one, or a duplicate
                    pass
                trips_ms.append((time.perf_counter() - sent_s) * 1e3)
            time.sleep(PAUSE_S)
    print(json.dumps(trips_ms))


def _receive(kind: str) -> None:
    stream = kind == "tcp"
    arrivals: list[tuple[float, int]] = []
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if stream else socket.SOCK_DGRAM) as here:
        here.settimeout(START_S)
        here.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        here.bind(("", PORT))
        if stream:
            here.listen()
        print("ready", flush=True)
        source = here.accept()[0] if stream else here
        with suppress(TimeoutError):
            while received := len(source.recv(1 << 16)):
                arrivals.append((time.perf_counter(), received + (0 if stream else HEADER_BYTES)))
                source.settimeout(QUIET_S if not stream else START_S)
    lasted_s = arrivals[-1][0] - arrivals[0][0] if arrivals else 0.0
    print(sum(size for _, size in arrivals[1:]) * 8e-6 / lasted_s if lasted_s else 0.0, flush=True)


def _send(kind: str, address: str, seconds: str, rate_mbit_s: str) -> None:
    stream = kind == "tcp"
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if stream else socket.SOCK_DGRAM) as here:
        here.connect((address, PORT))
        began_s = time.perf_counter()
        sent_bytes = 0
        while (passed_s := time.perf_counter() - began_s) < float(seconds):
            if stream:
                here.send(bytes(1 << 14))
            elif sent_bytes < passed_s * float(rate_mbit_s) * 125e3:
                here.send(bytes(DATAGRAM_BYTES))
                sent_bytes += DATAGRAM_BYTES + HEADER_BYTES
            else:
                time.sleep(1e-3)
    print("null")


if __name__ == "__main__":
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    parties: dict[str, Callable[..., None]] = {
        "echo": _echo,
        "ping": _ping,
        "receive": _receive,
        "send": _send,
    }
    parties[sys.argv[1]](*sys.argv[2:])
