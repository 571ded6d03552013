# SPDX-License-Identifier: Apache-2.0
"""The control steps of one robot: every observation gets one command, with or without the target."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from adahi_ros.contract.assembler import Observation
from adahi_ros.contract.fields import InputError
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import GOAL, OBSERVATION
from adahi_ros.gates.gate_config import ControllerConfig
from adahi_ros.protocol.notice import Notice
from adahi_ros.protocol.records import NO_PLAN, ON_COURSE, UNSAID, Reason, StepRecord
from adahi_ros.protocol.request import Request
from adahi_ros.robot.assignments import AssignmentWatch
from adahi_ros.robot.controller import Controller, Step
from adahi_ros.robot.outcomes import ActiveStep, DraftError, Fallback, Outcome
from adahi_ros.robot.prefetch import RequestsAhead
from adahi_ros.robot.session import WITHOUT_REQUEST, VerifierSession, VerifierState
from adahi_ros.robot.step import ControlStep
from adahi_ros.robot.target_view import TargetView

if TYPE_CHECKING:
    from adahi_ros.robot.commander import Commander
    from adahi_ros.safety.commands import Outgoing

THE_ROBOT = np.array([True])
WAIT_POLICIES = ("wait", "ahead")
BUSY = "the verifier is busy; it gets no requests for the time that it named"
HELD_MEANWHILE = "the robot was held while the step waited for its reply"
NOT_MEASURED = "the arm was not measured again while the step waited for its reply"
UNTOLD = "instruction: empty, must say what to do: the target reads an instruction"


class ControlLoop(ControlStep):
    """Turns observations into commands, one step after the other.

    `step` takes an observation. With the wait policy `wait`, a step's command waits for its reply, until
    `poll` or the next observation finishes the step. With `ahead` the command goes out at once, and a reply
    serves later steps.

    Args:
        controller: drafts, gates and corrects.
        session: with the verifier.
        view: what the verifier sees of an observation window.
        robot_id: of the records.
        seed: of the controller's draws.
        deadline_s: longest wait for a reply with `wait`; may be changed between steps.
        commands: takes the actions.
        status: called with the record of every step.
        fallback: decides how long the draft may act alone.
        clock: monotonic time in seconds.
        ahead_period_s: control period of a robot with the wait policy `ahead`; None for `wait`.
        acts_within_s: a step that waits longer commands nothing, unless a newer observation ends it: the arm
            may have been moved since its own. Infinite for a simulator that waits for every command.
    """

    _stand_in: np.ndarray | None = None  # see `Controller.begin`
    _yields = False  # no action may be commanded yet

    def __init__(
        self,
        controller: Controller,
        session: VerifierSession,
        view: TargetView,
        robot_id: str,
        seed: int,
        deadline_s: float,
        commands: Commander,
        status: Callable[[StepRecord], None],
        fallback: Fallback,
        clock: Callable[[], float],
        ahead_period_s: float | None = None,
        acts_within_s: float = math.inf,
    ) -> None:
        self.controller = controller
        self.fallback = fallback
        self.deadline_s = deadline_s
        self.totals = Totals()
        self.instruction = ""
        self.assignments: AssignmentWatch | None = None  # before the first notice or assigned reply
        self._pushed = False  # a notice made the newest request
        self._instructed = False  # the plan or a pending request depends on the instruction
        self._session = session
        self._view = view
        view.share(controller.seen)
        session.accept_only(controller.policy.check)
        self._robot_id = robot_id
        self._seed = seed
        self._commands = commands
        self._status = status
        self._clock = clock
        self._acts_within_s = acts_within_s
        self._alone_s = 0.0
        self._waiting: ActiveStep | None = None
        self._last: ActiveStep | None = None
        self._spliced = ahead_period_s is not None  # with `ahead` a reply is in the plan already
        self._ahead: RequestsAhead | None = None
        if ahead_period_s is not None:
            self._ahead = RequestsAhead(session, ahead_period_s, self._received, controller.held.steps)
        self._arrived: Outcome | None = None  # since the last step, with `ahead`

    @property
    def next_due_s(self) -> float:
        """Latest time to call `poll`; infinite for never."""
        return self._session.next_due_s

    @property
    def plan_fault(self) -> str:
        """That plans end before the next ones arrive, for people; empty where they do not."""
        return "" if self._ahead is None else self._ahead.fault(self.controller.execution_horizon)

    @property
    def begins_alone(self) -> bool:
        """No verifier was found in time, and there was no step yet."""
        return self._is_unattended() and self._clock() >= self._alone_s

    def start(self, wait_s: float) -> None:
        """Wait for a verifier before the first step; after `wait_s` begin without one."""
        now_s = self._clock()
        self._alone_s = now_s + wait_s
        self._session.start(now_s)

    def change(self, config: ControllerConfig, deadline_s: float) -> None:
        """Use another configuration and deadline from the next step on; a pending step keeps its own."""
        if config.trigger == self.controller.config.trigger:
            config = replace(config, trigger=self.controller.config.trigger)  # keep what it has learned
        self.controller.config = config
        self.deadline_s = deadline_s

    def tell(self, instruction: str) -> None:
        """Use another instruction from now on, and drop plans for the former one.

        A pending step sends a new request. Plans of a target that reads no instruction stay valid.
        """
        if instruction == self.instruction:
            return
        self.instruction = instruction
        if self._instructed:
            self.controller.forget_plan()
            self._request_again()

    def notice(self, notice: Notice) -> bool:
        """Take in a verifier's notice; return whether it drops plans, because the assignment is new.

        A waiting step requests again, else the next step does. A request of an earlier notice stays the only
        one in flight, its reply is refused if it is older than this one; at a restart, all are cancelled.
        """
        watch = self._watch()
        if new := watch.noticed(notice):
            self.controller.forget_plan()
        pushed = self._pushed and (self._waiting is not None or self._ahead)
        if watch.restarted or (new and not pushed):
            self._request_again()
        return new

    def _watch(self) -> AssignmentWatch:
        if self.assignments is None:  # most robots never need one
            self.assignments = AssignmentWatch()
        return self.assignments

    def _request_again(self) -> None:
        """Cancel all requests; a pending step sends a new one."""
        waiting = self._cancelled()
        if waiting is not None:
            self._send_again(waiting)

    def _cancelled(self) -> ActiveStep | None:
        """Cancel all requests; return the pending step, which is none any more."""
        self._forget_plans()
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            assert waiting.pending is not None
            self._session.cancel(waiting.pending)
        return waiting

    def stop(self) -> None:
        """Drop a pending step without a command, and reset."""
        self._forget_plans()
        self._session.stop()
        if self.assignments is not None:
            self.assignments.begin()
        self._waiting = None
        self._last = None
        self.totals = Totals()
        self.fallback.reset()

    def poll(self, slack_s: float = 0.0) -> None:
        """Process what the verifier has sent, and what is due; see `VerifierSession.poll`."""
        self._session.poll(self._clock(), slack_s)
        if self.assignments is not None and self._session.link is VerifierState.ABSENT:
            self.assignments.verifier_lost()

    def observe(self, observation: Observation) -> float | None:
        """See `ControlStep`; none begins a step until a verifier was found, or for too long none."""
        received_s = self._clock()
        if self._is_unattended() and received_s < self._alone_s:
            self.totals.unattended += 1
            return None
        return received_s

    def settle(self, observation: Observation, received_s: float) -> bool:
        """See `ControlStep`; after a hold, or in a new episode, there is no plan any more.

        Raises:
            InputError: it has the number of the one before, but other values.
        """
        if self._waiting is not None:
            if is_repeated(observation, self._waiting.observation):
                self._waiting.newest, self._waiting.measured_s = observation, received_s
                return True
            self._supersede(observation, received_s)
        if self._last is not None and is_repeated(observation, self._last.observation):
            self._repeat(self._last, observation, received_s)
            return True
        resumes = self._commands.resumes()
        last = None if self._last is None else self._last.observation
        # A smaller step of the same episode: the counter was restarted.
        if last is None or observation.episode != last.episode or observation.step <= last.step:
            self._forget_plans()
            self.controller.reset(self._seed, [observation.episode])
        elif resumes:
            self._forget_plans()
            self.controller.forget_plan()
        return False

    def _repeat(self, last: ActiveStep, observation: Observation, received_s: float) -> None:
        self.totals.repeated += 1
        if last.withheld and (last.outdated or self._trouble is None):
            self._commands.observed()
            again = replace(last, observation=observation, received_s=received_s)
            self._send_again(replace(again, outdated=False, newest=None))
        else:
            self._commands.repeat(observation)

    def _send_again(self, before: ActiveStep) -> None:
        """Decide again on a step that was proposed before."""
        step = self.controller.again(before.step)
        active = replace(before, step=step, pending=None)
        outcome = self.decide(active)
        if outcome is not None:
            self._finish_late(active, outcome)

    def propose(self, observation: Observation, received_s: float) -> ActiveStep:
        """See `ControlStep`.

        Raises:
            DraftError: the policy proposes no valid action; the robot is held for this step, and the
                observation does not count.
        """
        try:
            step = self.controller.begin(
                {OBSERVATION: observation.values[None], GOAL: observation.goal[None]},
                self._session.estimate(received_s),
                at=observation.step,
                beside={name: values[None] for name, values in observation.named.items()},
                images=observation.images,
                stand_in=self._stand_in,
            )
        except ValueError as error:
            self.totals.undrafted += 1
            self._commands.command(self._without_action(observation), observation)
            raise DraftError(str(error)) from error
        active = ActiveStep(observation, step, received_s, 1e3 * (self._clock() - received_s))
        self._commands.observed()
        return active

    def _without_action(self, observation: Observation) -> Outgoing:
        """Return the commands of a step without an action of the policy: the arm is held."""
        return self._commands.limit(None, observation)

    def decide(self, active: ActiveStep) -> Outcome | None:
        """See `ControlStep`."""
        withheld = self.fallback.withholds and not self._goes_by_plan(active)
        outdated = self.assignments is not None and self.assignments.outdated
        wanted = bool(active.step.transmit[0]) or withheld or outdated
        trouble = self._trouble
        if self._ahead is not None:
            left, now_s = int(active.step.plan_left[0]), self._clock()
            if trouble is not None:
                if trouble.reason is not Reason.BUSY:  # then pending requests were accepted before
                    self._ahead.cancel()
            elif self._ahead.wants_request(wanted, left, now_s):
                committed = self._ahead.committed_steps(left)
                request = self._request(active, self._ahead.needed_in_s(left), committed)
                active.pending = self._ahead.submit(request, now_s)
            return self._so_far(active)
        if not wanted:
            return Outcome(None, Reason.NONE)
        if trouble is not None:
            return trouble
        self._waiting = active
        request = self._request(active, self.deadline_s)
        active.pending = self._session.submit(request, self.deadline_s, self._clock(), self._ended)
        return None

    @property
    def _trouble(self) -> Outcome | None:
        """Outcome of a step that needs a request but cannot send one; None where it can."""
        link = self._session.link
        if link is not VerifierState.READY:
            return Outcome(None, WITHOUT_REQUEST[link], self._session.trouble)
        assigned = self.assignments is not None and self.assignments.own
        if self._session.target.instruction and not (self.instruction.strip() or assigned):
            return Outcome(None, Reason.REFUSED, UNTOLD)
        if self._clock() < self._session.busy_until_s:
            return Outcome(None, Reason.BUSY, BUSY)
        return None

    def _is_unattended(self) -> bool:
        return self._session.link is VerifierState.ABSENT and self.totals.steps == 0

    def _supersede(self, newer: Observation, now_s: float) -> None:
        waiting, self._waiting = self._waiting, None
        assert waiting is not None
        assert waiting.pending is not None
        self._session.give_up(waiting.pending, now_s)
        episode, step = waiting.observation.key
        if newer.episode == episode and newer.step > step:
            waiting.newest, waiting.measured_s = newer, now_s
            self._finish_late(waiting, Outcome(None, Reason.SUPERSEDED))
        else:  # the draft belongs to an earlier episode: it must not move the robot now
            self._last = None
            self.totals.dropped += 1

    def _request(self, active: ActiveStep, needed_in_s: float, committed: int = 0) -> Request:
        """Return the request of a step, with the actions that are executed before its reply arrives."""
        without_actions = self.controller.drops_actions or self.controller.decodes
        if committed:
            draft = self.controller.committed(active.step, committed)
            committed = draft.actions.shape[1]
        else:
            draft = active.step.draft(THE_ROBOT)
        self._pushed = self.assignments is not None and self.assignments.requests()
        target = self._session.target
        instruction = self.instruction if target.instruction else ""
        self._instructed |= bool(instruction)
        observation, window = active.observation, self._view.window(target)
        episode, step = observation.episode, observation.step
        draft = self._session.sent_parts.select(draft, committed)
        content = committed, instruction, needed_in_s, without_actions
        return Request.from_draft(draft, episode, step, window, *content)

    def _received(self, step: int, committed: int, outcome: Outcome) -> None:
        """Take in the outcome of this step's request, with `ahead`."""
        outcome = self._of_assignment(outcome)
        if outcome.verification is not None:
            self.controller.receive(outcome.verification, step, THE_ROBOT, committed)
        self._arrived = outcome

    def _so_far(self, active: ActiveStep) -> Outcome:
        """Return the newest outcome since the step before; without a plan, say why."""
        arrived, self._arrived = self._arrived, None
        if arrived is None:
            arrived = Outcome(None, Reason.NONE)
        if active.step.plan_left[0] or arrived.reason is not Reason.NONE:
            return arrived
        return self._trouble or replace(arrived, reason=Reason.NO_PLAN)

    def _goes_by_plan(self, active: ActiveStep) -> bool:
        """Whether the step acts by what the robot holds of the target."""
        return bool(active.step.plan_left[0]) and not self.controller.drafts

    def _forget_plans(self) -> None:
        """Cancel pending requests and drop replies: they are outdated."""
        self._instructed = False
        self._arrived = None
        if self._ahead is not None:
            self._ahead.cancel()

    def _ended(self, outcome: Outcome) -> None:
        waiting, self._waiting = self._waiting, None
        assert waiting is not None
        self._finish_late(waiting, self._understood(waiting.step, self._of_assignment(outcome)))

    def _understood(self, step: Step, outcome: Outcome) -> Outcome:
        """Return the outcome with the actions to execute; without its reply, if these are invalid."""
        if outcome.verification is None or not self.controller.interprets:
            return outcome
        verdict = self.controller.understood(step, outcome.verification, THE_ROBOT)
        try:
            self.controller.policy.check(verdict.actions)
        except ValueError as error:
            return replace(outcome, verification=None, reason=Reason.BAD_REPLY, message=str(error))
        return replace(outcome, verification=verdict)

    def _finish_late(self, waiting: ActiveStep, outcome: Outcome) -> None:
        """End a step that waited; without an action if the robot was held, or its arm not measured, since."""
        if self._commands.resumes():
            self._forget_plans()
            self.controller.forget_plan()
            waiting.outdated, outcome = True, Outcome(None, Reason.SUPERSEDED, HELD_MEANWHILE)
        elif self._clock() - max(waiting.received_s, waiting.measured_s) > self._acts_within_s:
            waiting.outdated, outcome = True, Outcome(None, Reason.SUPERSEDED, NOT_MEASURED)
        self.finish(waiting, outcome)

    def _drop_waiting(self) -> None:
        """Cancel all requests; a pending step ends without an action."""
        waiting = self._cancelled()
        if waiting is not None:
            waiting.outdated = True
            self.finish(waiting, Outcome(None, Reason.SUPERSEDED, HELD_MEANWHILE))

    def _of_assignment(self, outcome: Outcome) -> Outcome:
        """Return the outcome; without its reply, if that was made before the robot's newest assignment."""
        if outcome.verification is None or not (outcome.assignment or self.assignments):
            return outcome
        watch = self._watch()
        if refusal := watch.refusal(outcome.assignment):
            return replace(outcome, verification=None, reason=Reason.SUPERSEDED, message=refusal)
        if watch.replied(outcome.assignment):
            self.controller.forget_plan()  # a reply may come before its notice
        return outcome

    def limit(self, active: ActiveStep, outcome: Outcome) -> Outgoing:
        """See `ControlStep`; a step without a verified action may be withheld."""
        by_plan = self._goes_by_plan(active)
        verdict = None if self._spliced else outcome.verification
        action: np.ndarray | None
        try:
            action = self.controller.finish(active.step, verdict)[0]
        except LookupError:
            action = None
        # A reply alone is not enough: all actions of a late one may be over.
        if self.fallback.alone and (by_plan or (verdict is not None and outcome.verification is not None)):
            self.fallback.reset()
        alone = outcome.reason is not Reason.NONE and not by_plan
        unverified = alone and not self.fallback.unverified()
        withheld = self._yields or unverified or action is None
        active.withheld = withheld or active.outdated
        active.outcome = outcome.withheld() if withheld and not active.outdated else outcome
        measured = active.newest or active.observation
        return self._commands.limit(None if active.withheld else action, measured)

    def command(self, active: ActiveStep, outgoing: Outgoing) -> np.ndarray | None:
        """See `ControlStep`."""
        return self._commands.command(outgoing, active.observation)

    def record(self, active: ActiveStep, executed: np.ndarray | None) -> None:
        """See `ControlStep`."""
        commanded = self._commands.commanded()
        if commanded is not None:
            self.controller.executed(commanded[None])
        self._last = active
        step, observation, outcome = active.step, active.observation, active.outcome
        verification = outcome.verification
        record = StepRecord(
            stamp_ns=observation.stamp_ns,
            robot_id=self._robot_id,
            episode=observation.episode,
            step=observation.step,
            gate=step.trigger.name,
            deviation=_known(step.deviation[0]),
            score=float(step.score[0]),
            threshold=step.trigger.threshold,
            transmitted=active.pending is not None,
            verified=verification is not None,
            accepted=() if verification is None else tuple(map(bool, verification.accepted[0])),
            reason=outcome.reason,
            reason_counts=self.totals.count(outcome.reason),
            message=outcome.message,
            proposer=self.controller.proposer,
            draft_action=_numbers(step.intended[0]),
            planned_action=_numbers(step.planned[0]),
            plan_age=int(step.plan_age[0]) if step.plan_left[0] else NO_PLAN,
            plan_left=int(step.plan_left[0]),
            expected_error=_expected_error(step.proposal),
            requests_pending=0 if self._ahead is None else len(self._ahead),
            action=() if executed is None else tuple(map(float, executed)),
            draft_ms=active.draft_ms,
            verify_ms=outcome.verify_ms,
            target_compute_ms=outcome.compute_ms,
            total_ms=1e3 * (self._clock() - active.received_s),
            request_bytes=0 if active.pending is None else active.pending.request_bytes,
            response_bytes=outcome.reply_bytes,
        )
        self.totals.add(record)
        self._status(record)


