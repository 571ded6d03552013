"""`adahi watch` as a process of its own."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rclpy")

from adahi_msgs.msg import DraftStatus

from adahi_lab.nodes.domain import exclusive_domain, loopback_environment
from adahi_lab.nodes.observer import Observer
from test.bags.test_rerun_recording import columns

DEADLINE_S = 60.0
PROGRAM = "from adahi_ros.cli.app import main; main()"
ALTERNATE_SCREEN, BACK, CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"


@pytest.fixture
def domain() -> Iterator[int]:
    with exclusive_domain() as domain:
        yield domain


@pytest.fixture
def start(domain: int, deaf: Callable[[], None]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """From options to the process: in the domain, on no terminal, and deaf to signals by inheritance."""
    made: list[subprocess.Popen[str]] = []

    def start(*options: str, **streams: int) -> subprocess.Popen[str]:
        pipes: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }
        environment = {**os.environ, **loopback_environment(domain), "TERM": "xterm"}
        made.append(
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, "watch", *options],
                **{**pipes, **streams},
                text=True,
                env=environment,
                preexec_fn=deaf,
            )
        )
        return made[-1]

    yield start
    for process in made:
        with process:  # closes its pipes, and waits
            process.kill()


@contextmanager
def robot(domain: int, namespace: str) -> Iterator[Observer]:
    observer = Observer(domain, "draft_policy")
    out = observer.node.create_publisher(DraftStatus, f"{namespace}/draft_status", 1)
    counts = [0] * 7

    def publish() -> None:
        counts[0] += 1
        out.publish(DraftStatus(robot_id="r1", gate="always", reason_counts=counts))

    observer.node.create_timer(0.05, publish)
    try:
        yield observer
    finally:
        observer.close()


def test_no_one_there_is_status_1_and_one_line(start: Callable[..., subprocess.Popen[str]]) -> None:
    process = start("--once", "--seconds", "1")
    out, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert out == ""
    assert errors.startswith("adahi: no robot: no draft_status received in domain ")
    assert errors.count("\n") == 1


def test_once_prints_figures_as_a_table_or_as_json(
    domain: int, start: Callable[..., subprocess.Popen[str]]
) -> None:
    with robot(domain, "/r1") as observer:
        json_process = start("--once", "--seconds", "10", "--json")
        table_process = start("--seconds", "10")  # no terminal
        both = (json_process, table_process)
        observer.wait_until(
            lambda: all(process.poll() is not None for process in both), DEADLINE_S, "ends of adahi watch"
        )
    out, errors = json_process.communicate()
    assert (json_process.returncode, errors) == (0, "")
    (figures,) = json.loads(out)
    assert (figures["topic"], figures["robot_id"]) == ("/r1/draft_status", "r1")
    assert figures["recent"]["steps"] > 0
    out, errors = table_process.communicate()
    assert (table_process.returncode, errors) == (0, "")
    assert "/r1/draft_status" in out
    assert "control rate" in out


def test_figures_are_served_to_prometheus_until_the_signal(
    domain: int, start: Callable[..., subprocess.Popen[str]]
) -> None:
    pytest.importorskip("prometheus_client")
    from test.nodes.test_metrics_server import samples

    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        _, errors = start("--serve", port).communicate(timeout=DEADLINE_S)
        assert errors.startswith(
            f"adahi: --serve: {port}, cannot listen at '127.0.0.1' (Address already in use)"
        )
    process = start("--serve", port)
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said == f"serves http://127.0.0.1:{port}/metrics; Ctrl-C ends it\n"
    url = said.split()[1].rstrip(";")
    seen = "adahi_robot_control_rate_hertz", (("robot", "r1"), ("topic", "/r1/draft_status"))
    with robot(domain, "/r1") as observer:
        observer.wait_until(lambda: samples(url).get(seen, 0.0) > 0.0, DEADLINE_S, "the robot")
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, out, errors) == (0, "", "")


def test_a_running_robot_is_recorded_for_rerun_until_the_signal(
    domain: int, start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    pytest.importorskip("rerun")
    file = tmp_path / "live.rrd"
    process = start("--rerun", str(file))
    with robot(domain, "/r1") as observer:
        both = partial(observer.node.count_subscribers, "/r1/draft_status")  # its figures, and its recording
        observer.wait_until(lambda: both() == 2, DEADLINE_S, "subscriptions")
        size = file.stat().st_size
        observer.wait_until(lambda: file.stat().st_size > size, DEADLINE_S, "messages")
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, out, errors) == (0, "records; Ctrl-C ends it\n", "")
    assert columns(file)["/r1/draft_status/threshold"] == "Scalars"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_terminal_is_left_as_it_was(
    start: Callable[..., subprocess.Popen[str]], number: signal.Signals
) -> None:
    ours, theirs = pty.openpty()
    process = start(stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = ""

    def read() -> str:
        try:
            return os.read(ours, 4096).decode(errors="replace")
        except OSError:  # its end is closed
            return ""

    while "no robot in domain" not in shown and (more := read()):
        shown += more
    assert ALTERNATE_SCREEN in shown
    process.send_signal(number)
    while more := read():
        shown += more
    os.close(ours)
    assert process.wait(DEADLINE_S) == 0
    assert shown.rindex(BACK) > shown.rindex(ALTERNATE_SCREEN)
    assert CURSOR in shown[shown.rindex("\x1b[?25l") :]
    assert "Traceback" not in shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_lines_of_json_end_with_the_signal(
    start: Callable[..., subprocess.Popen[str]], number: signal.Signals
) -> None:
    process = start("--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline()) == []
    process.send_signal(number)
    out, errors = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, errors) == (0, "")
    assert all(json.loads(line) == [] for line in out.splitlines())
