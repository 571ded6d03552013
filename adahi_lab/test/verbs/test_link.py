from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import adahi_ros
from adahi_lab.link.emulator import unavailable
from adahi_lab.link.namespaces import processes_in
from test.cli.conftest import Fails, Run
from test.waiting import wait_for

needs_a_link = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))

ADAHI = [sys.executable, "-c", "from adahi_ros.cli.app import main; main()"]
ROOT = Path(adahi_ros.__file__).parents[1]
DEADLINE_S = 60.0  # only a broken link is slower

LinkRun = tuple[subprocess.Popen[str], list[Path]]


def adahi(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ADAHI, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def test_the_shipped_profiles_are_listed(run: Run) -> None:
    output = run("lab", "link", "list").output
    for name in ("wifi_ac", "wifi_bad", "6g_hrllc"):
        assert name in output


@pytest.mark.parametrize("verb", [("run",), ("check",), ("set", "--control", "nowhere")])
def test_an_unknown_profile_is_named_with_those_there_are(verb: tuple[str, ...], fails: Fails) -> None:
    command = ("--", "true") if verb == ("run",) else ()
    text = fails("lab", "link", *verb, "--profile", "tin_cans", *command)
    assert text.startswith("adahi: link: 'tin_cans', must be one of ")


def test_a_link_that_is_none_cannot_be_changed(
    tmp_path: Path, fails: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ADAHI_LINK_CONTROL", raising=False)
    assert "ADAHI_LINK_CONTROL" in fails("lab", "link", "set", "--loss", 0.1)
    assert "no link replies there" in fails(
        "lab", "link", "set", "--control", tmp_path / "control", "--loss", 0.1
    )


@needs_a_link
def test_a_command_runs_at_the_robots_end_and_hands_its_status_on() -> None:
    network = "readlink /proc/self/ns/net"
    ended = adahi(
        "lab", "link", "run", "--", "sh", "-c", f"{network}; $ADAHI_SERVER_PREFIX {network}; exit 7"
    )
    assert ended.returncode == 7, ended.stderr
    robot, server = ended.stdout.split()
    assert len({robot, server, os.readlink("/proc/self/ns/net")}) == 3


@needs_a_link
def test_the_command_changes_its_link() -> None:
    program = f"{ADAHI[0]} -c '{ADAHI[2]}' lab link set"
    ended = adahi("lab", "link", "run", "sh", "-c", f"{program} --loss 0.25 --cut 1 && {program} --loss 3")
    assert "loss: 0.25" in ended.stdout
    assert ended.returncode == 2
    assert "--loss" in ended.stderr


@needs_a_link
def test_the_servers_command_ends_with_the_robots(tmp_path: Path) -> None:
    text = tmp_path / "server"
    server = f"sh -c 'echo $$ > {text}; exec sleep 1000'"
    robot = f"until test -s {text}; do sleep 0.01; done"
    ended = adahi("lab", "link", "run", "--server", server, "--", "sh", "-c", robot)
    assert ended.returncode == 0, ended.stderr
    assert not Path("/proc", text.read_text().strip(), "ns/net").exists()


@pytest.fixture
def link_run(deaf: Callable[[], None]) -> Iterator[LinkRun]:
    """`adahi lab link run` without inherited signal handlers, and what exists while its commands run."""
    sleeper = "sh -c 'echo $$; exec sleep 1000'"
    script = f"{sleeper} & $ADAHI_SERVER_PREFIX {sleeper} & wait"
    with subprocess.Popen(
        [*ADAHI, "lab", "link", "run", "--", "sh", "-c", script],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=deaf,
    ) as process:
        assert process.stdout is not None
        sleepers = [Path("/proc", process.stdout.readline().strip(), "ns/net") for _ in range(2)]
        assert all(each.exists() for each in sleepers)
        yield process, sleepers
        process.kill()


def command_of(process: int) -> bytes:
    return Path(f"/proc/{process}/cmdline").read_bytes()


@needs_a_link
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_everything_at_both_ends(number: int, link_run: LinkRun) -> None:
    process, sleepers = link_run
    process.send_signal(number)
    assert process.wait(DEADLINE_S) == 128 + number
    wait_for(lambda: not any(map(os.path.exists, sleepers)), DEADLINE_S)


@needs_a_link
def test_nothing_is_left_in_the_networks_of_a_link_that_was_killed(link_run: LinkRun) -> None:
    process, sleepers = link_run
    networks = [os.stat(each).st_ino for each in sleepers]
    assert len(set(networks)) == 2
    assert all(map(processes_in, networks))
    process.kill()
    wait_for(lambda: not any(map(processes_in, networks)), DEADLINE_S)


@needs_a_link
def test_everything_ends_though_the_process_between_the_ends_was_killed(link_run: LinkRun) -> None:
    process, sleepers = link_run
    networks = [os.stat(each).st_ino for each in sleepers]
    inside = set().union(*map(processes_in, networks))
    (between,) = (each for each in inside if b"forwarder" in command_of(each))
    os.kill(between, signal.SIGKILL)
    wait_for(lambda: not any(between in processes_in(network) for network in networks), DEADLINE_S)
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE_S) == 128 + signal.SIGTERM
    wait_for(lambda: not any(map(processes_in, networks)), DEADLINE_S)


@needs_a_link
def test_a_check_shows_what_was_requested_and_what_was_measured(tmp_path: Path) -> None:
    figures = tmp_path / "check.json"
    ended = adahi("lab", "link", "check", "--pings", 20, "--seconds", 0.2, "--json", figures)
    assert ended.returncode == 0, ended.stderr
    assert "asked" in ended.stdout
    found = json.loads(figures.read_text())
    assert found["asked"]["rtt_mean_ms"] == 12.054
    measured = found["measured"]
    assert measured["round_trips"] == 20
    assert measured["rtt_mean_ms"] > 11
    assert measured["loss"] == {"up": 0.0, "down": 0.0}
    for kind in ("udp", "tcp"):
        for way in ("up", "down"):
            assert 0 < measured[f"{kind}_mbit_s"][way] < 60
