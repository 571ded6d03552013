"""What a robot goes through to be ready for an observation or an answer: it does, and to no effect."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rclpy.parameter import Parameter

from adahi_ros.nodes.common.messages import describe
from adahi_ros.nodes.robot import rehearsal, verifier_client
from adahi_ros.nodes.robot.draft_policy_node import DraftPolicyNode, executor_of
from adahi_ros.nodes.robot.question import Answer, Question
from adahi_ros.nodes.robot.verifier_client import Link, VerifierClient
from adahi_ros.policy.backends import load_policy
from adahi_ros.policy.distribution import counted
from adahi_ros.robot.controller import Controller
from adahi_ros.wire.request import VerificationRequest
from adahi_ros.wire.window import WireWindow

PERIOD_S = 0.05
STEPS = 6
RELIABLE = {"verification.reliability": "reliable"}
UNHURRIED = {
    "verifier_wait_s": 60.0,
    "max_age_s": 60.0,
    "safety.hold_after_s": 60.0,
    "control_rate_hz": 1.0 / PERIOD_S,
}
NOTHING_LOST = {
    f"/{topic}": {"subscription": {"reliability": "reliable", "depth": 100}}
    for topic in ("joint_states", "task_state")
}


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """However late on a busy machine."""
    monkeypatch.setattr(rehearsal, "LATE_S", 60.0)


def pass_time(stage: Any, duration_s: float) -> None:
    end = time.monotonic() + duration_s
    stage.wait(lambda: time.monotonic() > end, "the end of a pause")


def counting(monkeypatch: pytest.MonkeyPatch, where: Any, name: str) -> list[None]:
    """Have every call of a function leave something behind."""
    calls: list[None] = []
    called = getattr(where, name)

    def counted_call(*arguments: Any) -> Any:
        calls.append(None)
        return called(*arguments)

    monkeypatch.setattr(where, name, counted_call)
    return calls


def test_a_robot_with_time_between_its_steps_does_what_one_in_a_hurry_does(
    stage: Any, make_robot: Callable[[Any], Any], exported: Path
) -> None:
    verifier = {"checkpoint": str(exported / "target"), "seed": 5}
    draft = {"checkpoint": str(exported / "draft"), "gate.name": "always", "deadline_s": 30.0}
    processes = [
        stage.start("target_verifier_node", **verifier | RELIABLE),
        stage.start("draft_policy_node", qos_overrides=NOTHING_LOST, **draft | RELIABLE | UNHURRIED),
    ]
    robot = make_robot(stage)
    assert stage.change_state("configure")
    assert stage.change_state("activate")

    def episode(pause_s: float) -> list[tuple[Any, ...]]:
        robot.show_until_answered(0)
        robot.steps.clear()
        decided = []
        for step in range(STEPS):
            robot.show(1, step)
            record = robot.answer_to(1, step)
            assert record.verified
            judged = (record.deviation, record.score, record.accepted, record.draft_action, record.action)
            decided.append((*judged, record.request_bytes))
            pass_time(stage, pause_s)
        return decided

    assert episode(2 * PERIOD_S) == episode(0.0)
    for process in processes:
        process.end()
        stage.processes.all.remove(process)


def test_a_step_is_rehearsed_once_before_the_next_and_not_by_a_node_that_is_inactive(
    stage: Any, make_robot: Callable[[Any], Any], exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rehearsed = counting(monkeypatch, Controller, "rehearse")
    values = {
        **UNHURRIED,
        "verifier_wait_s": 0.0,
        "checkpoint": str(exported / "draft"),
        "gate.name": "never",
    }
    node = DraftPolicyNode(
        context=stage.observer.context,
        use_global_arguments=False,
        parameter_overrides=[Parameter(name, value=value) for name, value in values.items()],
    )
    executor = executor_of(node)
    monkeypatch.setattr(stage, "check", lambda: executor.spin_once(0.0))
    robot = make_robot(stage)
    try:
        node.trigger_configure()
        node.trigger_activate()
        robot.show_until_answered(0)
        pass_time(stage, 2 * PERIOD_S)
        rehearsed.clear()
        robot.show(0, 1)
        robot.answer_to(0, 1)
        stage.wait(lambda: bool(rehearsed), "a rehearsal")
        pass_time(stage, 2 * PERIOD_S)
        assert len(rehearsed) == 1
        robot.show(0, 2)
        robot.answer_to(0, 2)
        node.trigger_deactivate()
        before = len(rehearsed)
        pass_time(stage, 2 * PERIOD_S)
        assert len(rehearsed) == before
    finally:
        executor.shutdown()
        node.destroy_node()


def test_the_answer_before_is_rehearsed_while_the_next_is_on_its_way(
    stage: Any, make_held_verifier: Callable[..., Any], exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = load_policy(exported / "draft", "onnxruntime")
    spec = policy.spec
    judged = counting(monkeypatch, verifier_client, "judged")
    verifier = make_held_verifier(stage, describe(policy))
    client = VerifierClient(stage.node, policy, "robot", "reliable", lambda: None)
    window = np.zeros((spec.window_length, spec.observation_dim), np.float32)
    goal = np.zeros(spec.goal_dim, np.float32)
    counts = counted(np.full((1, spec.codebooks, spec.codebook_size), 1.0 / spec.codebook_size))
    request = VerificationRequest(window[None], goal[None], np.zeros((1, spec.codebooks), np.int64), counts)

    def ask(step: int) -> tuple[Any, list[Answer]]:
        answers: list[Answer] = []
        client.ask(Question(request, 0, step, WireWindow.of(window, goal)), 30.0, answers.append)
        return verifier.wait_for_question(0, step), answers

    try:
        client.start()
        stage.wait(lambda: client.link is Link.READY, "a verifier")
        asked, answers = ask(0)
        pass_time(stage, PERIOD_S)  # so that answers usually take so long
        assert not judged
        verifier.answer(asked)
        stage.wait(lambda: bool(answers), "the first answer")
        before = client.estimate()
        asked, answers = ask(1)
        stage.wait(lambda: len(judged) > 1, "a rehearsal")
        pass_time(stage, PERIOD_S)
        assert len(judged) == 2
        assert not answers
        assert len(verifier.questions(0, 1)) == 1
        assert client.estimate().answers == before.answers
        client.rehearse_question()
        verifier.answer(asked, codes=[0, 1])
        stage.wait(lambda: bool(answers), "the second answer")
        assert answers[0].verification is not None
        assert answers[0].verification.codes.tolist() == [[0, 1]]
    finally:
        client.destroy()
        verifier.close()
