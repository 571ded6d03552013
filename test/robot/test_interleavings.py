"""Whatever is lost, doubled, late or out of order, whoever comes and goes: every step is accounted for."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from adahi_ros.contract.fields import InputError
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import RequestFault
from adahi_ros.robot.link_estimate import RETRANSMISSIONS
from adahi_ros.robot.outcomes import DraftError
from adahi_ros.robot.session import PROBES_OUT, VerifierState
from test.robot.conftest import Fate, MakeRobot

FATE_OF = {
    Reason.NONE: {Fate.REPLIED},
    Reason.REFUSED: {Fate.REFUSED},
    Reason.BAD_REPLY: {Fate.BAD_REPLY, Fate.REPLIED},  # sound, but for the action that it makes
    Reason.DEADLINE: {Fate.MISSED},
    Reason.SUPERSEDED: {Fate.SUPERSEDED},
}
IN_TIME = {Fate.REPLIED, Fate.REFUSED, Fate.BAD_REPLY}
WRONG = [
    {},
    {"status": int(RequestFault.NOT_FINITE), "message": "goal[0]: nan"},
    {"status": int(RequestFault.TOKENIZER_MISMATCH)},
    {"status": int(RequestFault.WINDOW_UNKNOWN), "message": "base_window"},
    {"step": 77},
    {"first_step": 77},
    {"accepted": ()},
    {"actions": (math.nan, 0.0)},
    {"actions": (1e30, 0.0)},
    {"compute_ms": -1.0},
]
SHARES = st.sampled_from([0.0, 0.0, 0.1, 0.5, 1.0])
SECONDS = st.sampled_from([0.0, 0.001, 0.01, 0.05, 0.1, 0.3, 1.5])
DELAYS_S = st.sampled_from([0.001, 0.01, 0.02, 0.04, 0.06, 1.5])
MOSTLY = st.sampled_from([True, True, True, False])


class Interleavings(RuleBasedStateMachine):
    """Anything that may happen to a robot, in any order."""

    make_robot: MakeRobot

    @initialize(
        seed=st.integers(0, 2**32 - 1),
        gate=st.sampled_from(["always", "random"]),
        connects=MOSTLY,
    )
    def begin(self, seed: int, gate: str, connects: bool) -> None:
        robot = self.robot = self.make_robot(gate, seed)
        self.episode, self.step = 1, -1
        self.newest: Any = None
        self.fates: dict[int, Fate] = {}
        self.new: Counter[str] = Counter()  # observations since the start, by what became of them at once
        self.counted = self.requests = 0  # records and requests of before the start
        self.running = True
        if connects:
            robot.connect()
        else:
            robot.loop.start(0.2)

    # Observations

    def show(self, observation: Any) -> None:
        robot, totals = self.robot, self.robot.loop.totals
        before = Counter(repeated=totals.repeated, undrafted=totals.undrafted, unattended=totals.unattended)
        try:
            robot.show(observation)
        except DraftError:
            self.new["undrafted"] += 1
            assert totals.undrafted == before["undrafted"] + 1
        else:
            self.new["unattended"] += totals.unattended - before["unattended"]
            if totals.unattended == before["unattended"]:
                self.new["begun"] += 1
                self.newest = observation

    @precondition(lambda self: self.running)
    @rule(skipped=st.integers(0, 2))
    def see_next(self, skipped: int) -> None:
        self.step += 1 + skipped
        self.show(self.robot.observation(self.episode, self.step))

    @precondition(lambda self: self.running)
    @rule()
    def see_what_is_unsound(self) -> None:
        self.step += 1
        self.show(self.robot.observation(self.episode, self.step, math.nan))

    @precondition(lambda self: self.running)
    @rule(again=st.booleans())
    def begin_episode(self, again: bool) -> None:
        """Another episode, or the same from its first step."""
        self.episode += not again
        if again and self.newest is not None and self.newest.step == 0:
            return  # that would be the newest, with other values
        self.step = 0
        self.show(self.robot.observation(self.episode, 0))

    @precondition(lambda self: self.running and self.newest is not None)
    @rule(other=st.booleans())
    def see_again(self, other: bool) -> None:
        """The newest once more, or what only pretends to be; there is no new step."""
        robot = self.robot
        observation = replace(self.newest, stamp_ns=10**9)
        if other:
            observation = replace(observation, values=self.newest.values + 1000.0)
        before = len(robot.commands.sent), len(robot.session.submitted), len(robot.commands.repeated)
        with suppress(InputError):
            robot.show(observation)
            assert not other
        after = len(robot.commands.sent), len(robot.session.submitted), len(robot.commands.repeated)
        assert after[:2] == before[:2]
        assert after[2] - before[2] == (not other and not self.waits())

    def waits(self) -> bool:
        return any(each.fate is Fate.PENDING for each in self.robot.session.submitted)

    # Time, link and verifier

    @rule(duration_s=SECONDS)
    def pass_time(self, duration_s: float) -> None:
        self.robot.pass_time(duration_s)

    @rule(duration_s=SECONDS)
    def stall(self, duration_s: float) -> None:
        self.robot.stall(duration_s)

    @rule(loss=SHARES, doubling=SHARES, least_s=DELAYS_S, most_s=DELAYS_S)
    def change_link(self, loss: float, doubling: float, least_s: float, most_s: float) -> None:
        link = self.robot.link
        link.loss, link.doubling = loss, doubling
        link.delay_s = (min(least_s, most_s), max(least_s, most_s))

    @precondition(lambda self: self.running)
    @rule(changes=st.sampled_from(WRONG), duration_s=SECONDS)
    def see_next_and_have_a_wrong_reply(self, changes: dict[str, Any], duration_s: float) -> None:
        self.robot.verifier.changes = changes
        self.see_next(0)
        self.robot.pass_time(duration_s)
        self.robot.verifier.changes = {}

    @precondition(lambda self: self.running)
    @rule(duration_s=SECONDS, stalls=st.booleans())
    def see_next_and_wait(self, duration_s: float, stalls: bool) -> None:
        self.see_next(0)
        (self.robot.stall if stalls else self.robot.pass_time)(duration_s)

    @rule(present=MOSTLY, replies=MOSTLY, fits=MOSTLY)
    def change_verifier(self, present: bool, replies: bool, fits: bool) -> None:
        robot = self.robot
        robot.link.present, robot.verifier.replies = present, replies
        self.make_fit(fits)

    def make_fit(self, fits: bool) -> None:
        robot = self.robot
        spoken = robot.policy.signature.codes
        assert spoken is not None
        robot.verifier.speak(spoken.fingerprint if fits else "feedfacefeedface")

    @rule()
    def restart_verifier(self) -> None:
        self.robot.verifier.restart()

    @rule()
    def restore(self) -> None:
        """Everything is well again, for some time."""
        self.change_link(0.0, 0.0, 0.001, 0.01)
        self.change_verifier(True, True, True)
        self.robot.pass_time(2.0)

    @rule(gate=st.sampled_from(["always", "never", "random", "deviation"]), deadline_s=SECONDS)
    def set_parameters(self, gate: str, deadline_s: float) -> None:
        self.robot.choose(gate)
        self.robot.loop.deadline_s = max(1e-3, deadline_s)

    @rule()
    def read_the_estimate(self) -> None:
        session, now_s = self.robot.session, self.robot.link.now_s
        first = repr((session.estimate(now_s), session.link, session.next_due_s, session.on_trial))
        session.estimate(now_s + 10.0)
        assert repr((session.estimate(now_s), session.link, session.next_due_s, session.on_trial)) == first

    # The end of all that, and its beginning

    @precondition(lambda self: self.running)
    @rule()
    def stop(self) -> None:
        self.account()
        robot = self.robot
        robot.loop.stop()
        self.running = False
        assert robot.loop.next_due_s == math.inf
        assert not robot.link.open
        assert not self.waits()
        before = repr((robot.records, robot.commands.sent, robot.session.estimate(0.0), robot.session.link))
        robot.link.now_s = max([robot.link.now_s, *(each[0] for each in robot.link.on_air)])
        robot.loop.poll()
        after = repr((robot.records, robot.commands.sent, robot.session.estimate(0.0), robot.session.link))
        assert after == before

    @precondition(lambda self: not self.running)
    @rule(wait_s=SECONDS)
    def start(self, wait_s: float) -> None:
        robot = self.robot
        robot.loop.start(wait_s)
        self.running = True
        self.newest = None
        self.new.clear()
        self.counted, self.requests = len(robot.records), len(robot.session.submitted)

    # What always holds

    @invariant()
    def account(self) -> None:
        """Every observation has one command or a reason, every request one fate, every byte is counted."""
        if not self.running:
            return
        robot, totals = self.robot, self.robot.loop.totals
        records = robot.records[self.counted :]
        waiting = int(self.waits())
        assert self.new["begun"] == len(records) + totals.dropped + waiting
        assert (self.new["undrafted"], self.new["unattended"]) == (totals.undrafted, totals.unattended)
        assert totals.steps == totals.reasons.total() == len(records)
        assert [stamp for stamp, _ in robot.commands.sent] == [each.stamp_ns for each in robot.records]
        assert [action for _, action in robot.commands.sent] == [each.action for each in robot.records]
        assert len({each.stamp_ns for each in robot.records}) == len(robot.records)
        assert len(robot.commands.repeated) >= totals.repeated

    @invariant()
    def every_request_has_one_fate(self) -> None:
        session, records = self.robot.session, {each.stamp_ns: each for each in self.robot.records}
        waiting = 0
        for number, submitted in enumerate(session.submitted):
            pending, fate = submitted.pending, submitted.fate
            record = records.get(submitted.stamp_ns)
            assert self.fates.setdefault(number, fate) in (fate, Fate.PENDING)
            self.fates[number] = fate
            assert pending.retransmissions <= RETRANSMISSIONS + 1
            if fate is Fate.PENDING:
                waiting += 1
                assert record is None
                assert pending.sent_s
                assert pending.deadline_s > self.robot.link.now_s or not self.running
                continue
            assert not pending.sent_s
            reported = fate in IN_TIME or fate is Fate.MISSED
            assert session.outcomes[number] == reported
            assert record is not None or fate in (Fate.SUPERSEDED, Fate.CANCELLED)
            if record is not None:
                assert record.transmitted
                assert fate in FATE_OF[record.reason]
                assert record.request_bytes == pending.request_bytes
                assert (record.response_bytes > 0) == (fate in IN_TIME)
        assert waiting <= 1
        transmitted = {each.stamp_ns for each in self.robot.records if each.transmitted}
        assert transmitted <= {each.stamp_ns for each in session.submitted}

    @invariant()
    def every_byte_is_counted(self) -> None:
        robot = self.robot
        counted = sum(each.pending.request_bytes for each in robot.session.submitted)
        assert counted == sum(robot.link.sent.values())
        pending = sum(len(each.pending.sent_s) for each in robot.session.submitted)
        assert pending <= len(robot.link.open) <= pending + PROBES_OUT

    @invariant()
    def what_is_executed_is_the_draft_or_the_reply_in_time_to_its_own_request(self) -> None:
        deadlines = {each.stamp_ns: each.deadline_s for each in self.robot.session.submitted}
        for record in self.robot.records:
            if record.verified:
                assert record.action == self.robot.verified_action(record)
                assert record.verify_ms <= 1e3 * deadlines[record.stamp_ns] + 1e-6
            else:
                assert record.action == record.draft_action

    @invariant()
    def the_estimate_counts_what_has_ended(self) -> None:
        if not self.running:
            return
        fates = [each.fate for each in self.robot.session.submitted[self.requests :]]
        estimate = self.robot.session.estimate(self.robot.link.now_s)
        assert estimate.replies == sum(fate in IN_TIME - {Fate.BAD_REPLY} for fate in fates)
        missed = sum(fate in (Fate.MISSED, Fate.SUPERSEDED) for fate in fates)
        assert estimate.requests == estimate.replies + missed

    @invariant()
    def trouble_is_reported(self) -> None:
        session = self.robot.session
        assert bool(session.trouble) == (session.link is not VerifierState.READY)

    def teardown(self) -> None:
        if getattr(self, "running", False):
            self.stop()
            self.every_request_has_one_fate()


def test_every_interleaving_is_accounted_for(make_robot: MakeRobot) -> None:
    machine = type("Machine", (Interleavings,), {"make_robot": staticmethod(make_robot)})
    run_state_machine_as_test(machine, settings=settings(max_examples=200, stateful_step_count=40))
