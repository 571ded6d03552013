# SPDX-License-Identifier: Apache-2.0
"""One run of a robot's policy: its counts, and what ends it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, IntEnum

from adahi_ros.protocol.records import Reason, StepRecord


class End(IntEnum):
    """Cause of a run's end. The numbers are the error codes of `RunPolicy.action`; SUCCESS is NONE there."""

    SUCCESS = 0
    FAILURE = 1
    TIME_LIMIT = 2
    CANCELED = 3
    NO_VERIFIER = 4
    STOPPED = 5
    NO_STEPS = 6
    NOT_STARTED = 7
    DEACTIVATED = 8
    SHUT_DOWN = 9


class NodeState(IntEnum):
    """State of the policy's node. The numbers are those of lifecycle_msgs/State."""

    UNCONFIGURED = 1
    INACTIVE = 2
    ACTIVE = 3
    FINALIZED = 4


class Preparation(Enum):
    """A transition of the policy's node before it acts; the value completes an error text."""

    DEACTIVATE = "deactivated"
    CLEAN_UP = "cleaned up"
    CHOOSE_POLICY = "given its policy"
    CONFIGURE = "configured"
    ACTIVATE = "activated"


_AS_IT_IS = {
    NodeState.UNCONFIGURED: (Preparation.CONFIGURE, Preparation.ACTIVATE),
    NodeState.INACTIVE: (Preparation.ACTIVATE,),
    NodeState.ACTIVE: (),
}
_TO_UNCONFIGURED = {
    NodeState.UNCONFIGURED: (),
    NodeState.INACTIVE: (Preparation.CLEAN_UP,),
    NodeState.ACTIVE: (Preparation.DEACTIVATE, Preparation.CLEAN_UP),
}


def preparations(state: int, other_policy: bool) -> tuple[Preparation, ...]:
    """Return the transitions that activate the policy's node, in order.

    Args:
        state: of the node; only the first three of `NodeState` allow transitions.
        other_policy: the node gets another policy, which it accepts only while it is unconfigured.

    Raises:
        ValueError: the state allows no transition.
    """
    if state not in list(_AS_IT_IS):
        raise ValueError("is shut down" if state == NodeState.FINALIZED else f"is amid a transition, {state}")
    now = NodeState(state)
    if not other_policy:
        return _AS_IT_IS[now]
    return (*_TO_UNCONFIGURED[now], Preparation.CHOOSE_POLICY, *_AS_IT_IS[NodeState.UNCONFIGURED])


@dataclass(frozen=True)
class AttemptLimits:
    """Time limits of a run; 0 for no limit.

    Attributes:
        time_s: whole run, from the activation of the policy.
        no_verifier_s: without a ready verifier.
        no_steps_s: without a control step.
        stopped_s: until the operator enables a robot that was stopped before.
        held_s: without interruption held by its safety layer, though it is enabled.
    """

    time_s: float
    no_verifier_s: float
    no_steps_s: float
    stopped_s: float
    held_s: float = 0.0


@dataclass
class RunCounts:
    """Counts of a run.

    Attributes:
        steps: control steps.
        calls: those with a request to the verifier.
        fallbacks: those without the target's reply, though it was requested or there was no plan.
        person_steps, takeovers: steps that a person drove, and how often one took over.
    """

    steps: int = 0
    calls: int = 0
    fallbacks: int = 0
    person_steps: int = 0
    takeovers: int = 0


