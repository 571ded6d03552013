"""What the operator says, over DDS: stops last, old messages move nothing, a new start needs a press."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from adahi_msgs.msg import SafetyState
from rclpy.publisher import Publisher
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from test.ball_contract import ball_contract
from test.system.stage import Robot, Stage

TIMEOUT_S = 0.4
PERIOD_S = 0.05
STOPPED_S = 2.0
TRANSITION_S = 60.0


class Cell:
    """A robot in front of the policy's node, and its operator's deadman."""

    def __init__(self, stage: Stage, robot: Robot, start: Callable[[], Any]) -> None:
        self.stage, self.robot, self._start = stage, robot, start
        self.process = start()
        self.safety: list[SafetyState] = stage.received(SafetyState, "safety_state")
        self.deadman = stage.node.create_publisher(Bool, "enable", 100)
        self._enabling = stage.node.create_client(SetBool, "draft_policy/set_enabled")
        self._next_s, self._step = 0.0, 0

    def set_enabled(self, enabled: bool) -> None:
        assert self.stage.call(self._enabling, SetBool.Request(data=enabled)).success

    def call(self, enabled: bool) -> Any:
        """Call the service; return the future."""
        return self._enabling.call_async(SetBool.Request(data=enabled))

    def start_again(self) -> None:
        """Kill the node as a crash does, and start it as `respawn` does."""
        self.stage.processes.kill(self.process)
        self.process = self._start()
        self.stage.activate()

    def run(self, done: Callable[[], bool], what: str, pressed: bool | None = True) -> None:
        """Show observations and the deadman at the control rate until something is so.

        Args:
            done: it is.
            what: it is, for people.
            pressed: what the deadman says; None for nothing.
        """

        def period() -> bool:
            self._show(pressed)
            return done()

        self.stage.wait(period, what)

    def _show(self, pressed: bool | None) -> None:
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + PERIOD_S
            self._step += 1
            self.robot.show(1, self._step)
            if pressed is not None:
                self.deadman.publish(Bool(data=pressed))

    def change_state(self, label: str) -> None:
        """Make a transition with the deadman held: silence and another true would be a fresh press."""

        def hold() -> None:
            self.stage.check()
            self._show(True)

        assert self.stage.observer.change_state("draft_policy", label, TRANSITION_S, hold)

    def moves(self) -> Callable[[], bool]:
        """Return whether a command from now on asks for another position than the last one did."""
        before = [command.points[-1].positions for command in self.robot.commands]
        at = before[-1:]

        def moved() -> bool:
            return any(each.points[0].positions not in at for each in self.robot.commands[len(before) :])

        return moved

    def steps(self, count: int) -> Callable[[], bool]:
        """Return whether the policy has made so many steps from now on."""
        before = len(self.robot.steps)
        return lambda: len(self.robot.steps) >= before + count

    def press_afresh(self) -> None:
        self.deadman.publish(Bool(data=False))
        self.run(lambda: not self.safety[-1].enabled, "the deadman let go", pressed=False)
        self.run(self.moves(), "motion after a fresh press")

    def stands_for(self, steps: int) -> None:
        """Check that the policy acts, and that nothing is commanded once the arm has stopped."""
        self.run(lambda: self.safety[-1].holding and "at rest" in self.safety[-1].message, "rest")
        self.run(self.steps(2), "what was commanded before has arrived")
        moves = self.moves()
        self.run(self.steps(steps), "steps")
        assert not moves()


@pytest.fixture(scope="module")
def cell(stage: Stage, exported: Path) -> Iterator[Cell]:
    def start() -> Any:
        return stage.start_draft(
            exported,
            gate__name="never",
            verifier_wait_s=0.0,
            contract=ball_contract(max_age_s=5.0),
            safety__require_enable=True,
            safety__enable_timeout_s=TIMEOUT_S,
            safety__hold_after_s=5.0,
        )

    cell = Cell(stage, Robot(stage), start)
    cell.stage.activate()
    cell.run(cell.steps(3), "steps", pressed=False)
    cell.press_afresh()
    yield cell
    stage.processes.end()


def test_a_stop_survives_cleanup_and_configure(cell: Cell) -> None:
    cell.set_enabled(False)
    for label in ("deactivate", "cleanup", "configure", "activate"):
        cell.change_state(label)
    cell.stands_for(20)
    assert cell.safety[-1].stopped
    cell.set_enabled(True)
    cell.run(cell.moves(), "motion")


def test_a_stop_is_kept_by_a_node_that_is_not_configured(cell: Cell) -> None:
    cell.press_afresh()
    for label in ("deactivate", "cleanup"):
        assert cell.stage.change_state(label)
    cell.deadman.publish(Bool(data=False))
    cell.deadman.wait_for_all_acked()
    cell.stage.activate()
    cell.run(cell.steps(10), "steps", pressed=None)
    assert cell.safety[-1].stopped
    cell.press_afresh()


def test_what_arrived_while_the_node_stood_still_moves_nothing(cell: Cell) -> None:
    cell.press_afresh()
    os.kill(cell.process.pid, signal.SIGSTOP)
    until_s = time.monotonic() + STOPPED_S
    cell.run(lambda: time.monotonic() > until_s, "the deadman pressed, the node stopped")
    let_go_s = time.monotonic() + 2 * TIMEOUT_S
    cell.run(lambda: time.monotonic() > let_go_s, "the deadman let go", pressed=None)
    moves = cell.moves()
    os.kill(cell.process.pid, signal.SIGCONT)
    cell.run(cell.steps(30), "steps", pressed=None)
    assert not moves()
    cell.press_afresh()


def test_a_call_from_before_the_node_stood_still_ends_no_later_stop(cell: Cell) -> None:
    cell.press_afresh()
    os.kill(cell.process.pid, signal.SIGSTOP)
    enabling = cell.call(True)
    until_s = time.monotonic() + STOPPED_S
    cell.run(lambda: time.monotonic() > until_s, "the node stopped", pressed=False)
    moves = cell.moves()
    os.kill(cell.process.pid, signal.SIGCONT)
    cell.run(enabling.done, "a reply", pressed=None)
    assert not enabling.result().success
    assert "s old by its source timestamp" in enabling.result().message
    cell.run(cell.steps(30), "steps", pressed=None)
    assert cell.safety[-1].stopped
    assert not moves()
    cell.press_afresh()


def test_after_a_crash_a_deadman_that_is_still_pressed_moves_nothing(cell: Cell) -> None:
    cell.press_afresh()
    cell.start_again()
    cell.stands_for(40)
    assert cell.safety[-1].needs_press
    cell.press_afresh()


def test_a_respawned_node_with_default_parameters_waits_for_a_fresh_press(cell: Cell, exported: Path) -> None:
    cell.press_afresh()
    cell.stage.processes.kill(cell.process)
    cell.process = cell.stage.start(
        "draft_policy_node",
        autostart=True,
        safety__limits="none",
        checkpoint=str(exported / "draft"),
        gate__name="never",
        verifier_wait_s=0.0,
        contract=ball_contract(max_age_s=5.0),
    )
    cell.stands_for(40)
    assert cell.safety[-1].needs_press
    cell.press_afresh()
    cell.start_again()
    cell.press_afresh()


def has_subscription(publisher: Publisher) -> bool:
    return bool(publisher.get_subscription_count())


def test_no_program_that_starts_later_ends_a_stop(cell: Cell) -> None:
    """The button that stopped the robot has ended. The other program's first message may be lost."""
    cell.press_afresh()
    cell.stage.node.destroy_publisher(cell.deadman)
    for first in (1, 2):
        button = cell.stage.node.create_publisher(Bool, "enable", 100)
        cell.run(partial(has_subscription, button), "the button", pressed=None)
        button.publish(Bool(data=False))
        cell.run(lambda: cell.safety[-1].stopped, "the stop", pressed=None)
        cell.stage.node.destroy_publisher(button)
        cell.deadman = cell.stage.node.create_publisher(Bool, "enable", 100)
        if first == 1:
            cell.run(lambda: cell.deadman.get_subscription_count() > 0, "the deadman", pressed=None)
        else:
            cell.deadman.publish(Bool(data=True))  # before it is discovered
        cell.run(cell.steps(10), "steps")
        cell.stands_for(20)
        cell.deadman.publish(Bool(data=False))
        cell.stands_for(10)
        assert cell.safety[-1].stopped
        if first == 1:
            cell.stage.node.destroy_publisher(cell.deadman)
    cell.set_enabled(True)
    cell.run(cell.moves(), "motion")


def test_a_false_of_one_of_two_publishers_lasts_until_the_service_ends_it(cell: Cell) -> None:
    cell.press_afresh()
    button = cell.stage.node.create_publisher(Bool, "enable", 100)
    cell.run(lambda: button.get_subscription_count() > 0, "the button")
    cell.run(cell.moves(), "motion")
    button.publish(Bool(data=False))
    cell.run(lambda: cell.safety[-1].stopped, "the stop")
    cell.stands_for(30)
    button.publish(Bool(data=True))
    cell.run(cell.steps(5), "steps")
    cell.stage.node.destroy_publisher(button)
    cell.deadman.publish(Bool(data=False))
    cell.stands_for(30)
    assert cell.safety[-1].stopped
    cell.set_enabled(True)
    cell.run(cell.moves(), "motion")
