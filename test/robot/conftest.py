"""A robot in simulated time, and a verifier across a link that loses, doubles, delays and reorders."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import count
from typing import Any, TypeVar

import numpy as np
import pytest

from adahi_ros.contract.assembler import Observation
from adahi_ros.core.signature import GOAL, OBSERVATION, Offer
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.interface import Policy
from adahi_ros.protocol.description import Described, Description, Wants
from adahi_ros.protocol.records import Reason, StepRecord
from adahi_ros.protocol.request import OK, Reply, Request, RequestFault
from adahi_ros.protocol.window import WHOLE, WireWindow, window_digest
from adahi_ros.robot.controller import Controller
from adahi_ros.robot.loop import ControlLoop
from adahi_ros.robot.session import VerifierSession, VerifierState
from adahi_ros.robot.steps import Fallback, Outcome, PendingRequest
from adahi_ros.robot.target_view import Features
from adahi_ros.robot.transport import Sent, Transport

DRAFT = [[0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]]
OFFERED = Offer({OBSERVATION: 3, GOAL: 1}, instruction=True)
WEIGHTS = "0123456789abcdef"
DEADLINE_S = 0.1
DELAY_S = 0.005  # each way
PERIOD_S = 0.05

R = TypeVar("R", bound="Robot")


class SimulatedVerifier:
    """Replies to whatever a robot sends, or does not; and says of itself what the test wants.

    What it replies shows which observation it was about: every action is its number / 1024. Of a plan it
    shows the control step, too: see `planned`.
    """

    def __init__(self, policy: Policy, plans: int = 0) -> None:
        signature = policy.signature
        self.description = Description("target", "speculative", signature, policy_fingerprint=WEIGHTS)
        if plans:
            signature = replace(signature, horizon=plans, codes=None)
            self.description = Description("target", "replace", signature, policy_fingerprint=WEIGHTS)
        self._size = signature.horizon * signature.action_dim
        self._plans = plans
        self.replies = True
        self.keeps_windows = True
        self.undescribed = ""
        self.changes: dict[str, Any] = {}
        self._windows: set[int] = set()

    def speak(self, fingerprint: str) -> None:
        """Be one of another tokenizer, or of the same again."""
        codes = self.description.signature.codes
        assert codes is not None
        self.describe_otherwise(codes=replace(codes, fingerprint=fingerprint))

    def describe_otherwise(self, **changes: Any) -> None:
        signature = replace(self.description.signature, **changes)
        self.description = replace(self.description, signature=signature)

    def load(self, fingerprint: str) -> None:
        """Serve the same policy with other weights from now on; empty for those that nobody knows."""
        self.description = replace(self.description, policy_fingerprint=fingerprint)
        self.restart()

    def restart(self) -> None:
        self._windows.clear()

    def reply(self, sent: int, request: Request, update: WireWindow) -> Reply:
        if self._plans:
            accepted: tuple[bool, ...] = ()
            steps = range(request.step + request.ahead, request.step + self._plans)
            dim = self.description.signature.action_dim
            actions = tuple(planned(number_of(request), step) for step in steps for _ in range(dim))
        else:
            accepted, actions = (True, False), (number_of(request) / 1024.0,) * self._size
        right = Reply(
            OK,
            "",
            request.episode,
            request.step,
            request.first_step,
            accepted,
            actions,
            1.0,
            self.keeps_windows,
            id=sent,
            size_bytes=100 + sent,
        )
        if update.base != WHOLE and update.base not in self._windows:
            return replace(right, status=int(RequestFault.WINDOW_UNKNOWN), message="base_window: unknown")
        changed = replace(right, **self.changes)
        if changed.status == OK and changed.window_kept:
            window = request.window
            self._windows.add(window_digest(window.rows.digests(window.length), window.goal))
        return changed


def number_of(request: Request) -> float:
    """Return the number of the observation that a request is about."""
    return float(np.frombuffer(request.window.rows.numbers, np.float32)[-3])


def planned(number: float, step: int) -> float:
    """Return what the plan that an observation asked for says for a control step."""
    return float(np.float32(number / 1024.0 + step / 2**17))


class SimulatedLink:
    """A `Transport` to one verifier.

    Attributes:
        now_s: the time.
        loss, doubling: shares of messages each way.
        delay_s: each way, from the one to the other.
        sent: size of each request, by id.
        open: ids that may still be replied to.
    """

    def __init__(self, verifier: SimulatedVerifier, seed: int) -> None:
        self.now_s = 100.0
        self.present = True
        self.figures: dict[str, object] = {}
        self.loss = self.doubling = 0.0
        self.delay_s = (DELAY_S, DELAY_S)
        self.sent: dict[int, int] = {}
        self.updates: list[tuple[Request, WireWindow]] = []
        self.described = 0
        self.open: set[int] = set()
        self.on_air: list[tuple[float, int, Reply | Described]] = []
        self._verifier = verifier
        self._draw = np.random.default_rng(seed)
        self._ids, self._order = count(), count()

    next_due_s = math.inf

    @property
    def next_arrival_s(self) -> float:
        return self.on_air[0][0] if self.on_air else math.inf

    def submit(self, request: Request, update: WireWindow) -> Sent:
        sent = Sent(next(self._ids), 50 + 4 * len(update.rows.numbers))
        self.sent[sent.id] = sent.size_bytes
        self.updates.append((request, update))
        self.open.add(sent.id)
        self._carry(lambda: self._verifier.reply(sent.id, request, update))
        return sent

    def describe(self) -> int:
        sent = next(self._ids)
        self.described += 1
        self.open.add(sent)
        why = self._verifier.undescribed
        self._carry(lambda: Described(sent, None if why else self._verifier.description, why))
        return sent

    def poll(self) -> Sequence[Reply | Described]:
        arrived: list[Reply | Described] = []
        while self.next_arrival_s <= self.now_s:
            arrived.append(heapq.heappop(self.on_air)[2])
            self.open.discard(arrived[-1].id)
        return arrived

    def cancel(self, sent: int) -> None:
        self.open.discard(sent)

    def _carry(self, reply: Callable[[], Reply | Described]) -> None:
        for there_s in self._crossings():
            if self._verifier.replies and self.present:
                message = reply()
                for back_s in self._crossings():
                    heapq.heappush(self.on_air, (self.now_s + there_s + back_s, next(self._order), message))

    def _crossings(self) -> list[float]:
        if self._draw.random() < self.loss:
            return []
        copies = 2 if self._draw.random() < self.doubling else 1
        return [float(self._draw.uniform(*self.delay_s)) for _ in range(copies)]


class Commands:
    """A `CommandSink` that keeps what it is told; while it is disabled it commands nothing.

    Attributes:
        share: of an action, that is let through.
    """

    def __init__(self) -> None:
        self.enabled, self.share = True, 1.0
        self.withheld = 0
        self._commanded: np.ndarray | None = None
        self.sent: list[tuple[int, tuple[float, ...]]] = []
        self.repeated: list[int] = []

    def heard(self) -> None:
        pass

    def send(self, action: np.ndarray, observation: Observation) -> np.ndarray | None:
        if not self.enabled:
            return None
        self._commanded = commanded = action if self.share == 1.0 else self.share * action
        self.sent.append((observation.stamp_ns, tuple(map(float, commanded))))
        return commanded

    def commanded(self) -> np.ndarray | None:
        commanded, self._commanded = self._commanded, None
        return commanded

    def withhold(self) -> None:
        self.withheld += 1

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
    """

    def __init__(
        self,
        policy: Policy,
        gate: str = "always",
        seed: int = 0,
        limit: int | None = None,
        plans: int = 0,
        waits: bool = False,
    ) -> None:
        self.policy = policy
        self.verifier = SimulatedVerifier(policy, plans)
        self.link = SimulatedLink(self.verifier, seed)
        transport = self.transport()
        self.session = Session(transport, policy, lambda: self.changes.append(self.session.link))
        self.commands = Commands()
        self.records: list[StepRecord] = []
        self.changes: list[VerifierState] = []
        self.loop = ControlLoop(
            Controller(
                policy, ControllerConfig(ThresholdedGate(gate, 0.5)), "plan" if plans else "draft", policy
            ),
            self.session,
            Features(policy.signature.observation_dim),
            "robot",
            seed,
            DEADLINE_S,
            self.commands,
            self.records.append,
            Fallback(limit),
            lambda: self.link.now_s,
            PERIOD_S if plans and not waits else None,
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
        self.loop.observe(observation)

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
