"""The same for a robot that goes on by its plan: it never waits, and does what a plan says for that step."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, run_state_machine_as_test

from adahi_ros.protocol.description import LONGEST_HISTORY
from adahi_ros.protocol.records import NO_PLAN
from adahi_ros.robot.prefetch import MOST_IN_FLIGHT
from test.robot.conftest import Fate, MakeRobot
from test.robot.simulated import planned
from test.robot.test_interleavings import IN_TIME, MOSTLY, Interleavings

HORIZON = 8


class InterleavingsAhead(Interleavings):
    """Anything that may happen to a robot whose wait policy is `ahead`."""

    @initialize(
        seed=st.integers(0, 2**32 - 1), gate=st.sampled_from(["always", "random", "never"]), connects=MOSTLY
    )
    def begin(self, seed: int, gate: str, connects: bool) -> None:
        make_robot = self.make_robot
        self.make_robot = lambda *arguments: make_robot(*arguments, plans=HORIZON)
        super().begin(seed, gate, connects)

    def waits(self) -> bool:
        return False

    def make_fit(self, fits: bool) -> None:
        self.robot.verifier.describe_otherwise(history=1 if fits else LONGEST_HISTORY + 1)

    @invariant()
    def every_request_has_one_fate(self) -> None:
        session = self.robot.session
        by_stamp = {each.stamp_ns: each for each in self.robot.records}
        in_flight = 0
        for number, submitted in enumerate(session.submitted):
            pending, fate = submitted.pending, submitted.fate
            assert self.fates.setdefault(number, fate) in (fate, Fate.PENDING)
            self.fates[number] = fate
            assert by_stamp[submitted.stamp_ns].transmitted
            assert session.outcomes[number] == (fate in IN_TIME or fate is Fate.MISSED)
            assert bool(pending.sent_s) == (fate is Fate.PENDING)
            in_flight += fate is Fate.PENDING
        assert in_flight <= (MOST_IN_FLIGHT if self.running else 0)
        sent = {each.stamp_ns for each in session.submitted}
        assert {each.stamp_ns for each in self.robot.records if each.transmitted} == sent

    @invariant()
    def what_is_executed_is_the_draft_or_the_reply_in_time_to_its_own_request(self) -> None:
        """Here to an earlier request of the same episode: what that reply says for this step."""
        replied = {
            (each.stamp_ns, each.pending.request.episode, each.pending.request.step)
            for each in self.robot.session.submitted
            if each.fate is Fate.REPLIED
        }
        for record in self.robot.records:
            assert record.action == record.draft_action
            assert record.total_ms == 0.0
            if record.plan_age == NO_PLAN:
                assert (record.planned_action, record.plan_left) == ((), 0)
                continue
            requested = record.step - record.plan_age
            assert 1 <= record.plan_age < HORIZON
            assert 1 <= record.plan_left < 2 * HORIZON  # the next plan may be there already
            assert record.action == record.planned_action
            assert any(
                (episode, step) == (record.episode, requested)
                and record.action == (planned(number, record.step),) * len(record.action)
                for number, episode, step in replied
            )


def test_every_interleaving_is_accounted_for(make_robot: MakeRobot) -> None:
    machine = type("Machine", (InterleavingsAhead,), {"make_robot": staticmethod(make_robot)})
    run_state_machine_as_test(machine, settings=settings(max_examples=120, stateful_step_count=40))
