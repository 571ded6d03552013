"""The control steps of one robot: every observation gets one command, with or without the target."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from adahi_ros.contract.assembler import Observation
from adahi_ros.contract.fields import InputError
from adahi_ros.nodes.robot.command_publisher import Commander
from adahi_ros.nodes.robot.question import Answer, Question
from adahi_ros.nodes.robot.verifier_client import Link, VerifierClient
from adahi_ros.robot.controller import Controller, Step
from adahi_ros.robot.fallback import Fallback
from adahi_ros.robot.target_view import TargetView
from adahi_ros.wire.records import Reason, StepRecord

WITHOUT_ASKING = {
    Link.ABSENT: Reason.NO_VERIFIER,
    Link.MISMATCHED: Reason.REFUSED,
    Link.DOUBTED: Reason.BREAKER_OPEN,
}


class DraftError(ValueError):
    """The policy proposes nothing that may be executed; says what, and what is allowed."""


@dataclass
class Totals:
    """What has happened since the node was activated.

    Attributes:
        steps: commands that answered a new observation.
        transmitted: of them, those whose draft was sent to the target.
        verified: of them, those whose answer was executed.
        kept: of them, those that kept every drafted code.
        repeated: commands sent again for an observation that was repeated.
        undrafted: observations that got no command, because the policy proposed none that is sound.
        reasons: steps by their reason; those of all but NONE went without the target's answer.
    """

    steps: int = 0
    transmitted: int = 0
    verified: int = 0
    kept: int = 0
    repeated: int = 0
    undrafted: int = 0
    reasons: Counter[Reason] = field(default_factory=Counter)

    @property
    def fallbacks(self) -> dict[str, int]:
        """Steps without the target's answer, by reason."""
        return {why.name.lower(): count for why, count in self.reasons.items() if why is not Reason.NONE}

    def count(self, reason: Reason) -> tuple[int, ...]:
        """Count the reason of one step; return the steps so far by reason."""
        self.reasons[reason] += 1
        return tuple(self.reasons[each] for each in Reason)

    def add(self, record: StepRecord) -> None:
        """Count the rest of one step."""
        self.steps += 1
        self.transmitted += record.transmitted
        self.verified += record.verified
        self.kept += record.verified and all(record.accepted)


@dataclass(frozen=True)
class _Begun:
    """A step that has begun."""

    observation: Observation
    step: Step
    received: float
    draft_ms: float
    asked: bool = False
    withheld: bool = False


