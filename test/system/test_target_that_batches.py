"""A verifier whose target's server batches by itself: robots are in flight together, and apart."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from adahi_ros.client import VerifierClient, VerifierError
from test.system.policy_server import PolicyServer
from test.system.stage import DEADLINE_S, Stage

CONNECTIONS = 3
HELD, CUT = 1, 2  # robots; what is asked as the verifier starts is of robot 0


class Engine:
    """Answers with the robot's number, and to one robot only once it may."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.arrived: list[int] = []

    def answer(self, observation: dict[str, Any]) -> dict[str, Any]:
        robot = self.robot(observation)
        self.arrived.append(robot)
        if robot == HELD:
            self.released.wait(2 * DEADLINE_S)
        return {"actions": np.full((2, 1), robot, np.float32)}

    def robot(self, observation: dict[str, Any]) -> int:
        return int(observation["state"][0])


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def served(engine: Engine) -> Iterator[PolicyServer]:
    policy = PolicyServer()
    policy.does.answer = engine.answer
    policy.does.cuts = lambda observation: engine.robot(observation) == CUT
    policy.start()
    yield policy
    engine.released.set()
    policy.stop()


@pytest.fixture
def verifier(stage: Stage, served: PolicyServer, tmp_path: Path) -> Iterator[Any]:
    path = tmp_path / "target.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "kind": "openpi",
                "url": served.url,
                "timeout_s": DEADLINE_S,
                "connections": CONNECTIONS,
                "horizon": 2,
                "action_names": ["x"],
                "state": {"observation": {"size": 1, "as": "state"}},
            }
        )
    )
    yield stage.start("target_verifier_node", checkpoint=str(path), verification__reliability="reliable")
    stage.clear()


class Robots:
    """Robots that each send a request with their number."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._clients: dict[int, VerifierClient] = {}
        self._step = 0

    def send(self, robot: int) -> Callable[[], Any]:
        """Send a request; return what waits for the answer's action, or the error."""
        client = self._clients.get(robot)
        if client is None:
            name = f"robot_{robot}"
            client = VerifierClient(self._stage.node, name, reliability="reliable", deadline_s=DEADLINE_S)
            self._clients[robot] = client
            self._stage.awaited(client.describe)
        self._step += 1
        window, step = np.full((1, 1), robot, np.float32), self._step

        async def ask() -> Any:
            try:
                return float((await client.ask(window, step=step)).actions[0, 0])
            except VerifierError as error:
                return str(error)

        task = self._stage.observer._executor.create_task(ask)

        def answer() -> Any:
            self._stage.wait(task.done, f"an answer to robot {robot}")
            return task.result()

        return answer

    def leave(self, robot: int) -> None:
        self._clients.pop(robot).destroy()


def test_a_slow_robot_a_fault_and_one_that_left_are_no_other_robots(
    stage: Stage, engine: Engine, served: PolicyServer, verifier: Any
) -> None:
    robots = Robots(stage)
    held = robots.send(HELD)
    stage.wait(lambda: HELD in engine.arrived, "a request in flight")
    assert [robots.send(robot)() for robot in (3, 4, 3, 5)] == [3, 4, 3, 5]
    assert "dropped the connection" in robots.send(CUT)()
    assert robots.send(3)() == 3  # nothing pauses
    left = robots.send(6)
    robots.leave(6)  # while its request is on its way
    assert [robots.send(robot)() for robot in (4, 5)] == [4, 5]
    engine.released.set()
    assert held() == HELD
    answers = [robots.send(robot) for robot in (7, 8, 9, 10)]  # one more than there are connections
    assert [answer() for answer in answers] == [7, 8, 9, 10]
    assert len(served.headers) <= CONNECTIONS + 1  # one was cut
    assert "Traceback" not in verifier.output
    del left


def test_a_verifier_ends_at_once_while_its_server_computes(
    stage: Stage, engine: Engine, verifier: Any
) -> None:
    robots = Robots(stage)
    held = robots.send(HELD)
    stage.wait(lambda: HELD in engine.arrived, "a request in flight")
    started_s = time.monotonic()
    stage.end(verifier)
    assert time.monotonic() - started_s < DEADLINE_S / 2
    assert "deactivated" in held()
