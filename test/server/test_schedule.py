"""Batches wait for robots that are expected, and for no others."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from adahi_ros.protocol.description import Description
from adahi_ros.protocol.request import OK, Reply, Request
from adahi_ros.protocol.window import WireWindow
from adahi_ros.server.engine import Engine
from adahi_ros.server.request_queue import Turn
from adahi_ros.server.schedule import BatchParameters, BatchSchedule
from adahi_ros.server.service import LoadedTarget, ServedTargets, VerificationService
from test.nodes.server.test_request_scheduler import SIGNATURE, Elsewhere

WAIT_S = 0.004


def _same(request: Request) -> Request:
    return request


class Robots:
    """Robots that send requests to a schedule whose target computes until it is released."""

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self.now_s = 10.0
        self.target = Elsewhere(1)
        served = LoadedTarget(Engine(self.target, 0), Description("", "replace", SIGNATURE))
        service = VerificationService(ServedTargets(served))
        batch = BatchParameters(size=16, wait_s=wait_s, quota_hz=0.0)
        self.schedule = BatchSchedule(service, batch, lambda *_: None, clock=lambda: self.now_s)
        self.replied: list[str] = []
        self._step = 0

    def ask(self, *robots: str) -> None:
        for robot in robots:
            self._step += 1
            window = WireWindow.pack(np.zeros((1, 1), np.float32), np.zeros(0, np.float32))
            request = Request(0, self._step, self._step, window, robot_id=robot)
            turn: Turn[Any] = Turn(request, self._reply, self.now_s, robot)
            self.schedule.receive(turn, partial(_same, request))
        self.serve()

    def serve(self) -> None:
        while self.schedule.wait_s == 0.0:
            self.schedule.serve()

    def release(self) -> None:
        """Let the target finish its batch."""
        self.target.say(len(self.sizes) - 1)
        self.serve()

    def _reply(self, turn: Turn[Any], reply: Reply, took_s: float) -> None:
        assert reply.status == OK
        self.replied.append(turn.request.robot_id)

    @property
    def sizes(self) -> list[int]:
        return [size for size, _, _ in self.target.requested]


def test_robots_that_ask_again_at_once_come_together() -> None:
    """Else the one that came first and the others would take turns for ever."""
    robots = Robots()
    robots.ask("a")
    robots.now_s += WAIT_S
    robots.serve()
    robots.ask("b", "c", "d")
    assert robots.sizes == [1]
    robots.release()
    assert robots.replied == ["a"]
    assert robots.sizes == [1]  # waits for a
    robots.ask("a")
    assert robots.sizes == [1, 4]
    robots.release()
    robots.ask("b", "c", "d")
    assert robots.sizes == [1, 4]
    robots.ask("a")
    assert robots.sizes == [1, 4, 4]


def test_a_robot_that_does_not_come_is_not_awaited_for_longer() -> None:
    robots = Robots()
    robots.ask("a")
    robots.now_s += WAIT_S
    robots.serve()
    robots.ask("b", "c")
    robots.release()
    assert robots.schedule.wait_s == pytest.approx(WAIT_S)
    robots.now_s += WAIT_S
    robots.serve()
    assert robots.sizes == [1, 2]


def test_a_robot_that_is_alone_waits_once_and_never_again() -> None:
    robots = Robots()
    robots.ask("a")
    assert robots.schedule.wait_s == pytest.approx(WAIT_S)
    robots.now_s += WAIT_S
    robots.serve()
    for _ in range(3):
        robots.release()
        robots.ask("a")
    assert robots.sizes == [1] * 4


def test_no_batch_waits_where_that_is_not_wanted() -> None:
    robots = Robots(wait_s=0.0)
    robots.ask("a")
    robots.ask("b", "c")
    robots.release()
    assert robots.sizes == [1, 2]
    robots.release()
    assert robots.schedule.wait_s == math.inf
