"""A deadman that is let go while the link is cut: what DDS sends again afterwards moves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adahi_lab.bench.link_ends import dds_environment
from adahi_lab.link.emulator import EmulatedLink, LinkEnd, emulated_link, unavailable
from adahi_lab.link.link_profile import profile_named
from adahi_lab.nodes.domain import exclusive_domain, link_environment
from test.faults.deadman import TIMEOUT_S

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))

PROGRAM = Path(__file__).with_name("deadman.py")
DEADLINE_S = 40.0
PRESSED_S = 4.0
CUT_S = 4.0
TRIP_S = 0.1  # of a message across the link, generously
LOOK_S = 0.05


@contextmanager
def end(at: LinkEnd, log: Path, environment: dict[str, str], *arguments: str) -> Iterator[None]:
    """Run one end of the deadman."""
    with log.open("w") as out:
        command = [*at.prefix, sys.executable, str(PROGRAM), *arguments]
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            process.kill()
            process.wait()


def times(log: Path, word: str) -> list[float]:
    """Return the times of all that an end said with this word."""
    lines = [line.rsplit(" ", 1) for line in log.read_text().splitlines()]
    return [float(line[1]) for line in lines if line[0] == word]


def wait(done: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not done():
        assert time.monotonic() < deadline_s, what
        time.sleep(LOOK_S)


@pytest.mark.parametrize("dds", ["default", "wireless"])
def test_a_deadman_let_go_during_a_cut_moves_nothing_afterwards(dds: str, tmp_path: Path) -> None:
    presses, watches = tmp_path / "presses", tmp_path / "watches"
    with emulated_link(profile_named("wifi_ac")) as link, exclusive_domain() as domain:
        let_go_s, after = run(
            link, {**os.environ, **link_environment(domain), **dds_environment(dds)}, presses, watches
        )
    assert [each for each in after if each > let_go_s + TIMEOUT_S + TRIP_S] == []


def run(
    link: EmulatedLink, environment: dict[str, str], presses: Path, watches: Path
) -> tuple[float, list[float]]:
    """Return when the deadman was let go, and every time at which the robot was enabled or still moved."""
    with (
        end(link.robot, watches, environment, "watch"),
        end(link.server, presses, environment, "press", str(PRESSED_S), str(watches)),
    ):
        wait(lambda: bool(times(watches, "enabled")), "the deadman reaches the robot")
        wait(lambda: time.monotonic() > times(watches, "enabled")[0] + PRESSED_S / 2, "pressed for a while")
        link.cut(CUT_S)
        wait(lambda: bool(times(presses, "let go")), "let go")
        let_go_s = times(presses, "let go")[0]
        wait(lambda: time.monotonic() > let_go_s + 2 * CUT_S, "DDS has sent all again")
    enabled, held = times(watches, "enabled"), times(watches, "held")
    assert held
    assert max(held) > max(enabled)
    return let_go_s, [*enabled, max(held) - TRIP_S]
