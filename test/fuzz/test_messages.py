"""Messages that are nearly right, to robot and verifier without DDS: nothing crashes, every limit is kept."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Collection
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from adahi_msgs.srv import VerifyDraft
from hypothesis import given, settings
from hypothesis import strategies as st
from sensor_msgs.msg import CompressedImage

from adahi_ros.contract.assembler import Observation, ObservationAssembler
from adahi_ros.contract.fields import InputError
from adahi_ros.contract.parsing import load_contract
from adahi_ros.core.assets import asset
from adahi_ros.core.proposal import UNITS, Proposal
from adahi_ros.core.signature import GOAL, OBSERVATION, Offer
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.nodes.common.verifier_messages import from_described, from_reply
from adahi_ros.nodes.server.robot_messages import describe, from_request, to_reply
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy
from adahi_ros.protocol.description import Described, Description, Wants
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import (
    INTENT_LIMIT,
    PROTOCOL_VERSION,
    Reply,
    Request,
    RequestError,
    fingerprint_number,
)
from adahi_ros.protocol.window import NO_WINDOW, WireWindow
from adahi_ros.robot.controller import Controller
from adahi_ros.robot.loop import ControlLoop
from adahi_ros.robot.outcomes import Check, DraftError, Fallback, judged
from adahi_ros.robot.session import VerifierSession
from adahi_ros.robot.target_view import Features
from adahi_ros.robot.transport import Sent
from adahi_ros.safety.commands import Outgoing
from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.guard import Guard, GuardConfig
from adahi_ros.safety.limits import MARGIN, Limits
from adahi_ros.safety.measured_jumps import SETTLED_S
from adahi_ros.safety.permission import Permission, Press
from adahi_ros.server.engine import Engine
from adahi_ros.server.received_images import ReceivedImages
from adahi_ros.server.verifier import TargetVerifier
from adahi_ros.vision.encoder import Encoder
from adahi_ros.vision.images import to_jpeg
from test.fuzz import conftest as garbage

NANOSECONDS = 1_000_000_000
POSITION, VELOCITY, ACCELERATION = 0.15, 0.5, 10.0  # rad, rad/s, rad/s^2
PERIOD_S, HOLD_AFTER_S, DEADLINE_S = 0.05, 0.4, 0.1
ROUNDING = 1e-9
elapsed_s = st.sampled_from((0.0, 1e-6, 0.01, PERIOD_S, 0.051, 0.06, 0.2, 0.45, 0.6, 2.0)) | st.floats(
    0.0, 0.2
)

more = settings(max_examples=3 * settings().max_examples)  # they take milliseconds


@cache
def policy(name: str) -> Policy:
    return load_policy(asset("checkpoints") / name, "onnxruntime")


@cache
def encoder() -> Encoder:
    return Encoder.load(asset("checkpoints/encoders") / "ball")


def names_the_field(error: ValueError, fields: Collection[str]) -> None:
    """Check that an error says first what it is about, and then something more."""
    named = re.fullmatch(r"([\w/]+)[.\[:].*\w{2}.*", str(error), re.DOTALL)
    assert named, error
    assert named[1] in fields, error


class Judge:
    """Checks commands by arithmetic of its own: nothing here is the guard's.

    A command is to be reached in one control period. So from one to the next no joint goes further than its
    velocity times a period; over any time no further than its velocity times that time; and between commands
    that are a period apart the step changes by no more than acceleration times period squared.
    """

    def __init__(self) -> None:
        self.position: np.ndarray | None = None
        self.at_s = self.began_s = self.answered_s = -math.inf
        self.moved = self.path = np.zeros(2)
        self.whole = False  # the step before had a whole period

    def check(self, action: np.ndarray, measured: np.ndarray | None, now_s: float) -> None:
        """Look at a command; with what was measured where it answers an observation."""
        assert np.isfinite(action).all()
        assert (np.abs(action) <= POSITION * (1 + 2 * MARGIN) + ROUNDING).all()
        start, whole = self.position, now_s - self.at_s >= PERIOD_S
        step = VELOCITY * PERIOD_S + ROUNDING
        rested = measured is not None and now_s - self.answered_s >= SETTLED_S
        if rested and (
            start is None or (np.abs(action - start) > step).any()
        ):  # it may have been moved by hand
            start, self.began_s, self.path, whole = measured, now_s, np.zeros(2), False
        assert start is not None
        moved = action - start
        self.path = self.path + np.abs(moved)
        assert (np.abs(moved) <= step).all()
        assert (self.path <= VELOCITY * (now_s - self.began_s + 2 * PERIOD_S) + ROUNDING).all()
        if whole and self.whole:
            # Past a period the robot has begun to stand: at most its mean speed since then is left.
            mean = self.moved * PERIOD_S / (now_s - self.at_s)
            before = np.clip(moved, np.minimum(0.0, mean), np.maximum(0.0, mean))
            before = before if now_s - self.at_s > PERIOD_S * (1.0 + 1e-9) else self.moved
            assert (np.abs(moved - before) <= ACCELERATION * PERIOD_S**2 + ROUNDING).all()
        self.position, self.moved, self.at_s, self.whole = action, moved, now_s, whole
        if measured is not None:
            self.answered_s = now_s


class Robot:
    """A robot from the messages that it gets to the commands that it gives; its verifier is the test."""

    present, absence = True, ""
    next_due_s = math.inf

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.judge = Judge()
        self.answered: list[int] = []
        self.sent: dict[int, Request | None] = {}
        self.arrived: list[Reply | Described] = []
        draft, contract = policy("ball/draft"), load_contract("ball")
        self.contract, self.signature = contract, draft.signature
        assert draft.signature.codes is not None
        self.codes = draft.signature.codes
        self.assembler = ObservationAssembler(contract)
        names = [path.partition(".")[2] for path in contract.action.select]
        self.measured = contract.measured(tuple(names))
        bound = {"position_low": -POSITION, "position_high": POSITION, "velocity": VELOCITY}
        limits = Limits.from_fields(names, {name: {**bound, "acceleration": ACCELERATION} for name in names})
        config = GuardConfig(PERIOD_S, HOLD_AFTER_S)
        self.permission, self.published = Permission(False, 0.5), 0
        envelope = Envelope(limits, "positions", PERIOD_S)
        self.guard = Guard(envelope, config, self.permission, self.now_s)
        self.guard.start(self.now_s)
        offered = Offer({OBSERVATION: draft.signature.observation_dim, GOAL: 2})
        self.session = VerifierSession(self, Wants(draft.signature, offered), True, lambda: None)
        self.loop = ControlLoop(
            Controller(draft, ControllerConfig(ThresholdedGate("always"))),
            self.session,
            Features(draft.signature.observation_dim),
            "robot",
            0,
            DEADLINE_S,
            self,
            lambda record: None,
            Fallback(None),
            lambda: self.now_s,
        )
        self.loop.start(0.0)

    # As a transport

    def accept_only(self, check: Check) -> None:
        pass

    def submit(self, request: Request, update: WireWindow) -> Sent:
        self.sent[len(self.sent)] = request
        return Sent(len(self.sent) - 1, 100)

    def describe(self) -> int:
        self.sent[len(self.sent)] = None
        return len(self.sent) - 1

    def poll(self) -> list[Reply | Described]:
        arrived, self.arrived = self.arrived, []
        return arrived

    def cancel(self, sent: int) -> None: ...

    @property
    def figures(self) -> dict[str, object]:
        return {}

    # As a sink of commands

    def observed(self) -> None:
        self.guard.observed(self.now_s)

    def limit(self, action: np.ndarray | None, observation: Observation) -> Outgoing:
        if action is None:
            return Outgoing(self.guard.withhold(self.now_s), brakes=True)
        measured = self.measured.positions_in(observation.read)
        wanted = np.asarray(self.contract.action.to_wire(action), dtype=np.float64)
        command = self.guard.act(wanted, measured, self.now_s)
        return Outgoing(command, command)

    def command(self, outgoing: Outgoing, observation: Observation) -> np.ndarray | None:
        if outgoing.brakes:
            self.put(outgoing.command)
            return None
        measured = self.measured.positions_in(observation.read)
        return self.put(outgoing.command, measured, observation.stamp_ns)

    def repeat(self, observation: Observation) -> None:
        self.put(
            self.guard.repeat(self.now_s), self.measured.positions_in(observation.read), observation.stamp_ns
        )

    def press(self, value: bool) -> None:
        """Receive a message on `enable`."""
        self.published += 1
        self.permission.publishers.note_publishers(frozenset((b"deadman",)), None, self.now_s)
        self.permission.receive(Press(value, self.now_s, 0.0, self.published), self.now_s)

    def resumes(self) -> bool:
        return self.guard.resumes(self.now_s)

    def commanded(self) -> np.ndarray | None:
        return self.judge.position

    def put(self, action: Any, measured: Any = None, stamp_ns: int = 0) -> np.ndarray | None:
        if action is not None:
            self.judge.check(action, measured, self.now_s)
            self.answered.append(stamp_ns)
        return action

    # What happens to it

    @property
    def now_ns(self) -> int:
        return round(self.now_s * NANOSECONDS)

    def pass_time(self, duration_s: float) -> None:
        self.now_s += duration_s
        self.loop.poll()
        self.put(self.guard.brake_if_held(self.now_s))

    def show(self, messages: list[tuple[str, Any]]) -> None:
        for topic, message in messages:
            try:
                observation = self.assembler.add(topic, message, self.now_ns)
                if observation is not None:
                    assert np.isfinite(observation.values).all()
                    self.loop.step(observation)
            except (InputError, DraftError) as error:
                names_the_field(error, ("joint_states", "task_state", "observation", "action"))

    def reply(self, sent: int, data: st.DataObject) -> None:
        request, horizon = self.sent[sent], self.signature.horizon * self.signature.action_dim
        if request is None:
            message = describe(Description("ball", "speculative", self.signature))
        else:
            message = VerifyDraft.Response(
                episode_id=request.episode,
                step_id=request.step,
                first_step=request.step,
                actions=array("f", [data.draw(st.sampled_from((0.05, 0.3, -0.3, 3.0)))] * horizon),
                accepted=[True] * self.codes.codebooks,
                window_kept=True,
            )
        if data.draw(st.sampled_from((False, False, False, True))):
            message = garbage.mutated(data.draw, message)
        self.arrived.append((from_described if request is None else from_reply)(sent, message))
        self.loop.poll()


@more
@given(data=st.data())
def test_garbage_moves_no_robot_beyond_its_limits(data: st.DataObject) -> None:
    """And a good observation is answered afterwards, whatever came."""
    robot = Robot()
    robot.pass_time(0.06)
    robot.reply(0, data)
    happening = st.sampled_from((*["show"] * 6, "late reply", "allow", "forbid", "nothing"))
    for step in range(data.draw(st.integers(1, 12))):
        robot.pass_time(data.draw(elapsed_s))
        match data.draw(happening):
            case "show":
                messages = garbage.observed(0, step, robot.now_ns)
                for topic in data.draw(st.sampled_from(((), (), (), ("joint_states",), ("task_state",)))):
                    messages[topic] = garbage.mutated(data.draw, messages[topic])
                robot.show(list(messages.items()))
                if data.draw(st.booleans()):
                    robot.pass_time(0.01)
                    for sent in sorted(robot.sent)[-2:]:
                        robot.reply(sent, data)
            case "late reply":
                robot.reply(data.draw(st.sampled_from(sorted(robot.sent))), data)
            case "allow":
                robot.press(True)
            case "forbid":
                robot.press(False)
    robot.permission.set_enabled(True, robot.now_s)
    for step in range(3):
        robot.pass_time(5.0)
        stamp_ns = robot.now_ns
        robot.show(list(garbage.observed(77, step, stamp_ns).items()))
        robot.pass_time(DEADLINE_S + 0.01)
    assert stamp_ns in robot.answered


@pytest.mark.parametrize("name", ["ball", "ball_camera"])
@given(data=st.data())
def test_garbage_leaves_nothing_in_later_observations(name: str, data: st.DataObject) -> None:
    contract, camera = load_contract(name), name == "ball_camera"
    amid, alone = (ObservationAssembler(contract, lambda images: images[:, 0, 0, :]) for _ in range(2))
    for step in range(data.draw(st.integers(1, 6))):
        now_ns = NANOSECONDS * (10 + step)
        good = garbage.observed(1, step, now_ns, camera)
        for topic, message in data.draw(st.permutations(list(good.items()))):
            try:
                seen = amid.add(topic, garbage.mutated(data.draw, message), now_ns)
                assert seen is None or np.isfinite(seen.values).all()
            except InputError as error:
                names_the_field(error, good)
    good = garbage.observed(9, 9, NANOSECONDS * 60, camera)
    seen, expected = (
        [each.add(topic, one, NANOSECONDS * 60) for topic, one in good.items()][-1] for each in (amid, alone)
    )
    assert seen is not None
    assert expected is not None
    np.testing.assert_array_equal(seen.values, expected.values)
    np.testing.assert_array_equal(seen.goal, expected.goal)


@more
@given(data=st.data())
def test_no_robot_acts_by_an_intent_that_was_not_described(data: st.DataObject) -> None:
    signature = replace(policy("ball/target").signature, horizon=4, codes=None)
    described = Description("ball", "replace", signature, intent_fingerprint="a" * 16, intent_size=3)
    only = data.draw(st.booleans())
    request = Request.from_draft(
        Proposal(np.zeros((1, 0, 2), np.float32)), 1, 2, NO_WINDOW, without_actions=only
    )
    good = VerifyDraft.Response(
        episode_id=1,
        step_id=2,
        first_step=2,
        actions=array("f", bytes(0 if only else 4 * 4 * signature.action_dim)),
        intent=array("b", (-127, 0, 127)),
        intent_fingerprint=int("a" * 16, 16),
    )
    message = garbage.mutated(data.draw, good)
    outcome = judged(described, request, from_reply(0, message), 1.0)
    verdict = outcome.verification
    if verdict is None:
        assert outcome.reason is not Reason.NONE
        return
    assert message.intent_fingerprint == good.intent_fingerprint
    assert verdict.intent is not None
    assert (verdict.intent.shape, verdict.intent.dtype) == ((1, 3), np.int8)
    assert verdict.intent.min() >= -INTENT_LIMIT
    assert verdict.actions.shape == (1, 0 if only else 4, signature.action_dim)
    assert np.isfinite(verdict.actions).all()


def good_request(camera: bool) -> VerifyDraft.Request:
    its = policy("ball_camera/target" if camera else "ball/target").signature
    numbers = 2 if camera else its.observation_dim
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    images = [CompressedImage(format="jpeg", data=array("B", to_jpeg(pixels, 60)))] * its.history
    assert its.codes is not None
    books, size = its.codes.codebooks, its.codes.codebook_size
    return VerifyDraft.Request(
        protocol=PROTOCOL_VERSION,
        robot_id="robot",
        tokenizer_fingerprint=fingerprint_number(its.codes.fingerprint),
        observation_window=array("f", bytes(4 * its.history * numbers)),
        images=images if camera else [],
        goal=array("f", bytes(4 * its.goal_dim)),
        codes=array("H", bytes(2 * books)),
        draft_probabilities=array("H", [UNITS, *[0] * (size - 1)] * books),
    )


@pytest.mark.parametrize("camera", [False, True])
@more
@given(data=st.data())
def test_a_request_is_refused_by_its_field_or_gets_sound_actions(camera: bool, data: st.DataObject) -> None:
    target = policy("ball_camera/target" if camera else "ball/target")
    images = ReceivedImages(encoder()) if camera else None
    engine, fresh = (Engine(TargetVerifier(target), 0, images) for _ in range(2))
    good = good_request(camera)
    for _ in range(data.draw(st.integers(1, 4))):
        request = garbage.mutated(data.draw, good)
        if camera and data.draw(st.booleans()):
            torn = garbage.torn(data.draw, bytes(good.images[0].data))
            request.images = [CompressedImage(format="jpeg", data=array("B", torn)), *good.images[1:]]
        try:
            replied = engine.verify(from_request(request), 0.0)
        except RequestError as error:
            names_the_field(error, good.get_fields_and_field_types())
        else:
            for numbers in (request.observation_window, request.goal, replied.actions):
                assert np.isfinite(numbers).all()
            assert len(request.codes) == len(replied.accepted) == len(good.codes)
            to_reply(replied, 0.0)
    one, other = (each.verify(from_request(good), 1.0) for each in (engine, fresh))
    np.testing.assert_array_equal(one.actions, other.actions)
    np.testing.assert_array_equal(one.accepted, other.accepted)
