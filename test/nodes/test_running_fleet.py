"""A fleet's verifier and its Ray: what they print is said once, and what was killed is started again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adahi_ros.nodes.launching import fleet
from adahi_ros.nodes.launching.child_processes import DdsRunError, NodeProcess
from adahi_ros.nodes.launching.fleet import SERVING, RunningFleet, fleet_up
from adahi_ros.nodes.launching.modules import MODULES
from adahi_ros.server.ray import ray_head


class Verifier:
    """In the place of its process."""

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self.lines: list[str] = []
        self.read = 0

    def printed_since(self, place: int) -> tuple[list[str], int]:
        found = self.lines[place:]
        self.read += len(found)
        return found, len(self.lines)

    def fault(self, what: str) -> DdsRunError:
        return DdsRunError(what)


class Processes:
    def __init__(self) -> None:
        self.all: list[Any] = []

    def start(self, module: str, parameters: Any) -> Any:
        self.all.append(Verifier())
        return self.all[-1]


class Head:
    def __init__(self) -> None:
        self.ended = False
        self.starts = 0

    def end(self) -> None:
        self.ended = True

    def start(self) -> None:
        self.ended, self.starts = False, self.starts + 1


class Up:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.head, self.processes = Head(), Processes()
        self.fleet = RunningFleet(self.head, self.processes, {}, self.lines.append)  # type: ignore[arg-type]

    @property
    def verifier(self) -> Verifier:
        (running,) = self.processes.all
        assert isinstance(running, Verifier)
        return running


def test_each_line_is_written_and_read_once() -> None:
    up = Up()
    for number in range(5):
        up.verifier.lines.append(f"line {number}")
        up.fleet.restart_killed()
    assert up.lines == [f"line {number}" for number in range(5)]
    assert up.verifier.read == 5


def test_a_verifier_that_is_killed_is_started_and_read_again() -> None:
    up = Up()
    up.verifier.lines = ["one", f"{SERVING} arm"]
    up.fleet.await_serving()
    up.verifier.exit_code = -9
    up.fleet.restart_killed()
    assert up.verifier.exit_code is None
    up.verifier.lines = [f"{SERVING} leg"]
    up.fleet.await_serving()
    assert up.lines[-2:] == ["the verifier was killed; it is started again", f"{SERVING} leg"]


def test_a_verifier_that_ends_by_itself_ends_the_fleet() -> None:
    up = Up()
    up.verifier.exit_code = 1
    with pytest.raises(DdsRunError, match="ended with code 1"):
        up.fleet.restart_killed()


def test_a_ray_that_has_ended_is_started_again() -> None:
    up = Up()
    up.head.ended = True
    up.fleet.restart_killed()
    up.fleet.restart_killed()
    assert up.head.starts == 1


def test_half_a_line_waits_for_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODULES, "zen", "this")  # prints, and ends
    process = NodeProcess("zen", {}, tmp_path, {})
    process._process.wait()
    lines, place = process.printed_since(0)
    assert lines[0].startswith("The Zen")
    assert process.printed_since(place) == ([], place)
    with process._log.open("a") as log:
        log.write("half ")
        log.flush()
        assert process.printed_since(place) == ([], place)
        log.write("a line\n")
    assert process.printed_since(place)[0] == ["half a line"]


def test_without_ray_installed_nothing_is_started_on_a_cluster_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text("policies: {arm: {checkpoint: ball/target}}\nray: {address: auto}\n")
    monkeypatch.setattr(ray_head, "find_spec", lambda name: None)
    monkeypatch.setattr(fleet, "node_processes", lambda environment: pytest.fail("something was started"))
    monkeypatch.setattr(fleet, "remove_policies", lambda policies, address: None)
    with pytest.raises(ImportError, match="ray: not installed"), fleet_up(file, {}, print):
        pass
