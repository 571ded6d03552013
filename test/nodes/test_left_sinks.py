"""What a publisher of commands does with a sink that a person leaves alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adahi_ros.nodes.robot.command_publisher import CommandPublisher
from adahi_ros.safety.commands import Outgoing


class Sink:
    fault = ""
    holds_by_itself = True

    def __init__(self) -> None:
        self.calls: list[str] = []

    def send(self, command: np.ndarray, stamp_ns: int, curve: object = None) -> None:
        self.calls.append("send")

    def hold(self) -> None:
        self.calls.append("hold")


@pytest.mark.parametrize(("left", "calls"), [([False, True], ["hold"]), (None, ["send"])])
def test_a_sink_that_is_left_goes_on_cancelling_its_goal(left: list[bool] | None, calls: list[str]) -> None:
    publisher: Any = CommandPublisher.__new__(CommandPublisher)
    publisher.guard = SimpleNamespace(
        holding=False, resting=np.zeros(2, bool), active=False, moving=False, waits=""
    )
    publisher.commands = SimpleNamespace(sink=lambda fault, now_s: Outgoing())
    publisher._action = SimpleNamespace(parts=lambda values: np.split(values, 2))
    publisher._controllers = SimpleNamespace(end=lambda: None, moved=False)
    publisher._sinks = [Sink(), Sink()]
    publisher._topics = []
    publisher._curve, publisher._period_s = None, 0.05
    marked = None if left is None else np.array(left)
    publisher._publish(Outgoing(np.array([0.1, 0.2]), np.array([0.1, 0.2]), left=marked))
    assert publisher._sinks[0].calls == ["send"]
    assert publisher._sinks[1].calls == calls
