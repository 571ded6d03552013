"""Robots across a link, on observations that tell their step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from test.toys import Numbered, numbered

from adahi_lab.calibration.recorded_world import RecordedWorld
from adahi_lab.evaluation import rollout as rollouts
from adahi_lab.evaluation.rollout import Log, rollout
from adahi_lab.evaluation.step_link import Across, LinkCourse, StepLink
from adahi_ros.core.plan import Plan
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.gates.interface import Gate, GateContext
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

DRAFTED = 1000.0


def gone(
    steps: int,
    link: StepLink | None,
    *,
    every: int = 0,
    horizon: int = 4,
    late: int = 0,
    field: str = "positions",
    bad: Sequence[int] = (),
    patience: int = 0,
) -> tuple[list[int], list[float], list[float]]:
    """Go on by plans, a new one every so many steps, or by drafts, each of which is sent.

    Returns:
        Steps that asked; of each step, when what was done was proposed, and for which step.
    """
    across = None if link is None else Across(link, field, patience)
    planner = Numbered(horizon if every else 1)
    trigger = ThresholdedGate("age", every - 1) if every else ThresholdedGate("always")
    draft = planner if every else Numbered(1, DRAFTED)
    robot = Controller(draft, ControllerConfig(trigger), "plan" if every else "draft")
    log = rollout(
        numbered(steps, bad), robot, TargetVerifier(planner, "replace"), 1, [0, 1], late=late, across=across
    )
    np.testing.assert_array_equal(log.action[:, 0], log.action[:, 1])
    np.testing.assert_array_equal(log.transmitted[:, 0], log.transmitted[:, 1])
    return requested(log), log.action[:, 0, 0].tolist(), log.action[:, 0, 1].tolist()


def requested(log: Log) -> list[int]:
    steps: list[int] = np.flatnonzero(log.transmitted[:, 0]).tolist()
    return steps


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """From a step to links that lose what is asked for there."""

    def lose(bad: int) -> None:
        class Losing(LinkCourse):
            def round_trip(self, step: int) -> tuple[np.ndarray, np.ndarray]:
                taken, lost = super().round_trip(step)
                lost = lost | (step == bad)
                return np.where(lost, self.link.timeout, taken), lost

        monkeypatch.setattr(rollouts, "LinkCourse", Losing)

    return lose


@pytest.mark.parametrize(
    ("steps", "how", "requested", "made_at", "as_planned"),
    [
        (9, {"every": 3}, [0, 3, 6], [0, 0, 0, 3, 3, 3, 6, 6, 6], 9),
        # Used from the step on at which it is there; who waits for a reply does not ask.
        (8, {"every": 1, "late": 3}, [0, 1, 4, 7], [0, 0, 0, 0, 1, 1, 1, 4], 4),
        # The first reply is there at once: who has no plan rests, and the world with it.
        (12, {"every": 2, "late": 2}, [0, 2, 4, 6, 8, 10], [0, 0, 0, 0, 2, 2, 4, 4, 6, 6, 8, 8], 12),
        # What is no action is dropped, and asked for again.
        (8, {"every": 1, "late": 2, "bad": [1]}, [0, 1, 3, 5, 7], [0, 0, 0, 0, 0, 3, 3, 5], 4),
    ],
)
def test_a_plan_is_followed_from_the_step_at_which_it_is_there(
    steps: int, how: dict[str, Any], requested: list[int], made_at: list[int], as_planned: int
) -> None:
    found, proposed, meant_for = gone(steps, None, **how)
    assert (found, proposed) == (requested, made_at)
    assert meant_for[:as_planned] == list(range(as_planned))


@pytest.mark.parametrize("late", [0, 3])
def test_a_robot_without_a_plan_does_not_move(late: int) -> None:
    steps, _, meant_for = gone(6, None, every=4, late=late, bad=[0, 1])
    assert steps == [0, 1, 2]  # until it has one
    assert meant_for == [0, 0, 2, 3, 4, 5]


def commitments(world: RecordedWorld, every: int, late: int) -> list[np.ndarray | None]:
    """Return what the target reads at each request of actions that are executed before the reply."""
    planner = Numbered()
    robot = Controller(planner, ControllerConfig(ThresholdedGate("age", every - 1)), "plan")
    rollout(world, robot, TargetVerifier(planner, "replace", agreement="continue"), 1, [0, 1], late=late)
    return planner.committed


def test_a_late_request_says_what_is_done_until_its_reply_is_there() -> None:
    first, second, third = commitments(numbered(6), every=2, late=2)
    assert first is not None
    assert first.shape == (2, 2, 2)
    assert np.isnan(first).all()  # there is no plan yet
    np.testing.assert_array_equal(second, [[[0, 2], [0, 3]]] * 2)  # asked for at 0, for steps 2 and 3
    np.testing.assert_array_equal(third, [[[2, 4], [2, 5]]] * 2)
    _, short = commitments(numbered(5), every=3, late=2)
    assert short is not None
    np.testing.assert_array_equal(short[:, 0], [[0, 3]] * 2)
    assert np.isnan(short[:, 1]).all()  # the plan is over by then
    assert commitments(numbered(4), every=2, late=0) == [None, None]


def test_a_late_plan_that_is_no_action_is_never_committed_to() -> None:
    committed = commitments(numbered(8, bad=[1]), every=1, late=2)
    np.testing.assert_array_equal(committed[2], [[[0, 3], [np.nan, np.nan]]] * 2)


def test_who_drafts_is_held_until_the_reply_and_executes_it_for_one_period() -> None:
    steps, proposed, meant_for = gone(8, StepLink(delay=2))
    assert steps == [0, 3, 6]
    assert meant_for == [0, 0, 0, 0, 0, 3, 3, 3]  # of the step that asked
    assert max(proposed) < DRAFTED  # no draft is ever executed
    _, _, stopped = gone(8, StepLink(delay=2), field="velocities")
    assert stopped == [0, 0, 0, 0, 0, 3, 0, 0]


def test_a_plan_that_would_end_before_the_reply_is_requested_earlier() -> None:
    steps, proposed, meant_for = gone(10, StepLink(delay=2), every=6, horizon=6)
    assert steps == [0, 4, 8]  # by its gate alone it would ask at the sixth step
    assert proposed == [0, 0, 0, 0, 0, 0, 4, 4, 4, 4]
    assert meant_for == [0, 0, *range(2, 10)]  # held until its first plan is there


def test_where_a_plan_is_over_before_the_reply_is_there_the_robot_is_held() -> None:
    _, _, meant_for = gone(9, StepLink(delay=3), every=1)
    assert meant_for == [0, 0, 0, 3, 3, 3, 6, 6, 6]  # of four actions, three steps late, one is left
    _, _, stopped = gone(9, StepLink(delay=3), every=1, field="velocities")
    assert stopped == [0, 0, 0, 3, 0, 0, 6, 0, 0]
    _, _, stopped = gone(9, StepLink(delay=4), every=1, field="velocities")
    assert stopped == [0] * 9


def test_a_reply_is_as_late_as_the_method_or_the_link_whichever_is_later() -> None:
    assert gone(12, StepLink(delay=1), every=2, late=2) == gone(12, StepLink(delay=2), every=2)
    assert gone(12, StepLink(delay=2), every=2, late=1) == gone(12, StepLink(delay=2), every=2)


def test_an_episodes_first_request_is_late_and_lost_as_any_other(losing: Callable[[int], None]) -> None:
    losing(0)
    steps, _, meant_for = gone(8, StepLink(delay=1), every=4)
    assert steps == [0, 2, 5]  # given up after two steps, and sent again
    assert meant_for == [0, 0, 0, 3, 4, 5, 6, 7]
    steps, _, meant_for = gone(6, StepLink(), every=4)
    assert (steps, meant_for) == ([0, 1, 5], [0, 1, 2, 3, 4, 5])


def test_after_each_lost_reply_in_a_row_a_robot_waits_twice_as_long() -> None:
    steps, _, _ = gone(20, StepLink(delay=1, loss=1 - 1e-9), every=4)
    assert steps == [0, 2, 6, 14]
    assert gone(7, StepLink(delay=1, loss=1 - 1e-9))[0] == [0, 2, 4, 6]  # with a new draft each


def test_a_lost_request_for_a_lasting_reply_is_sent_again_with_patience(
    losing: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    losing(0)
    steps, _, _ = gone(8, StepLink(delay=1), every=4, patience=5)
    assert steps[:2] == [0, 2]  # a plan is over before that
    monkeypatch.setattr(Plan, "steps", 100)
    steps, _, meant_for = gone(8, StepLink(delay=1), every=4, patience=5)
    assert (steps, meant_for) == ([0, 5], [0, 0, 0, 0, 0, 0, 6, 7])


def test_what_is_lost_is_given_up_and_requested_again(losing: Callable[[int], None]) -> None:
    losing(2)
    steps, proposed, meant_for = gone(9, StepLink(delay=1), every=2)
    assert steps == [0, 2, 4, 6, 8]
    assert proposed == [0, 0, 0, 0, 0, 4, 4, 6, 6]
    assert meant_for == [0, 1, 2, 3, 3, 5, 6, 7, 8]  # held for a step, until the plan of step 4 is there
    steps, proposed, meant_for = gone(8, StepLink(delay=1))
    assert steps == [0, 2, 4, 6]  # held from 2 on, asks with a new draft at 4
    assert meant_for == [0, 0, 0, 0, 0, 4, 4, 6]
    assert max(proposed) < DRAFTED


def test_who_drafts_asks_again_of_what_was_lost_whatever_its_gate_says(losing: Callable[[int], None]) -> None:
    losing(2)

    class OnlyThen(Gate):
        blind = True

        def score(self, context: GateContext) -> np.ndarray:
            return np.full(2, float(context.step == 2))

    robot = Controller(Numbered(1, DRAFTED), ControllerConfig(ThresholdedGate("only_then", 0.5, OnlyThen())))
    across = Across(StepLink(delay=1), "positions")
    verifier = TargetVerifier(Numbered(1), "replace")
    log = rollout(numbered(8), robot, verifier, 1, [0, 1], across=across)
    assert requested(log) == [2, 4]
    assert log.action[:, 0, 0].tolist() == [1000, 1001, 1001, 1001, 1001, 4, 1006, 1007]
