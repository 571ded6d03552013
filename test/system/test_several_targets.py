"""Policies are loaded into a verifier, and taken from it, while it serves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from adahi_msgs.srv import DescribeTarget, LoadTarget, UnloadTarget

from test.system.stage import Stage


class Server:
    """A verifier, and what is asked of it."""

    def __init__(self, stage: Stage) -> None:
        make = stage.client
        self._describe = make(DescribeTarget, "describe_target")
        self._load = make(LoadTarget, "target_verifier/load_target")
        self._unload = make(UnloadTarget, "target_verifier/unload_target")

    def describe(self, name: str = "") -> DescribeTarget.Response:
        return self._describe(DescribeTarget.Request(target=name))

    def load(self, name: str, checkpoint: Path) -> LoadTarget.Response:
        request = LoadTarget.Request(target=name, checkpoint=str(checkpoint))
        return self._load(request)

    def unload(self, name: str) -> UnloadTarget.Response:
        return self._unload(UnloadTarget.Request(target=name))


@pytest.fixture(scope="module")
def server(stage: Stage, exported: Path) -> Iterator[Server]:
    stage.start_verifier(exported, target_name="arm", rule__name="replace", loads_targets=True)
    yield Server(stage)
    stage.processes.end()


def test_another_policy_is_served_by_its_name_until_it_is_not(server: Server, exported: Path) -> None:
    assert list(server.describe().targets) == ["arm"]
    loaded = server.load("spare", exported / "target")
    assert loaded.success, loaded.message
    assert loaded.message == "served now: 'arm', 'spare'"
    assert (server.describe().target, server.describe("spare").target) == ("arm", "spare")
    assert server.describe("spare").parameters == server.describe("arm").parameters > 0
    unknown = server.describe("leg")
    assert (unknown.target, list(unknown.targets)) == ("", ["arm", "spare"])
    assert server.unload("arm").message == "target: 'arm', is the default target, must be another one"
    assert server.unload("spare").message == "served now: 'arm'"
    assert list(server.describe("spare").targets) == ["arm"]


def test_a_robot_asks_the_policy_that_it_names(stage: Stage, server: Server, exported: Path) -> None:
    assert server.load("spare", exported / "target").success
    stage.start_draft(exported, verification__target_name="spare", command__lockstep=True)
    stage.activate()
    simulator = stage.start_simulator(lockstep=True, episodes=1)
    stage.processes.may_end = simulator
    stage.wait(lambda: "over: " in simulator.output, "the episode's end")
    assert "verifier ready" in next(
        process.output for process in stage.processes.all if process.module == "draft_policy_node"
    )
