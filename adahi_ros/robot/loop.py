# SPDX-License-Identifier: Apache-2.0
"""The control steps of one robot: every observation gets one command, with or without the target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from adahi_ros.contract.assembler import Observation
from adahi_ros.contract.fields import InputError
from adahi_ros.core.signature import GOAL, OBSERVATION
from adahi_ros.gates.gate_config import ControllerConfig
from adahi_ros.protocol.records import Reason, StepRecord
from adahi_ros.protocol.request import Request, reported_round_trip_ms
from adahi_ros.robot.controller import Controller, Step
from adahi_ros.robot.session import VerifierSession, VerifierState
from adahi_ros.robot.steps import ActiveStep, Fallback, Outcome, Totals
from adahi_ros.robot.target_view import TargetView

if TYPE_CHECKING:
    from adahi_ros.robot.prefetch import RequestsAhead

THE_ROBOT = np.array([True])
WAIT_POLICIES = ("wait", "ahead")
WITHOUT_REQUEST = {
    VerifierState.ABSENT: Reason.NO_VERIFIER,
    VerifierState.MISMATCHED: Reason.REFUSED,
    VerifierState.UNRESPONSIVE: Reason.BREAKER_OPEN,
}
BUSY = "the verifier has more to do than it can, and is left alone for as long as it said"
UNTOLD = "instruction: none was told, and the target is told what to do in a sentence"


class CommandSink(Protocol):
    """Takes what a robot is to do, as far as that is safe."""

    def heard(self) -> None:
        """There was a new observation that the policy can act on."""

    def send(self, action: np.ndarray, observation: Observation) -> np.ndarray | None:
        """Command an action (A,); return what is commanded, as an action, or None where nothing is."""

    def repeat(self, observation: Observation) -> None:
        """Command the same again, for an observation that was repeated."""

    def withhold(self) -> None:
        """Hold the robot: there is an observation, and no action that may be commanded."""

    def resumes(self) -> bool:
        """Whether a hold or a gap ends, so that plans from before it are outdated; asked once for each."""

    def commanded(self) -> np.ndarray | None:
        """Return what was commanded last, as an action (A,); None where nothing was since."""


class DraftError(ValueError):
    """The policy proposes nothing that may be executed; says what, and what is allowed."""


class ControlLoop:
    """Turns observations into commands, one step after the other.

    Blocks nowhere. By the wait policy `wait`, the command of a step waits for its reply, until `poll` or the
    next observation goes on with it; by `ahead` it goes out at once, and a reply serves the steps after it.

    Args:
        controller: drafts, gates and corrects.
        session: with the verifier, which gets a request where the gate says so.
        view: what the verifier gets to see of an observation window.
        robot_id: of the records.
        seed: of the controller's draws.
        deadline_s: for a reply that is waited for; may be changed between steps.
        commands: takes the actions.
        status: told of every step.
        fallback: says how long the draft may act alone.
        clock: the time in seconds; never goes back.
        ahead_period_s: of the control steps, of a robot whose wait policy is `ahead`; None for `wait`.
    """

    def __init__(
        self,
        controller: Controller,
        session: VerifierSession,
        view: TargetView,
        robot_id: str,
        seed: int,
        deadline_s: float,
        commands: CommandSink,
        status: Callable[[StepRecord], None],
        fallback: Fallback,
        clock: Callable[[], float],
        ahead_period_s: float | None = None,
    ) -> None:
        self.controller = controller
        self.fallback = fallback
        self.deadline_s = deadline_s
        self.totals = Totals()
        self.instruction = ""
        self._told = False  # of what is planned or under way, something was asked with a sentence
        self._session = session
        self._view = view
        view.share(controller.seen)
        self._robot_id = robot_id
        self._seed = seed
        self._commands = commands
        self._status = status
        self._clock = clock
        self._alone_s = 0.0
        self._waiting: ActiveStep | None = None
        self._last: ActiveStep | None = None
        self._ahead: RequestsAhead | None = None
        if ahead_period_s is not None:
            from adahi_ros.robot.prefetch import RequestsAhead

            self._ahead = RequestsAhead(session, ahead_period_s, self._received)
        self._arrived: Outcome | None = None  # since the last step, where none is waited for

    @property
    def next_due_s(self) -> float:
        """When `poll` must be called, at the latest; infinite for never."""
        return self._session.next_due_s

    @property
    def begins_alone(self) -> bool:
        """No verifier was found in the time there was, and the first step is yet to be made."""
        return self._is_unattended() and self._clock() >= self._alone_s

    def start(self, wait_s: float) -> None:
        """Look for a verifier, so long before the first step; without one the drafts are executed."""
        now_s = self._clock()
        self._alone_s = now_s + wait_s
        self._session.start(now_s)

    def change(self, config: ControllerConfig, deadline_s: float) -> None:
        """Draft, judge and wait otherwise from the next step on; one that waits goes on as it began."""
        if config.trigger == self.controller.config.trigger:
            config = replace(config, trigger=self.controller.config.trigger)  # with what it has learned
        self.controller.config = config
        self.deadline_s = deadline_s

    def tell(self, instruction: str) -> None:
        """Take what the target is told from now on; what it planned for something else is dropped.

        A step that waits for a reply asks anew. What was asked without a sentence is for none, and stands.
        """
        if instruction == self.instruction:
            return
        self.instruction = instruction
        if not self._told:
            return
        self._forget_plans()
        self.controller.forget_plan()
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            assert waiting.pending is not None
            self._session.cancel(waiting.pending)
            self._go_on(replace(waiting, step=self.controller.again(waiting.step), pending=None))

    def stop(self) -> None:
        """Drop the step that waits for a reply, without a command, and start anew after it."""
        self._forget_plans()
        self._session.stop()
        self._waiting = None
        self._last = None
        self.totals = Totals()
        self.fallback.reset()

    def poll(self, slack_s: float = 0.0) -> None:
        """Take in what the verifier has sent, and do whatever is due; see `VerifierSession.poll`."""
        self._session.poll(self._clock(), slack_s)

    def observe(self, observation: Observation) -> None:
        """Begin the step of an observation; its command goes out now, or when the reply is there.

        An observation that is repeated, because its command was lost, gets the same command again. One whose
        draft was withheld is sent to the target again.

        Raises:
            InputError: another observation has the number of the one before.
            DraftError: the policy proposes nothing sound; there is no command, and the next observation
                is taken as if this one had never been.
        """
        received_s = self._clock()
        if self._is_unattended() and received_s < self._alone_s:
            self.totals.unattended += 1
            return
        if self._waiting is not None:
            if _is_repeated(observation, self._waiting.observation):
                return
            self._supersede(observation, received_s)
        if self._last is not None and _is_repeated(observation, self._last.observation):
            self.totals.repeated += 1
            if self._last.withheld and self._trouble is None:
                self._commands.heard()
                step = self.controller.again(self._last.step)
                again = replace(self._last, observation=observation, received_s=received_s, step=step)
                self._go_on(replace(again, pending=None))
            else:
                self._commands.repeat(observation)
            return
        resumes = self._commands.resumes()
        last = None if self._last is None else self._last.observation
        # A smaller step of the same episode: the steps are counted from the start again.
        if last is None or observation.episode != last.episode or observation.step <= last.step:
            self._forget_plans()
            self.controller.reset(self._seed, [observation.episode])
        elif resumes:
            self._forget_plans()
            self.controller.forget_plan()
        try:
            step = self.controller.begin(
                {OBSERVATION: observation.values[None], GOAL: observation.goal[None]},
                self._session.estimate(received_s),
                at=observation.step,
                beside={name: values[None] for name, values in observation.named.items()},
                images=observation.images,
            )
        except ValueError as error:
            self.totals.undrafted += 1
            raise DraftError(str(error)) from error
        begun = ActiveStep(observation, step, received_s, 1e3 * (self._clock() - received_s))
        self._commands.heard()
        self._go_on(begun)

    def _go_on(self, begun: ActiveStep) -> None:
        """Ask the target where it is time, and command, now or when the reply is there."""
        withheld = self.fallback.withholds and not self._goes_by_plan(begun)
        wanted = bool(begun.step.transmit[0]) or withheld
        trouble = self._trouble
        if self._ahead is not None:
            left, now_s = int(begun.step.plan_left[0]), self._clock()
            if trouble is not None:
                if trouble.reason is not Reason.BUSY:  # what is under way was let in before
                    self._ahead.cancel()
            elif self._ahead.due(wanted, left, now_s):
                committed = min(left, self._ahead.delay_steps, self._session.target.horizon - 1)
                request = self._request(begun, self._ahead.needed_in_s(left), committed)
                begun.pending = self._ahead.submit(request, begun.step.index, now_s)
            self._finish(begun, self._so_far(begun))
        elif not wanted:
            self._finish(begun, Outcome(None, Reason.NONE))
        elif trouble is None:
            self._waiting = begun
            begun.pending = self._session.submit(
                self._request(begun, self.deadline_s), self.deadline_s, self._clock(), self._ended
            )
        else:
            self._finish(begun, trouble)

    @property
    def _trouble(self) -> Outcome | None:
        """What comes of a step that wants the target and cannot ask; None where it can."""
        link = self._session.link
        if link is not VerifierState.READY:
            return Outcome(None, WITHOUT_REQUEST[link], self._session.trouble)
        if self._session.target.instruction and not self.instruction.strip():
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
            self._finish(waiting, Outcome(None, Reason.SUPERSEDED))
        else:  # the draft belongs to an episode that is over: it must not move the robot in this one
            self._last = None
            self.totals.dropped += 1

    def _request(self, begun: ActiveStep, needed_in_s: float, committed: int = 0) -> Request:
        """Return what is asked, and how soon, with the actions that are executed before a reply comes."""
        draft = begun.step.draft(np.array([0]))
        if committed:
            draft = self.controller.committed(begun.step, committed)
            committed = draft.actions.shape[1]
        target = self._session.target
        told = self.instruction if target.instruction else ""
        self._told |= bool(told)
        observation, window = begun.observation, self._view.window(target)
        episode, step = observation.episode, observation.step
        draft = self._session.sent_parts.of(draft, committed)
        trip_ms = reported_round_trip_ms(self._session.rtt_ms)
        return Request.of(draft, episode, step, window, committed, told, needed_in_s, trip_ms)

    def _received(self, step: int, committed: int, outcome: Outcome) -> None:
        """Take in what came of a request of this step, which nobody waits for."""
        verdict = outcome.verification
        if verdict is not None and not self.controller.receive(verdict, step, THE_ROBOT, committed).all():
            try:
                self.controller.policy.check(verdict.actions)
            except ValueError as error:
                outcome = replace(outcome, verification=None, reason=Reason.BAD_REPLY, message=str(error))
        self._arrived = outcome

    def _so_far(self, begun: ActiveStep) -> Outcome:
        """Return what came since the step before; why there is no plan, where there is none."""
        arrived, self._arrived = self._arrived, None
        if arrived is None:
            arrived = Outcome(None, Reason.NONE)
        if begun.step.plan_left[0] or arrived.reason is not Reason.NONE:
            return arrived
        return self._trouble or replace(arrived, reason=Reason.NO_PLAN)

    def _goes_by_plan(self, begun: ActiveStep) -> bool:
        """Whether the robot has no will of its own in a step: the target's plan is there, and executed."""
        return bool(begun.step.plan_left[0]) and not self.controller.drafts

    def _forget_plans(self) -> None:
        """Forget what is under way, and what came: it belongs to an episode that is over."""
        self._told = False
        self._arrived = None
        if self._ahead is not None:
            self._ahead.cancel()

    def _ended(self, outcome: Outcome) -> None:
        waiting, self._waiting = self._waiting, None
        assert waiting is not None
        self._finish(waiting, outcome)

    def _finish(self, begun: ActiveStep, outcome: Outcome) -> None:
        step, observation, by_plan = begun.step, begun.observation, self._goes_by_plan(begun)
        # Where replies are not waited for, this one is in the plan already.
        verdict = outcome.verification if self._ahead is None else None
        actions: np.ndarray | None
        try:
            actions = self.controller.finish(step, verdict)
        except ValueError as error:
            outcome = Outcome(None, Reason.BAD_REPLY, str(error), reply_bytes=outcome.reply_bytes)
            actions = self._unasked(step)
        except LookupError:
            actions = None
        # Not by a reply alone: of one that comes late, nothing may be left to execute.
        if self.fallback.alone and (by_plan or (verdict is not None and outcome.verification is not None)):
            self.fallback.reset()
        alone = outcome.reason is not Reason.NONE and not by_plan
        withheld = (alone and not self.fallback.unverified()) or actions is None
        if withheld:
            self._commands.withhold()
            outcome = outcome.withheld()
        executed = None if actions is None or withheld else self._commands.send(actions[0], observation)
        commanded = self._commands.commanded()
        if commanded is not None:
            self.controller.executed(commanded[None])
        total_ms = 1e3 * (self._clock() - begun.received_s)
        self._last = replace(begun, withheld=withheld)
        record = begun.record(
            outcome,
            executed,
            total_ms,
            robot_id=self._robot_id,
            proposer=self.controller.proposer,
            requests_pending=0 if self._ahead is None else len(self._ahead),
            totals=self.totals,
        )
        self._status(record)

    def _unasked(self, step: Step) -> np.ndarray | None:
        """Return the actions of a step without the target's reply to it; None where there are none."""
        try:
            return self.controller.finish(step, None)
        except LookupError:
            return None


def _is_repeated(observation: Observation, before: Observation) -> bool:
    """Whether an observation is the one before again.

    Raises:
        InputError: it has the number of the one before, but is another.
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
