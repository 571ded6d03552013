"""The control loop between a commander and a verifier that are played by the test; nothing is spun."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adahi_ros.contract.assembler import Observation
from adahi_ros.nodes.control_loop import ControlLoop
from adahi_ros.nodes.question import Answer, Question
from adahi_ros.nodes.verifier_client import Link
from adahi_ros.policy.backends import load_policy
from adahi_ros.policy.interface import Policy
from adahi_ros.speculation.controller import Controller, ControllerConfig
from adahi_ros.speculation.deviation import DeviationTracker
from adahi_ros.speculation.gates import Gate
from adahi_ros.speculation.link_estimate import LinkEstimate
from adahi_ros.speculation.records import Reason, StepRecord
from adahi_ros.speculation.request import Verification
from adahi_ros.speculation.target_view import target_view


class Commander:
    """Lets half of every action through while the robot is enabled; a robot that rests is sent nothing."""

    def __init__(self) -> None:
        self.enabled = True
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

    def __init__(self, policy: Policy, gate: Gate, **options: Any) -> None:
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
            **options,
        )

    def observe(self, again: bool = False) -> None:
        """Show the next observation, or the last one again."""
        self._step += not again
        spec = self._policy.spec
        values = np.full(spec.observation_dim, 0.01 * self._step, np.float32)
        goal = np.zeros(spec.goal_dim, np.float32)
        self.loop.observe(Observation(10**9 + self._step, 0, self._step, values, goal))


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
