"""The control loop between a commander and a verifier that are played by the test; nothing is spun."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from adahi_ros.contract.assembler import Observation
from adahi_ros.gates.config import ControllerConfig
from adahi_ros.gates.context import LinkEstimate
from adahi_ros.gates.deviation import DeviationTracker
from adahi_ros.gates.scores import Gate
from adahi_ros.nodes.robot.control_loop import ControlLoop
from adahi_ros.nodes.robot.question import Answer, Question
from adahi_ros.nodes.robot.verifier_client import Link
from adahi_ros.policy.backends import load_policy
from adahi_ros.policy.interface import Policy
from adahi_ros.robot.controller import Controller
from adahi_ros.robot.fallback import Fallback
from adahi_ros.robot.target_view import target_view
from adahi_ros.wire.records import Reason, StepRecord
from adahi_ros.wire.request import Verification


class Commander:
    """Lets half of every action through while the robot is enabled; a robot that rests is sent nothing."""

    def __init__(self) -> None:
        self.enabled = True
        self.withheld = 0
        self.sent: list[np.ndarray] = []
        self.repeated = 0
        self._commanded: np.ndarray | None = None

    def heard(self) -> None:
        pass

    def send(self, action: np.ndarray, observation: Observation) -> np.ndarray | None:
        if not self.enabled:
            return None
        self._commanded = 0.5 * action
        self.sent.append(self._commanded)
        return self._commanded

    def commanded(self) -> np.ndarray | None:
        commanded, self._commanded = self._commanded, None
        return commanded

    def withhold(self) -> None:
        self.withheld += 1

    def repeat(self, observation: Observation) -> None:
        self.repeated += 1


class Verifier:
    """Is asked, and answers when the test says so."""

    def __init__(self) -> None:
        self.link, self.trouble, self.request_bytes = Link.READY, "", 0
        self.asked: list[Question] = []
        self._on_answer: Callable[[Answer], None] | None = None

    def estimate(self) -> LinkEstimate:
        return LinkEstimate()

    def ask(self, question: Question, deadline_s: float, on_answer: Callable[[Answer], None]) -> None:
        self.asked.append(question)
        self._on_answer = on_answer

    def abandon(self) -> None:
        self._on_answer = None

    def settle(self) -> None:
        pass

    def count_miss(self) -> None:
        pass

    def answer(self, answer: Answer) -> None:
        """End the question that is out."""
        on_answer, self._on_answer = self._on_answer, None
        assert on_answer is not None
        on_answer(answer)

    def keep(self) -> None:
        """Answer that every code is kept."""
        request = self.asked[-1].request
        spec = np.shape(request.codes)
        offsets = np.zeros((1, *self.chunk), np.float32)
        self.answer(Answer(Verification(request.codes, np.ones(spec, bool), offsets), Reason.NONE))

    chunk = (1, 2)


class Scene:
    """A loop, and everyone that it talks to."""

    def __init__(self, policy: Policy, gate: Gate, limit: int | None = None) -> None:
        self.commander, self.verifier = Commander(), Verifier()
        self.verifier.chunk = (policy.spec.chunk_length, policy.spec.action_dim)
        self.records: list[StepRecord] = []
        self._policy, self._step = policy, 0
        self.loop = ControlLoop(
            Controller(policy, ControllerConfig(gate)),
            self.verifier,  # type: ignore[arg-type]
            target_view("features", policy.spec.window_length, policy.spec.observation_dim, 80, 0),
            "robot",
            0,
            0.03,
            self.commander,  # type: ignore[arg-type]
            self.records.append,
            Fallback(limit),
        )

    def observe(self, again: bool = False) -> None:
        """Show the next observation, or the last one again."""
        self._step += not again
        spec = self._policy.spec
        values = np.full(spec.observation_dim, 0.01 * self._step, np.float32)
        goal = np.zeros(spec.goal_dim, np.float32)
        self.loop.observe(Observation(10**9 + self._step, 0, self._step, values, goal, values.astype(float)))


@pytest.fixture(scope="module")
def policy(exported: Path) -> Policy:
    return load_policy(exported / "draft", "onnxruntime")


def test_the_deviation_is_from_what_was_commanded_not_from_what_the_policy_wanted(policy: Policy) -> None:
    scene = Scene(policy, Gate("never"))
    average = DeviationTracker(policy.decoder.action_scale, 0.5, "std")
    for step in range(12):
        scene.commander.enabled = not 4 <= step < 8  # at rest meanwhile: nothing goes in
        scene.observe()
        record = scene.records[-1]
        expected = average.deviation(np.array([record.draft_action]))[0]
        assert record.deviation == pytest.approx(expected, rel=1e-5)
        assert (record.action == ()) is not scene.commander.enabled
        if record.action:
            average.update(np.array([record.action]))


def alone(scene: Scene) -> list[Reason]:
    """Observe until a draft is withheld; return the reasons of the steps."""
    while not scene.commander.withheld:
        scene.observe()
        assert len(scene.records) < 20
    return [record.reason for record in scene.records]


@pytest.mark.parametrize("limit", [0, 1, 4])
def test_a_draft_acts_alone_for_so_many_steps_and_is_withheld_then(policy: Policy, limit: int) -> None:
    scene = Scene(policy, Gate("always"), limit)
    scene.verifier.link, scene.verifier.trouble = Link.ABSENT, "its services are gone"
    assert alone(scene) == [Reason.NO_VERIFIER] * limit + [Reason.FALLBACK_LIMIT]
    assert len(scene.commander.sent) == limit
    scene.observe()
    held = scene.records[-1]
    assert (held.reason, held.action, held.verified) == (Reason.FALLBACK_LIMIT, (), False)
    assert held.message == "no verifier: its services are gone"
    assert held.draft_action
    assert held.reason_counts[Reason.FALLBACK_LIMIT] == 2
    assert len(scene.commander.sent) == limit


def test_by_default_nothing_is_withheld(policy: Policy) -> None:
    scene = Scene(policy, Gate("always"))
    scene.verifier.link = Link.ABSENT
    for _ in range(50):
        scene.observe()
    assert len(scene.commander.sent) == 50
    assert not scene.commander.withheld


def test_a_verified_draft_ends_it_and_is_asked_for_whatever_the_gate_says(policy: Policy) -> None:
    scene = Scene(policy, Gate("always"), 1)
    scene.verifier.link = Link.DOUBTED
    alone(scene)
    scene.loop.controller.config = ControllerConfig(Gate("never"))
    scene.observe()
    assert scene.records[-1].message == "breaker open"
    scene.verifier.link = Link.READY  # a probe was answered
    scene.observe()
    assert len(scene.verifier.asked) == 1
    scene.verifier.answer(Answer(None, Reason.DEADLINE))
    assert (scene.records[-1].reason, scene.records[-1].message) == (Reason.FALLBACK_LIMIT, "deadline")
    scene.observe()
    scene.verifier.keep()
    record = scene.records[-1]
    assert (record.reason, record.transmitted, record.verified) == (Reason.NONE, True, True)
    assert record.action
    scene.observe()  # which the gate leaves to the draft again
    assert (scene.records[-1].transmitted, len(scene.verifier.asked)) == (False, 2)
    assert scene.records[-1].action


def test_what_the_gate_leaves_to_the_draft_neither_counts_nor_ends_the_row(policy: Policy) -> None:
    scene = Scene(policy, Gate("always"), 2)
    scene.verifier.link = Link.ABSENT
    gates = ["never", "always", "never", "never", "always", "never", "always", "never"]
    for gate in gates:
        scene.loop.controller.config = ControllerConfig(Gate(gate))
        scene.observe()
    assert [record.reason for record in scene.records] == [
        *(Reason.NONE, Reason.NO_VERIFIER, Reason.NONE, Reason.NONE, Reason.NO_VERIFIER, Reason.NONE),
        *(Reason.FALLBACK_LIMIT, Reason.FALLBACK_LIMIT),
    ]


@pytest.mark.parametrize("reason", [Reason.DEADLINE, Reason.REFUSED, Reason.BAD_ANSWER])
def test_questions_without_a_good_answer_count(policy: Policy, reason: Reason) -> None:
    scene = Scene(policy, Gate("always"), 1)
    for _ in range(2):
        scene.observe()
        scene.verifier.answer(Answer(None, reason, "no"))
    told = f"{reason.name.lower().replace('_', ' ')}: no"
    assert (scene.records[-1].reason, scene.records[-1].message) == (Reason.FALLBACK_LIMIT, told)


def test_steps_that_are_superseded_count(policy: Policy) -> None:
    scene = Scene(policy, Gate("always"), 1)
    for _ in range(3):
        scene.observe()
    assert [record.reason for record in scene.records] == [Reason.SUPERSEDED, Reason.FALLBACK_LIMIT]
    assert scene.records[-1].message == "superseded"


def test_a_withheld_step_is_asked_about_again_where_its_observation_is_repeated(policy: Policy) -> None:
    scene = Scene(policy, Gate("always"), 0)
    scene.verifier.link = Link.ABSENT
    alone(scene)
    scene.observe(again=True)
    assert len(scene.records) == 1
    scene.verifier.link = Link.READY
    scene.observe(again=True)
    scene.observe(again=True)
    assert len(scene.verifier.asked) == 1
    scene.verifier.keep()
    assert scene.records[-1].verified
    assert scene.records[-1].action
    scene.observe(again=True)
    assert (len(scene.verifier.asked), scene.commander.repeated) == (1, 2)


def test_a_new_activation_begins_to_count(policy: Policy) -> None:
    scene = Scene(policy, Gate("always"), 1)
    scene.verifier.link = Link.ABSENT
    alone(scene)
    scene.loop.stop()
    scene.observe()
    assert scene.records[-1].reason is Reason.NO_VERIFIER
