"""Robots across a link, on observations that tell their step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from adahi_ros.core.proposal import ActionRange, Proposal
from adahi_ros.core.signature import OBSERVATION, Feature, Observations, Signature
from adahi_ros.core.trajectories import Trajectories
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.gates.interface import Gate, GateContext
from adahi_ros.lab.calibration.recorded_world import RecordedWorld
from adahi_ros.lab.evaluation import rollout as rollouts
from adahi_ros.lab.evaluation.rollout import Log, rollout
from adahi_ros.lab.evaluation.step_link import Across, LinkCourse, StepLink
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

DRAFTED = 1000.0


class Numbered(ActionRange, Policy):
    """Plans T actions, each telling at which step it was proposed, and for which it is.

    Args:
        horizon: T.
        offset: added to the first of both, so that drafts can be told from replies.
    """

    def __init__(self, horizon: int, offset: float = 0.0) -> None:
        super().__init__(np.full(2, -1.0), np.full(2, 1e4))
        self.signature = Signature(1, horizon, 2, (Feature(OBSERVATION, 6),))
        self.digest, self.draws, self.action_scale = "numbered", 1, np.ones(2, np.float32)
        self._offset = offset

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        step = observations.features[OBSERVATION][:, -1, :1]
        ahead = np.arange(self.signature.horizon)
        told = np.repeat(step + self._offset, len(ahead), axis=1)
        return Proposal(np.stack([told, step + ahead], axis=-1).astype(np.float32))


def world(steps: int) -> RecordedWorld:
    """Two episodes whose observations tell their step."""
    observations = np.zeros((2, steps, 6), np.float32)
    observations[..., 0] = np.arange(steps)
    actions, goals = np.zeros((2 * steps, 2), np.float32), np.zeros((2, 0), np.float32)
    ends = np.array([steps, 2 * steps])
    return RecordedWorld(Trajectories("ball", observations.reshape(-1, 6), actions, goals, ends))


def gone(
    steps: int,
    link: StepLink | None,
    *,
    every: int = 0,
    horizon: int = 4,
    late: int = 0,
    field: str = "positions",
) -> tuple[list[int], list[float], list[float]]:
    """Go on by plans, a new one every so many steps, or by drafts, each of which is sent.

    Returns:
        Steps that asked; of each step, when what was done was proposed, and for which step.
    """
    across = None if link is None else Across(link, field)
    planner = Numbered(horizon if every else 1)
    trigger = ThresholdedGate("age", every - 1) if every else ThresholdedGate("always")
    draft = planner if every else Numbered(1, DRAFTED)
    robot = Controller(draft, ControllerConfig(trigger), "plan" if every else "draft")
    log = rollout(
        world(steps), robot, TargetVerifier(planner, "replace"), 1, [0, 1], late=late, across=across
    )
    return asked(log), log.action[:, 0, 0].tolist(), log.action[:, 0, 1].tolist()


def asked(log: Log) -> list[int]:
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


def test_a_link_without_delay_changes_nothing() -> None:
    assert gone(9, StepLink(), every=3) == gone(9, None, every=3)
    assert gone(9, StepLink()) == gone(9, None)
    assert gone(9, StepLink(), every=2, late=1) == gone(9, None, every=2, late=1)


def test_who_drafts_is_held_until_the_reply_and_executes_it_for_one_period() -> None:
    steps, proposed, meant_for = gone(8, StepLink(delay=2))
    assert steps == [0, 1, 4, 7]  # an episode begins with its first reply
    assert meant_for == [0, 0, 0, 1, 1, 1, 4, 4]  # of the step that asked
    assert max(proposed) < DRAFTED  # no draft is ever executed
    _, _, stopped = gone(8, StepLink(delay=2), field="velocities")
    assert stopped == [0, 0, 0, 1, 0, 0, 4, 0]


def test_a_plan_goes_on_while_its_successor_is_under_way() -> None:
    steps, proposed, meant_for = gone(10, StepLink(delay=2), every=2)
    assert steps == [0, 2, 4, 6, 8]
    assert meant_for == list(range(10))
    assert proposed == [0, 0, 0, 0, 2, 2, 4, 4, 6, 6]


def test_a_plan_is_asked_for_as_soon_as_it_would_end_before_the_reply_is_there() -> None:
    steps, proposed, meant_for = gone(10, StepLink(delay=2), every=6, horizon=6)
    assert steps == [0, 4, 8]  # by its gate alone it would ask at the sixth step
    assert proposed == [0, 0, 0, 0, 0, 0, 4, 4, 4, 4]
    assert meant_for == list(range(10))


def test_where_a_plan_is_over_before_the_reply_is_there_the_robot_is_held() -> None:
    _, _, meant_for = gone(9, StepLink(delay=6), every=1)
    assert meant_for == [0, 1, 2, 3, 3, 3, 3, 3, 3]  # of four actions, six steps late, none is left
    _, _, stopped = gone(9, StepLink(delay=6), every=1, field="velocities")
    assert stopped == [0, 1, 2, 3, 0, 0, 0, 0, 0]


def test_a_reply_is_as_late_as_the_method_or_the_link_whichever_is_later() -> None:
    assert gone(12, StepLink(delay=1), every=2, late=2) == gone(12, None, every=2, late=2)
    assert gone(12, StepLink(delay=2), every=2, late=1) == gone(12, StepLink(delay=2), every=2)


def test_what_is_lost_is_given_up_and_asked_for_anew(losing: Callable[[int], None]) -> None:
    losing(2)
    steps, proposed, meant_for = gone(9, StepLink(delay=1), every=2)
    assert steps == [0, 2, 4, 6, 8]
    assert proposed == [0, 0, 0, 0, 0, 4, 4, 6, 6]
    assert meant_for == [0, 1, 2, 3, 3, 5, 6, 7, 8]  # held for a step, until the plan of step 4 is there
    losing(1)
    steps, proposed, meant_for = gone(8, StepLink(delay=1))
    assert steps == [0, 1, 3, 5, 7]  # held from 1 on, asks with a new draft at 3
    assert meant_for == [0, 0, 0, 0, 3, 3, 5, 5]
    assert max(proposed) < DRAFTED


def test_who_drafts_asks_again_of_what_was_lost_whatever_its_gate_says(
    losing: Callable[[int], None],
) -> None:
    losing(2)

    class OnlyThen(Gate):
        blind = True

        def score(self, context: GateContext) -> np.ndarray:
            return np.full(2, float(context.step == 2))

    robot = Controller(Numbered(1, DRAFTED), ControllerConfig(ThresholdedGate("only_then", 0.5, OnlyThen())))
    across = Across(StepLink(delay=1), "positions")
    verifier = TargetVerifier(Numbered(1), "replace")
    log = rollout(world(8), robot, verifier, 1, [0, 1], across=across)
    assert asked(log) == [2, 4]
    assert log.action[:, 0, 0].tolist() == [1000, 1001, 1001, 1001, 1001, 4, 1006, 1007]


def test_robots_side_by_side_have_links_of_their_own() -> None:
    """Whose replies come at different steps get each their own, at any of them."""
    across = Across(StepLink(delay=1, jitter=4, loss=0.3), "positions")
    observations = np.zeros((4, 40, 6), np.float32)
    observations[..., 0] = np.arange(40) + 100.0 * np.arange(4)[:, None]
    ends = np.arange(40, 161, 40)
    actions, goals = np.zeros((160, 2), np.float32), np.zeros((4, 0), np.float32)
    recorded = Trajectories("ball", observations.reshape(-1, 6), actions, goals, ends)

    robot = Controller(Numbered(1, DRAFTED), ControllerConfig(ThresholdedGate("always")))
    verifier = TargetVerifier(Numbered(1), "replace")
    log = rollout(RecordedWorld(recorded), robot, verifier, 1, [3, 4, 5, 6], across=across)
    assert (log.action[..., 0] // 100 == np.arange(4)).all()  # each of its own episode
    for column, episode in zip(log.transmitted.T, (3, 4, 5, 6), strict=True):
        course, expected = LinkCourse(across.link, 1, [episode]), [0, 1]
        while True:
            taken, lost = course.round_trip(expected[-1])
            expected.append(expected[-1] + int(taken[0]) + int(not lost[0]))  # executed before it goes on
            if expected[-1] >= 40:
                break
        assert np.flatnonzero(column).tolist() == expected[:-1]