class Attempt:
    """Counts the steps of a policy, and decides when the run ends.

    It has no clock: callers pass monotonic times.

    Attributes:
        counts: of its steps.
        person: a person drove the last step.
        holding: the last command was to hold still.
        success_estimate: the newest, NaN without one.

    Args:
        limits: of the run.
        now_s: when the activation of the policy's node is requested; see also `activated`.
    """

    def __init__(self, limits: AttemptLimits, now_s: float) -> None:
        self.counts = RunCounts()
        self.holding = self.person = False
        self.success_estimate = math.nan
        self._limits = limits
        self._started_s = self._step_s = self._verifier_s = now_s
        self._verifier = False
        self._served = False
        self._held_from_s = math.inf  # since when it is held though it is enabled
        self._stopped = self._free = False  # the second: it may have moved since it began
        self._end: tuple[End, str] | None = None

    def activated(self, now_s: float) -> None:
        """The policy's node acts from now on; the time that activation took does not count."""
        self._started_s = self._step_s = self._verifier_s = now_s
        self._held_from_s = math.inf

    def elapsed_s(self, now_s: float) -> float:
        """Return the duration so far."""
        return now_s - self._started_s

    def stepped(self, record: StepRecord, now_s: float) -> None:
        """The policy has made a step."""
        counts = self.counts
        counts.steps += 1
        counts.calls += record.transmitted
        counts.takeovers += record.by_person and not self.person
        self.person = record.by_person
        self._step_s = now_s
        if record.by_person:  # needs no verifier
            counts.person_steps += 1
            self._verifier_s = now_s
            return
        served = record.reason is Reason.NONE
        self._served |= served
        # Before the first reply, a step that executes nothing merely waits for the reply that is requested.
        waits = not self._served and not record.action and record.requests_pending > 0
        counts.fallbacks += not served and not waits

    def linked(self, ready: bool, now_s: float) -> None:
        """Take whether the robot has a ready verifier."""
        if ready or self._verifier:
            self._verifier_s = now_s
        self._verifier = ready

    def safety(self, stopped: bool, holding: bool, enabled: bool, now_s: float) -> None:
        """Take the state of the robot: a stop is latched, it is held, the operator enables it.

        Time while it is not enabled does not count for `no_steps_s`: a simulator may wait for the robot.
        """
        self.holding = holding
        self._held_from_s = min(self._held_from_s, now_s) if holding and enabled else math.inf
        if not enabled:
            self._step_s = now_s
        if stopped and self._free:
            self.end(End.STOPPED, "the operator stopped the robot")
        self._stopped = stopped
        self._free |= enabled and not stopped  # a press that it waits for begins with a stop

    def judged(self, success: bool) -> None:
        """Take an episode result; before the first step it belongs to an earlier run."""
        if self.counts.steps:
            self.end(End.SUCCESS if success else End.FAILURE, "as episode_result says")

    def deactivated(self) -> None:
        """The policy's node became inactive without a request of the policy runner."""
        self.end(End.DEACTIVATED, "the policy's node was deactivated")

    def shut_down(self) -> None:
        """The policy runner shuts down."""
        self.end(End.SHUT_DOWN, "the policy runner was shut down")

    def end(self, why: End, message: str) -> None:
        """End the run, unless it has ended already."""
        if self._end is None:
            self._end = why, message

    def ended(self, now_s: float) -> tuple[End, str] | None:
        """Return what has ended the run, with a text for people; None while it continues."""
        limits = self._limits
        silent_s, alone_s = now_s - self._step_s, 0.0 if self._verifier else now_s - self._verifier_s
        held_s = now_s - self._held_from_s
        if 0.0 < limits.time_s <= self.elapsed_s(now_s):
            self.end(End.TIME_LIMIT, f"{limits.time_s:g} s are over")
        elif 0.0 < limits.no_steps_s < silent_s:
            self.end(End.NO_STEPS, _too_long("control step", silent_s, limits.no_steps_s))
        elif 0.0 < limits.no_verifier_s < alone_s:
            self.end(End.NO_VERIFIER, _too_long("verifier", alone_s, limits.no_verifier_s))
        elif 0.0 < limits.held_s < held_s:
            self.end(End.TIME_LIMIT, f"held for {held_s:.1f} s, allowed are {limits.held_s:g} s")
        elif self._stopped and 0.0 < limits.stopped_s < self.elapsed_s(now_s):
            self.end(End.STOPPED, "the robot was stopped before, and the operator has not enabled it")
        return self._end


def _too_long(what: str, without_s: float, limit_s: float) -> str:
    return f"no {what} for {without_s:.1f} s, allowed are {limit_s:g} s"