def _expected_error(proposal: Proposal | None) -> float:
    """Return the error that the proposer expects; `UNSAID` if it gives none."""
    expected = None if proposal is None else proposal.expected_error
    return UNSAID if expected is None or not np.isfinite(expected[0]) else float(expected[0])


def _known(number: float) -> float:
    """Return a number; NaN if it is infinite, because there was nothing to compare with."""
    return float(number) if np.isfinite(number) else float("nan")


def _numbers(action: np.ndarray) -> tuple[float, ...]:
    """Return an action (A,) as a tuple; empty if it has a NaN."""
    return () if np.isnan(action).any() else tuple(map(float, action))


@dataclass
class Totals:
    """Counts since the node was activated.

    Attributes:
        steps: finished steps.
        transmitted: steps with a request.
        verified: steps that executed their reply.
        coded: verified steps with codes of a draft.
        kept: coded steps that kept every drafted code.
        repeated: commands sent again for a repeated observation.
        commanded: steps with a command that no person gave.
        undrafted: observations without a command, because the policy made no valid action.
        reasons: steps by reason; those of `ON_COURSE` did not fall back.
    """

    steps: int = 0
    transmitted: int = 0
    verified: int = 0
    coded: int = 0
    kept: int = 0
    repeated: int = 0
    commanded: int = 0
    undrafted: int = 0
    dropped: int = 0
    unattended: int = 0
    reasons: Counter[Reason] = field(default_factory=Counter)

    @property
    def fallbacks(self) -> dict[str, int]:
        """Steps without the target's reply, by reason."""
        return {why.name.lower(): count for why, count in self.reasons.items() if why not in ON_COURSE}

    def count(self, reason: Reason) -> tuple[int, ...]:
        """Count the reason of one step; return the steps so far by reason."""
        self.reasons[reason] += 1
        return tuple(self.reasons[each] for each in Reason)

    def add(self, record: StepRecord) -> None:
        """Count the rest of one step."""
        self.steps += 1
        self.transmitted += record.transmitted
        self.verified += record.verified
        self.commanded += bool(record.action) and record.reason is not Reason.PERSON
        coded = record.verified and bool(record.accepted)
        self.coded += coded
        self.kept += coded and all(record.accepted)


def is_repeated(observation: Observation, before: Observation) -> bool:
    """Whether an observation repeats the one before.

    Raises:
        InputError: it has the number of the one before, but other values.
    """
    if (observation.episode, observation.step) != (before.episode, before.step):
        return False
    same_values = np.array_equal(observation.values, before.values)
    if same_values and np.array_equal(observation.goal, before.goal):
        return True
    raise InputError(
        "task_state.step_id",
        f"{observation.step} of episode {observation.episode} again, with other values; must rise",
    )
