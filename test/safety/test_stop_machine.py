"""Whatever happens, only a press begins a motion, and a stop stays: the sentences of the page on stopping.

A state machine of hypothesis lets publishers come, speak, lose messages and leave, and lets everything else
happen to a robot. A model that knows who sent each message says what may happen. The robot does not know it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.guard import HELD, Guard, GuardConfig
from adahi_ros.safety.holds import Event
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.permission import Permission, Press
from adahi_ros.safety.takeover import SIGNAL

PERIOD_S, TIMEOUT_S, HOLD_AFTER_S = 0.05, 0.5, 0.5
SPEED, ACCELERATION, STEP = 1.0, 5.0, 0.3
LIMIT = {
    "velocity": SPEED,
    "acceleration": ACCELERATION,
    "max_step": STEP,
    "position_low": -3.0,
    "position_high": 3.0,
}
AGES_S = st.sampled_from([0.0, 0.0, 0.0, 0.02, 0.3, 0.7, -0.2])


@dataclass(eq=False)
class Sender:
    """A publisher, as the model knows it."""

    gid: bytes
    came_s: float
    sequence: int = 0
    value: bool | None = None  # of its newest message
    said_s: float = -math.inf
    left_s: float = math.inf


@dataclass
class Truth:
    """What really happened."""

    senders: list[Sender] = field(default_factory=list)
    first_stop_s: float = math.inf  # of the latched ones
    press_needed: set[str] = field(default_factory=set)  # causes that need a fresh press afterwards
    true_until_s: float = -math.inf
    by_service: bool = False
    started: bool = True  # the node's start still needs a press
    taken: bool = False

    @property
    def stopped(self) -> bool:
        return self.first_stop_s < math.inf

    def alone(self, sender: Sender, since_s: float) -> bool:
        """Whether this publisher was there since a time, and no other one ever since then."""
        return sender.came_s <= since_s and not any(
            each is not sender and each.left_s > since_s for each in self.senders
        )


class Stops(RuleBasedStateMachine):
    """A robot with an arm that reaches every command within a period."""

    required = True
    interpolated = False
    senders = Bundle("senders")

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 100.0
        self.truth = Truth()
        self.permission = Permission(self.required, TIMEOUT_S)
        self.numbers = iter(range(10**9))
        self.matched = 0
        self.at, self.speed, self.sent_s = 0.0, 0.0, -math.inf
        self.signals = self.taker = b"teleoperator"
        self.held_for = 0
        self.configure()
        self.look_for_publishers()

    def configure(self) -> None:
        """The node is configured: a new guard, the same operator."""
        envelope = Envelope(Limits.from_fields(["a"], {"a": LIMIT}), "positions", PERIOD_S)
        config = GuardConfig(PERIOD_S, HOLD_AFTER_S, self.interpolated)
        self.guard = Guard(envelope, config, self.permission, self.now_s)

    def look_for_publishers(self) -> None:
        here = frozenset(each.gid for each in self.truth.senders if each.left_s == math.inf)
        self.permission.publishers.note_publishers(here, self.matched, self.now_s)

    # Commands

    def sent(self, command: np.ndarray | None, moves: bool) -> None:
        """Check a command against what the model allows, and let the arm reach it."""
        if command is None:
            return
        place = float(command[0])
        speed, at_once = (place - self.at) / PERIOD_S, self.now_s - self.sent_s
        before = self.speed if at_once < 1.5 * PERIOD_S else 0.0  # it stands after a gap
        if moves:
            assert not self.truth.stopped, "a command after a stop"
            assert not self.truth.press_needed, f"a command after {self.truth.press_needed}"
            assert not (self.required and self.truth.started), "a command before the first press"
            assert not self.required or self.truth.by_service or self.now_s <= self.truth.true_until_s + 1e-9
            assert self.guard.active
        else:
            assert abs(speed) <= abs(before) + 1e-9, "a hold that accelerates"
            assert at_once < 1.5 * PERIOD_S + 1e-9 or self.interpolated, "a hold in a gap"
        if at_once >= PERIOD_S - 1e-9:
            assert abs(speed - before) <= ACCELERATION * min(at_once, 1.5 * PERIOD_S) + 1e-6 or not moves
            self.speed = speed
        self.at, self.sent_s = place, self.now_s

    def look(self) -> None:
        self.sent(self.guard.brake_if_held(self.now_s), moves=False)

    @rule(wanted=st.floats(-1.0, 1.0), person=st.booleans())
    def act(self, wanted: float, person: bool) -> None:
        if person and not self.truth.taken:
            return  # a person's commands pass only after a takeover
        self.guard.observed(self.now_s)
        wants, measured = np.array([wanted]), np.array([self.at])
        command = self.guard.act(wants, measured, self.now_s, person=person)
        if command is not None and not HELD.isdisjoint(self.guard.interventions):
            self.sent(command, moves=False)
            return
        if command is not None and not person:
            assert not self.truth.taken, "the policy moves the arm of a person"
        self.sent(command, moves=True)

    @rule()
    def repeat(self) -> None:
        command = self.guard.repeat(self.now_s)
        assert command is None or not self.truth.stopped
        self.sent(command, moves=not self.guard.holding)

    @rule()
    def withhold(self) -> None:
        self.sent(self.guard.withhold(self.now_s), moves=False)

    @rule(periods=st.sampled_from([1, 1, 1, 2, 5, 13, 40]), looks=st.booleans())
    def wait(self, periods: int, looks: bool) -> None:
        for _ in range(periods):
            self.now_s += PERIOD_S
            self.look()
            if looks:
                self.look_for_publishers()

    # Publishers of enable

    @rule(target=senders, sequence=st.sampled_from([0, 0, 1, 2, 5]), looks=st.booleans())
    def join(self, sequence: int, looks: bool) -> Sender:
        sender = Sender(str(next(self.numbers)).encode(), self.now_s, sequence)
        self.truth.senders.append(sender)
        self.matched += 1
        if looks:
            self.look_for_publishers()
        return sender

    @rule(sender=consumes(senders), looks=st.booleans())
    def leave(self, sender: Sender, looks: bool) -> None:
        sender.left_s = self.now_s
        if looks:
            self.look_for_publishers()

    @rule(sender=senders, value=st.booleans(), lost=st.sampled_from([0, 0, 0, 1, 3]), age_s=AGES_S)
    def say(self, sender: Sender, value: bool, lost: int, age_s: float) -> None:
        sender.sequence += 1 + lost
        truth, was_stopped = self.truth, self.permission.stopped
        silent = sender.value is True and self.now_s - sender.said_s >= 2 * TIMEOUT_S
        may = sender.value is False and truth.alone(sender, min(sender.said_s, truth.first_stop_s))
        again = (silent or sender.value is False) and truth.alone(sender, sender.said_s)
        first = sender.value is None and truth.alone(sender, self.now_s)
        self.look_for_publishers()
        press = Press(value, self.now_s - age_s, age_s, sender.sequence)
        self.permission.receive(press, self.now_s)
        counts = value and -TIMEOUT_S / 2 <= age_s <= TIMEOUT_S
        if not value:
            truth.first_stop_s, truth.by_service = min(truth.first_stop_s, self.now_s), False
        elif counts:
            truth.true_until_s = max(truth.true_until_s, self.now_s - max(0.0, age_s) + TIMEOUT_S)
            truth.by_service = False
        if was_stopped and not self.permission.stopped:
            assert counts, "a message that does not count ended a stop"
            assert may, "a stop was ended by a publisher that may not"
        if counts and may:
            self.allowed()
        elif counts and again:
            self.allowed(stop_s=truth.first_stop_s)
        if counts and first and not truth.stopped and not truth.press_needed:
            truth.started = False
        sender.value, sender.said_s = value, self.now_s
        self.look()

    def allowed(self, stop_s: float = math.inf) -> None:
        """A fresh press, or the service: it ends what waits for it, but no stop after a mere silence."""
        self.truth.first_stop_s = stop_s
        self.truth.started = False
        self.truth.press_needed = {each for each in self.truth.press_needed if each.endswith("lasts")}

    @rule(value=st.booleans())
    def set_enabled(self, value: bool) -> None:
        self.permission.set_enabled(value, self.now_s)
        if value:
            self.allowed()
            self.truth.by_service = True
        else:
            self.truth.first_stop_s = min(self.truth.first_stop_s, self.now_s)
            self.truth.by_service = False
        self.look()

    # A person

    @rule(value=st.booleans(), another=st.booleans())
    def take_over(self, value: bool, another: bool) -> None:
        gid = b"another" if another else b"teleoperator"
        takeover = self.permission.takeover
        takeover.publishers[SIGNAL].note_publishers(frozenset((gid,)), None, self.now_s)
        takeover.signal(value, 0.0, self.now_s)
        if value:
            self.truth.taken, self.taker = True, gid
        elif gid == self.taker and gid == self.signals:
            self.truth.taken = takeover.person  # may give back, if it was alone since it took over
        else:
            assert takeover.person == self.truth.taken, "another publisher gave the arm back"
        self.signals = gid
        assert takeover.person == self.truth.taken
        self.look()

    # The robot

    @rule(
        cause=st.sampled_from(
            [
                (Event.DRIVER_FAULT, Event.DRIVER_RUNS),
                (Event.COMMANDED_TWICE, Event.COMMANDED_ALONE),
                (Event.MEASURED_TWICE, Event.MEASURED_ONCE),
            ]
        ),
        ends=st.booleans(),
    )
    def fault(self, cause: tuple[Event, Event], ends: bool) -> None:
        begin, end = cause
        self.permission.holds.happen(end if ends else begin, "a fault")
        if not ends:
            self.truth.press_needed.discard(begin.name)
            self.truth.press_needed.add(f"{begin.name} lasts")
        elif f"{begin.name} lasts" in self.truth.press_needed:
            self.truth.press_needed.discard(f"{begin.name} lasts")
            self.truth.press_needed.add(begin.name)
        self.look()

    @rule()
    def lag(self) -> None:
        self.permission.holds.happen(Event.LAGS, "a lag")
        self.truth.press_needed.add("LAGS")
        self.look()

    @rule(what=st.sampled_from(["stop", "start", "configure"]))
    def transition(self, what: str) -> None:
        if what == "start":
            if not self.guard.active:
                self.truth.by_service = False
            self.guard.start(self.now_s)
        else:
            self.guard.stop()
            for _ in range(2 * math.ceil(SPEED / ACCELERATION / PERIOD_S)):
                self.now_s += PERIOD_S
                self.look()
            if what == "configure":
                assert not self.guard.moving
                self.configure()

    @initialize()
    def activate(self) -> None:
        self.guard.start(self.now_s)

    @invariant()
    def what_the_robot_says_is_true(self) -> None:
        assert self.permission.stopped or not self.truth.stopped, "a stop is forgotten"
        assert self.permission.takeover.person == self.truth.taken
        if self.truth.press_needed:
            assert not self.permission.enabled(self.now_s)
        if self.guard.moving:
            self.held_for = 0

    def teardown(self) -> None:
        """At the end, nothing moves after a stop."""
        self.set_enabled(False)
        for _ in range(2 * math.ceil(SPEED / ACCELERATION / PERIOD_S) + 5):
            self.now_s += PERIOD_S
            self.look()
        assert not self.guard.moving
        at = self.at
        for _ in range(30):
            self.now_s += PERIOD_S
            self.act(1.0, False)
            self.look()
        assert self.at == at


@pytest.mark.parametrize("interpolated", [False, True])
@pytest.mark.parametrize("required", [True, False])
def test_only_a_press_begins_a_motion_and_a_stop_stays(interpolated: bool, required: bool) -> None:
    case = type("Case", (Stops,), {"interpolated": interpolated, "required": required}).TestCase  # type: ignore[attr-defined]
    case.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
    case().runTest()
