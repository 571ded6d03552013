"""A robot in simulated time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from itertools import count
from typing import TypeVar

import numpy as np
import pytest

from adahi_ros.contract.assembler import Observation
from adahi_ros.core.signature import GOAL, OBSERVATION, Offer
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.intent.intent import Intent
from adahi_ros.policies.interface import Policy
from adahi_ros.protocol.description import Wants
from adahi_ros.protocol.records import Reason, StepRecord
from adahi_ros.protocol.request import Request
from adahi_ros.robot.controller import Controller
from adahi_ros.robot.lockstep_loop import LockstepLoop
from adahi_ros.robot.loop import ControlLoop
from adahi_ros.robot.outcomes import Fallback, Outcome, PendingRequest
from adahi_ros.robot.session import VerifierSession, VerifierState
from adahi_ros.robot.target_view import Features
from adahi_ros.robot.transport import Transport
from adahi_ros.safety.commands import Outgoing
from test.robot.simulated import SimulatedLink, SimulatedVerifier

DRAFT = [[0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]]
OFFERED = Offer({OBSERVATION: 3, GOAL: 1}, instruction=True)
DEADLINE_S = 0.1
PERIOD_S = 0.05

R = TypeVar("R", bound="Robot")


class Commands:
    """A `Commander` that keeps its calls; while it is disabled it commands nothing.

    Attributes:
        share: of an action, that is let through.
    """

    def __init__(self) -> None:
        self.enabled, self.share = True, 1.0
        self.withheld = 0
        self._commanded: np.ndarray | None = None
        self.sent: list[tuple[int, tuple[float, ...]]] = []
        self.repeated: list[int] = []

    def observed(self) -> None:
        pass

    def limit(self, action: np.ndarray | None, observation: Observation) -> Outgoing:
        self.withheld += action is None
        if action is None or not self.enabled:
            return Outgoing()
        return Outgoing(action=action if self.share == 1.0 else self.share * action)

    def command(self, outgoing: Outgoing, observation: Observation) -> np.ndarray | None:
        if outgoing.action is not None:
            self._commanded = outgoing.action
            self.sent.append((observation.stamp_ns, tuple(map(float, outgoing.action))))
        return outgoing.action

    def commanded(self) -> np.ndarray | None:
        commanded, self._commanded = self._commanded, None
        return commanded

    def resumes(self) -> bool:
        return False

    def repeat(self, observation: Observation) -> None:
        self.repeated.append(observation.stamp_ns)


class Fate(Enum):
    """What became of a request."""

    PENDING = auto()
    REPLIED = auto()
    REFUSED = auto()
    BAD_REPLY = auto()
    MISSED = auto()
    SUPERSEDED = auto()
    CANCELLED = auto()


FATES = {
    Reason.NONE: Fate.REPLIED,
    Reason.REFUSED: Fate.REFUSED,
    Reason.BAD_REPLY: Fate.BAD_REPLY,
    Reason.DEADLINE: Fate.MISSED,
    Reason.SUPERSEDED: Fate.SUPERSEDED,
    Reason.BUSY: Fate.REFUSED,
}


@dataclass
class Submitted:
    """A request that the loop has submitted, and for which observation."""

    stamp_ns: int
    pending: PendingRequest
    deadline_s: float
    fate: Fate = Fate.PENDING


class Session(VerifierSession):
    """Keeps what was submitted."""

    def __init__(self, link: Transport, policy: Policy, on_change: Callable[[], None]) -> None:
        super().__init__(link, Wants(policy.signature, OFFERED), True, on_change)
        self.submitted: list[Submitted] = []
        self.outcomes: Counter[int] = Counter()
        self.stamp_ns = 0

    def submit(
        self, request: Request, deadline_s: float, now_s: float, on_outcome: Callable[[Outcome], None]
    ) -> PendingRequest:
        assert self.link is VerifierState.READY
        number = len(self.submitted)

        def ended(outcome: Outcome) -> None:
            self.outcomes[number] += 1
            self._settled(pending, FATES[outcome.reason])
            on_outcome(outcome)

        pending = super().submit(request, deadline_s, now_s, ended)
        self.submitted.append(Submitted(self.stamp_ns, pending, deadline_s))
        return pending

    def give_up(self, pending: PendingRequest, now_s: float) -> None:
        self._settled(pending, Fate.SUPERSEDED)
        super().give_up(pending, now_s)

    def cancel(self, pending: PendingRequest) -> None:
        self._settled(pending, Fate.CANCELLED)
        super().cancel(pending)

    def _settled(self, pending: PendingRequest, fate: Fate) -> None:
        (submitted,) = (each for each in self.submitted if each.pending is pending)
        assert submitted.fate is Fate.PENDING
        submitted.fate = fate


class Robot:
    """A control loop with everything that it talks to.

    Attributes:
        records: of every step.
        changes: the link after each of its changes.

    Args:
        plans: horizon of the target's plans, by which the robot then goes on, and waits for no reply.
        waits: it waits for replies all the same.
        acting: acts by the intents of replies.
        late: in lockstep, control steps after which a reply counts; 0 for no lockstep.
    """

    def __init__(
        self,
        policy: Policy,
        gate: str = "always",
        seed: int = 0,
        limit: int | None = None,
        plans: int = 0,
        waits: bool = False,
        acting: Intent | None = None,
        late: int = 0,
    ) -> None:
        self.policy = policy
        self.verifier = SimulatedVerifier(policy, plans)
        self.link = SimulatedLink(self.verifier, seed)
        transport = self.transport()
        self.session = Session(transport, policy, lambda: self.changes.append(self.session.link))
        self.commands = Commands()
        self.records: list[StepRecord] = []
        self.changes: list[VerifierState] = []
        proposer = "plan" if plans else "draft"
        if acting is not None:
            proposer = "intent"
            self.verifier.describe_intents(acting.encoder_fingerprint, acting.size)
        loop = partial(LockstepLoop, late) if late else ControlLoop
        self.loop = loop(
            Controller(acting or policy, ControllerConfig(ThresholdedGate(gate, 0.5)), proposer, policy),
            self.session,
            Features(policy.signature.observation_dim),
            "robot",
            seed,
            DEADLINE_S,
            self.commands,
            self.records.append,
            Fallback(limit),
            lambda: self.link.now_s,
            PERIOD_S if plans and not waits and not late else None,
        )
        self._numbers = count(1)

    def transport(self) -> Transport:
        """Return what carries its requests."""
        return self.link

    @property
    def next_arrival_s(self) -> float:
        """When something comes."""
        return self.link.next_arrival_s

    def choose(self, gate: str, threshold: float = 0.5) -> None:
        self.loop.change(ControllerConfig(ThresholdedGate(gate, threshold)), self.loop.deadline_s)

    def connect(self: R) -> R:
        """Start, wait for the handshake, and return the robot."""
        self.loop.start(10.0)
        self.pass_time(1.0)
        assert self.session.link is VerifierState.READY
        return self

    def observation(self, episode: int, step: int, goal: float = 0.0) -> Observation:
        """Return another observation."""
        number = next(self._numbers)
        values = np.array([number, 0.25, -0.25], np.float32)
        return Observation(number, episode, step, values, np.array([goal], np.float32), values.astype(float))

    def show(self, observation: Observation) -> None:
        self.session.stamp_ns = observation.stamp_ns
        self.loop.step(observation)

    def see(self, episode: int, step: int) -> Observation:
        """Show a new observation."""
        observation = self.observation(episode, step)
        self.show(observation)
        return observation

    def walk(self, steps: range, period_s: float = PERIOD_S, episode: int = 1) -> list[StepRecord]:
        """Show new observations, each a period after the other; return the records that come of them."""
        first = len(self.records)
        for step in steps:
            self.see(episode, step)
            self.pass_time(period_s)
        return self.records[first:]

    def pass_time(self, duration_s: float) -> None:
        """Let time pass, as on a node that polls whenever something comes or is due."""
        end_s = self.link.now_s + duration_s
        while (at_s := min(self.next_arrival_s, self.loop.next_due_s)) <= end_s:
            self.link.now_s = max(self.link.now_s, at_s)
            self.loop.poll()
            assert self.loop.next_due_s > self.link.now_s
        self.link.now_s = end_s

    def stall(self, duration_s: float) -> None:
        """Let time pass on a node that is busy with something else."""
        self.link.now_s += duration_s
        self.loop.poll()

    def record(self, observation: Observation) -> StepRecord:
        """Return the one record of an observation."""
        (record,) = [each for each in self.records if each.stamp_ns == observation.stamp_ns]
        return record

    def record_of(self, step: int) -> StepRecord:
        """Return the one record of a step."""
        (record,) = [each for each in self.records if each.step == step]
        return record

    def verified_action(self, observation: Observation | StepRecord) -> tuple[float, ...]:
        """Return what the verifier's reply about an observation means."""
        action = float(np.float32(observation.stamp_ns / 1024.0))
        return (action,) * self.policy.signature.action_dim


MakeRobot = Callable[..., Robot]


@pytest.fixture
def make_robot(fixed_policy: Callable[..., Policy]) -> MakeRobot:
    """From what a `Robot` takes beside its policy to one that looks for no verifier yet."""
    return lambda *arguments, **named: Robot(fixed_policy(DRAFT), *arguments, **named)


@pytest.fixture
def robot(make_robot: MakeRobot) -> Robot:
    """A robot that sends every draft to a verifier that is there."""
    return make_robot().connect()
