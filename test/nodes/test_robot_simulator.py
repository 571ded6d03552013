"""How the simulator ends when its episodes are over."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest
from adahi_msgs.msg import EpisodeResult

from adahi_lab.evaluation.run_record import EpisodeRecord
from adahi_lab.nodes import robot_simulator_node
from adahi_lab.nodes.observer import Observer
from adahi_lab.nodes.robot_simulator_node import RobotSimulatorNode
from test.nodes.conftest import Make

LONG_S = 1e6  # longer than any test


@pytest.fixture
def simulator(observer: Observer, make_node: Make) -> RobotSimulatorNode:
    node: RobotSimulatorNode = make_node(RobotSimulatorNode, given={"lockstep": True})
    observer._executor.add_node(node)
    return node


def test_a_client_that_requested_no_results_is_not_waited_for(
    observer: Observer, simulator: RobotSimulatorNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(robot_simulator_node, "LAST_WORDS_S", LONG_S)
    simulator._started_s -= 2 * LONG_S
    simulator._say_goodbye()
    observer.wait_until(simulator.finished.done, 10.0, "the end")


def test_who_has_just_come_has_time_to_ask(
    observer: Observer, simulator: RobotSimulatorNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(robot_simulator_node, "LAST_WORDS_S", 0.25)
    simulator._started_s = began_s = time.monotonic()
    simulator._say_goodbye()
    observer.wait_until(simulator.finished.done, 10.0, "the end")
    assert time.monotonic() > began_s + 0.25


def test_a_client_that_requested_results_gets_them_first(
    observer: Observer, simulator: RobotSimulatorNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(robot_simulator_node, "LAST_WORDS_S", LONG_S)
    got: list[EpisodeResult] = []
    observer.node.create_subscription(
        EpisodeResult, "episode_result", got.append, simulator._result_out.qos_profile
    )
    observer.wait_until(lambda: simulator._result_out.get_subscription_count() > 0, 10.0, "subscription")
    simulator._tell_result()
    simulator._say_goodbye()
    observer.wait_until(simulator.finished.done, 10.0, "the end")
    observer.wait_until(lambda: len(got) == 1, 10.0, "the result")


def test_what_came_of_all_episodes_is_reported_at_the_end(
    simulator: RobotSimulatorNode, capfd: pytest.CaptureFixture[str]
) -> None:
    draws = np.random.default_rng(0)
    records = [EpisodeRecord(episode, int(draws.integers(1, 9)), episode % 3 == 0) for episode in range(7)]
    for record in records:
        simulator._robot = SimpleNamespace(**vars(record) | {"step": record.steps})  # type: ignore[assignment]
        simulator._tell_result()
    simulator._say_goodbye()
    steps = sum(record.steps for record in records)
    assert f"over: 3 of 7 episodes succeeded, {steps} steps" in capfd.readouterr().err