class ControlLoop:
    """Turns observations into commands, one step after the other.

    Args:
        controller: drafts, gates and corrects.
        verifier: is asked where the gate says so.
        view: what the verifier gets to see of an observation window.
        robot_id: names the robot's stream of draws at the verifier.
        seed: of the controller's draws.
        deadline_s: for an answer; may be changed between steps.
        commander: sends actions, as far as they are safe.
        status: told of every step.
        fallback: says how long the draft may act alone.
    """

    def __init__(
        self,
        controller: Controller,
        verifier: VerifierClient,
        view: TargetView,
        robot_id: str,
        seed: int,
        deadline_s: float,
        commander: Commander,
        status: Callable[[StepRecord], None],
        fallback: Fallback,
    ) -> None:
        self.controller = controller
        self.fallback = fallback
        self.deadline_s = deadline_s
        self.totals = Totals()
        self._verifier = verifier
        self._view = view
        self._robot_id = robot_id
        self._seed = seed
        self._commander = commander
        self._status = status
        self._waiting: _Begun | None = None
        self._last: _Begun | None = None

    def stop(self) -> None:
        """Drop the step that waits for an answer, without a command, and start anew after it."""
        self._verifier.abandon()
        self._waiting = None
        self._last = None
        self.totals = Totals()
        self.fallback.reset()

    def observe(self, observation: Observation) -> None:
        """Begin the step of an observation; its command goes out now, or when the answer is there.

        An observation that is repeated, because its command was lost, gets the same command again. One whose
        draft was withheld is asked about again.

        Raises:
            InputError: another observation has the number of the one before.
            DraftError: the policy proposes nothing sound; there is no command, and the next observation
                is taken as if this one had never been.
        """
        received = time.perf_counter()
        if self._waiting is not None:
            if _is_repeated(observation, self._waiting.observation):
                return
            self._supersede(observation)
        if self._last is not None and _is_repeated(observation, self._last.observation):
            self.totals.repeated += 1
            if self._last.withheld and self._verifier.link is Link.READY:
                self._commander.heard()
                self._ask(replace(self._last, observation=observation, received=received))
            else:
                self._commander.repeat(observation)
            return
        if self._last is None or not self._continues(observation):
            self.controller.reset(self._seed, [observation.episode])
            self._view.forget()
        try:
            step = self.controller.begin(
                observation.values[None], observation.goal[None], self._verifier.estimate()
            )
        except ValueError as error:
            self.totals.undrafted += 1
            raise DraftError(str(error)) from error
        begun = _Begun(observation, step, received, _milliseconds_since(received))
        self._view.add(observation.images)
        self._commander.heard()
        if not step.transmit[0] and not self.fallback.withholds:
            self._finish(begun, Answer(None, Reason.NONE))
        elif self._verifier.link is Link.READY:
            self._ask(begun)
        else:
            self._finish(begun, Answer(None, WITHOUT_ASKING[self._verifier.link], self._verifier.trouble))

    def _continues(self, observation: Observation) -> bool:
        assert self._last is not None
        episode, step = self._last.observation.key
        # A smaller step of the same episode: whoever counts them has started again.
        return observation.episode == episode and observation.step > step

    def _supersede(self, newer: Observation) -> None:
        waiting, self._waiting = self._waiting, None
        assert waiting is not None
        self._verifier.abandon()
        episode, step = waiting.observation.key
        if newer.episode == episode and newer.step > step:
            self._finish(waiting, Answer(None, Reason.SUPERSEDED))
        else:  # the draft belongs to an episode that is over: it must not move the robot in this one
            self._last = None
        self._verifier.count_miss()

    def _ask(self, begun: _Begun) -> None:
        self._waiting = replace(begun, asked=True)
        request = begun.step.request(np.array([0]))
        window = self._view.window(request.windows[0], request.goals[0])
        question = Question(request, *begun.observation.key, window)
        self._verifier.ask(question, self.deadline_s, self._answered)

    def _answered(self, answer: Answer) -> None:
        waiting, self._waiting = self._waiting, None
        assert waiting is not None
        self._finish(waiting, answer)
        self._verifier.settle()

    def _finish(self, begun: _Begun, answer: Answer) -> None:
        step, observation = begun.step, begun.observation
        try:
            action = self.controller.finish(step, answer.verification)[0, 0]
        except ValueError as error:
            answer = Answer(None, Reason.BAD_ANSWER, str(error), response=answer.response)
            action = self.controller.finish(step, None)[0, 0]
        if answer.verification is not None:
            self.fallback.verified()
        withheld = answer.reason is not Reason.NONE and not self.fallback.unverified()
        if withheld:
            self._commander.withhold()
            answer = _withheld(answer)
        executed = None if withheld else self._commander.send(action, observation)
        commanded = self._commander.commanded()
        if commanded is not None:
            self.controller.executed(commanded[None])
        total_ms = _milliseconds_since(begun.received)
        self._last = replace(begun, withheld=withheld)
        verification = answer.verification
        record = StepRecord(
            stamp_ns=observation.stamp_ns,
            robot_id=self._robot_id,
            episode=observation.episode,
            step=observation.step,
            gate=step.gate.name,
            deviation=float(step.deviation[0]),
            score=float(step.score[0]),
            threshold=step.gate.threshold,
            transmitted=begun.asked,
            verified=verification is not None,
            accepted=() if verification is None else tuple(map(bool, verification.accepted[0])),
            reason=answer.reason,
            reason_counts=self.totals.count(answer.reason),
            message=answer.message,
            draft_action=tuple(map(float, step.draft.action[0])),
            action=() if executed is None else tuple(map(float, executed)),
            draft_ms=begun.draft_ms,
            verify_ms=answer.verify_ms,
            target_compute_ms=answer.compute_ms,
            total_ms=total_ms,
            request_bytes=self._verifier.request_bytes if begun.asked else 0,
            response_bytes=answer.response_bytes,
        )
        self.totals.add(record)
        self._status(record)


def _withheld(answer: Answer) -> Answer:
    """Say why there was no verification in the words for people: the reason is that nothing is executed."""
    why = answer.reason.name.lower().replace("_", " ")
    message = f"{why}: {answer.message}" if answer.message else why
    return replace(answer, reason=Reason.FALLBACK_LIMIT, message=message)


def _is_repeated(observation: Observation, before: Observation) -> bool:
    """Whether an observation is the one before again.

    Raises:
        InputError: it has the number of the one before, but is another.
    """
    if observation.key != before.key:
        return False
    same_values = np.array_equal(observation.values, before.values)
    if same_values and np.array_equal(observation.goal, before.goal):
        return True
    raise InputError(
        "task_state.step_id",
        f"{observation.step} of episode {observation.episode} again, with other values; must rise",
    )


def _milliseconds_since(start: float) -> float:
    return 1e3 * (time.perf_counter() - start)
