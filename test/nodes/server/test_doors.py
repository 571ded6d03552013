"""A verifier with a door: its clients and ROS robots have one engine, one queue, and one end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np
import pytest

from test.doors.served import Client, Planner  # isort: skip  # skips where a door cannot be opened
from rclpy.lifecycle import TransitionCallbackReturn
from websockets.exceptions import ConnectionClosed, WebSocketException

from adahi_ros.client import VerifierClient
from adahi_ros.core.signature import Feature, Signature
from adahi_ros.nodes.server import target_verifier_parameters
from adahi_ros.nodes.server.target_verifier_node import TargetVerifierNode
from test.nodes.in_process import DEADLINE_S, NodesInProcess
from test.waiting import wait_for

SIGNATURE = Signature(1, 4, 2, (Feature("observation", 3),))
ROUNDS = 20


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def planner(monkeypatch: pytest.MonkeyPatch) -> Planner:
    """The policy of each verifier of this test."""
    planner = Planner(SIGNATURE)
    monkeypatch.setattr(target_verifier_parameters, "policy_from", lambda *_, **__: planner)
    return planner


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def verifier(nodes: NodesInProcess, planner: Planner, port: int) -> TargetVerifierNode:
    """A verifier that is active, with a door."""
    values = {"checkpoint": "arm", "doors.openpi.port": port, "verification.reliability": "reliable"}
    node = nodes.start(TargetVerifierNode, values)
    nodes.spin(node)
    return node


class Robots:
    """ROS robots that ask about a number, and get it as their first action."""

    def __init__(self, nodes: NodesInProcess) -> None:
        self._nodes, self._step = nodes, 0
        self._clients: dict[str, VerifierClient] = {}

    def send(self, robot: str, number: float) -> Callable[[], float]:
        """Send a request; return what waits for its answer."""
        node, executor = self._nodes.observer.node, self._nodes.observer._executor
        if robot not in self._clients:
            client = VerifierClient(node, robot, reliability="reliable", deadline_s=DEADLINE_S)
            self._clients[robot] = client
            described = executor.create_task(client.describe)
            self._nodes.wait(described.done, "a description")
        self._step += 1
        window = np.full((1, 3), number, np.float32)

        async def ask(step: int) -> float:
            return float((await self._clients[robot].ask(window, step=step)).actions[0, 0])

        task = executor.create_task(ask, self._step)

        def answer() -> float:
            self._nodes.wait(task.done, f"an answer to {robot}")
            return float(task.result())

        return answer


def seen(number: float) -> dict[str, Any]:
    return {"observation": np.full(3, number, np.float32)}


def test_robots_and_clients_of_a_door_share_a_batch(
    nodes: NodesInProcess, planner: Planner, verifier: TargetVerifierNode, port: int
) -> None:
    robots = Robots(nodes)
    with Client(f"ws://127.0.0.1:{port}") as one, Client(f"ws://127.0.0.1:{port}") as other:
        assert one.metadata["target"] == "arm"
        assert robots.send("arm", 1.0)() == 1.0
        planner.may.clear()
        planner.seen.clear()
        planner.waiting.clear()
        first = robots.send("arm", 2.0)
        nodes.wait(planner.waiting.is_set, "a batch")
        second = robots.send("leg", 3.0)
        one.send(seen(4.0))
        other.send(seen(5.0))
        assert verifier._scheduler is not None
        scheduler = verifier._scheduler
        nodes.wait(lambda: len(scheduler) == 3, "requests that wait")
        planner.may.set()
        assert (first(), second()) == (2.0, 3.0)
        assert [each.receive()["actions"][0, 0] for each in (one, other)] == [4.0, 5.0]
        assert planner.sizes == [1, 3]
        assert isinstance(one.ask({}), str)
        assert verifier._service.counts.refused == 1


def test_a_verifier_that_is_deactivated_closes_its_door(
    nodes: NodesInProcess, planner: Planner, verifier: TargetVerifierNode, port: int
) -> None:
    def change(label: str) -> None:
        assert nodes.observer.change_state("target_verifier", label, DEADLINE_S, lambda: None)

    address = f"ws://127.0.0.1:{port}"
    with Client(address) as idle, Client(address) as waiting:
        planner.may.clear()
        waiting.send(seen(1.0))
        wait_for(planner.waiting.is_set)
        change("deactivate")
        planner.may.set()
        with pytest.raises(ConnectionClosed):
            idle.receive()
        assert "deactivated" in waiting.receive()
        with pytest.raises(ConnectionClosed):
            waiting.receive()
    with pytest.raises(ConnectionRefusedError):
        Client(address)
    change("activate")
    with Client(address) as again:
        assert again.plan(seen(2.0))[0, 0] == 2.0


def test_a_door_that_cannot_be_opened_is_named(nodes: NodesInProcess, planner: Planner, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        values = {"checkpoint": "arm", "autostart": False, "doors.openpi.port": port}
        node = nodes.start(TargetVerifierNode, values)
        node.trigger_configure()
        assert node.trigger_activate() is TransitionCallbackReturn.FAILURE
        assert node.last_error.startswith(f"doors.openpi.port: {port}, cannot listen at '127.0.0.1'")
    assert node.trigger_activate() is TransitionCallbackReturn.SUCCESS


def test_a_robot_keeps_its_replies_beside_attackers_at_a_door(
    nodes: NodesInProcess, planner: Planner, verifier: TargetVerifierNode, port: int
) -> None:
    """Who connects without end, who sends what is no message, and who does not wait for answers."""
    over, attacked = threading.Event(), threading.Barrier(4)

    def attack(act: Callable[[], object]) -> None:
        attacked.wait(DEADLINE_S)
        while not over.is_set():
            with suppress(OSError, WebSocketException):
                act()

    def connect() -> None:
        socket.create_connection(("127.0.0.1", port), DEADLINE_S).close()

    robots = Robots(nodes)
    assert robots.send("arm", 0.5)() == 0.5
    with ExitStack() as stack:
        liar, hasty, client = (
            stack.enter_context(Client(f"ws://127.0.0.1:{port}", close_timeout=0.1)) for _ in range(3)
        )
        nodes.run(lambda: attack(connect))
        nodes.run(lambda: attack(lambda: liar.send(b"\xdd\x00\x00\xea\x60" + b"\x90" * 60_000)))
        nodes.run(lambda: attack(lambda: hasty.send(seen(1.0))))
        attacked.wait(DEADLINE_S)
        answers = []
        for number in range(ROUNDS):
            answers.append(robots.send("arm", float(number))())
            assert client.plan(seen(number))[0, 0] == number
        over.set()
        hasty.cut()  # wakes its sender
        liar.cut()
    assert answers == list(range(ROUNDS))
