"""The draft policy node between a robot and a verifier that are both played by the test."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from adahi_msgs.msg import LinkState
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from diagnostic_msgs.msg import DiagnosticStatus

from adahi_ros.nodes.common.messages import from_stamp
from adahi_ros.robot.breaker import FIRST_PAUSE_S, MISSES_UNTIL_OPEN
from adahi_ros.wire.records import Reason
from adahi_ros.wire.request import RequestFault


def test_the_answer_is_executed(scene: Any) -> None:
    episode, robot = scene.new_episode(), scene.robot
    stamp = robot.show(episode, 1)
    request = scene.verifier.wait_for_question(episode, 1)
    assert request.observation_window[-6:].tolist() == pytest.approx([0.01, -0.02, *[0.01] * 4])
    assert request.robot_id == "robot"
    scene.verifier.answer(request, compute_time_ms=0.25)
    record = robot.answer_to(episode, 1)
    expected = scene.decoder.decode(np.array([[request.codes[0], 0]]))[0, 0] + np.float32(0.5)
    assert record.action == tuple(map(float, expected)) == robot.command_to(stamp)
    assert record.action != record.draft_action
    assert record.stamp_ns == stamp
    assert (record.transmitted, record.verified, record.reason) == (True, True, Reason.NONE)
    assert record.accepted == (True, False)
    assert record.target_compute_ms == 0.25
    assert record.request_bytes > 0 < record.response_bytes


def test_only_what_is_new_of_a_window_is_sent_and_all_of_it_where_that_is_asked_for(scene: Any) -> None:
    episode, robot = scene.new_episode(), scene.robot
    robot.show(episode, 1)
    request = scene.verifier.wait_for_question(episode, 1)
    scene.verifier.answer(request)
    assert robot.answer_to(episode, 1).verified
    robot.show(episode, 2)
    short = scene.verifier.wait_for_question(episode, 2)
    assert short.base_window != 0
    assert short.observation_window.tolist() == pytest.approx([0.01, -0.02, *[0.02] * 4])
    assert len(short.goal) == 0
    scene.verifier.answer(short, status=RequestFault.WINDOW_UNKNOWN, message="base_window: is not here")
    scene.stage.wait(lambda: len(scene.verifier.questions(episode, 2)) == 2, "the question again")
    whole = scene.verifier.questions(episode, 2)[1]
    assert whole.base_window == 0
    assert whole.session_id == short.session_id
    assert np.reshape(whole.observation_window, (3, 6))[-1].tolist() == short.observation_window.tolist()
    assert whole.goal.tolist() == pytest.approx([0.1, 0.1])
    assert (whole.codes, whole.draft_probabilities) == (short.codes, short.draft_probabilities)
    scene.verifier.answer(whole)
    record = robot.answer_to(episode, 2)
    assert record.verified
    assert record.request_bytes > 4 * len(whole.observation_window) + 4 * len(short.observation_window)


def test_the_state_of_the_link_is_published(scene: Any) -> None:
    states: list[LinkState] = []
    scene.stage.node.create_subscription(LinkState, "link_state", states.append, 10)
    episode, robot = scene.new_episode(), scene.robot
    robot.show(episode, 1)
    scene.verifier.answer(scene.verifier.wait_for_question(episode, 1))
    assert robot.answer_to(episode, 1).verified
    scene.stage.wait(lambda: bool(states) and states[-1].answers > 0, "link state")
    state = states[-1]
    assert state.verifier == LinkState.VERIFIER_READY
    assert 0.0 < state.rtt_ms < 30_000.0
    assert state.goodput_bytes_s > 0.0
    assert state.answers <= state.questions


def test_a_late_answer_moves_nothing(scene: Any) -> None:
    episode, robot = scene.new_episode(), scene.robot
    assert not scene.set(deadline_s=0.1)
    stamp = robot.show(episode, 1)
    request = scene.verifier.wait_for_question(episode, 1)
    record = robot.answer_to(episode, 1)
    assert (record.transmitted, record.verified, record.reason) == (True, False, Reason.DEADLINE)
    assert robot.command_to(stamp) == record.action == record.draft_action
    assert not scene.set(deadline_s=30.0)
    commands = len(robot.commands)
    scene.verifier.answer(request)
    # The answer to the next question comes after the late one: both from one writer, in order.
    next_stamp = robot.show(episode, 2)
    next_request = scene.verifier.wait_for_question(episode, 2)
    scene.verifier.answer(next_request, offset=[0.25, 0.25])
    next_record = robot.answer_to(episode, 2)
    assert next_record.verified
    assert robot.command_to(next_stamp) == next_record.action
    assert len(robot.commands) == commands + 1


def test_a_newer_observation_executes_the_draft_of_the_one_that_waits(scene: Any) -> None:
    episode, robot = scene.new_episode(), scene.robot
    stamp = robot.show(episode, 1)
    superseded = scene.verifier.wait_for_question(episode, 1)
    robot.show(episode, 2)
    record = robot.answer_to(episode, 1)
    assert record.reason is Reason.SUPERSEDED
    assert robot.command_to(stamp) == record.action == record.draft_action
    superseded.step_id = 2
    scene.verifier.answer(superseded)  # names step 2, but answers the question of step 1
    request = scene.verifier.wait_for_question(episode, 2)
    scene.verifier.answer(request, offset=[0.125, 0.125])
    expected = scene.decoder.decode(np.array([[request.codes[0], 0]]))[0, 0] + np.float32(0.125)
    assert robot.answer_to(episode, 2).action == tuple(map(float, expected))


def test_an_episode_that_is_over_moves_nothing(scene: Any) -> None:
    episode, robot = scene.new_episode(), scene.robot
    robot.show(episode, 1)
    late = scene.verifier.wait_for_question(episode, 1)
    commands = len(robot.commands)
    robot.show_until_given_up(episode + 1, 0)
    scene.verifier.answer(late)
    request = scene.verifier.wait_for_question(episode + 1, 0)
    scene.verifier.answer(request)
    assert robot.answer_to(episode + 1, 0).verified
    assert len(robot.commands) == commands + 1
    assert not any((record.episode, record.step) == (episode, 1) for record in robot.steps)
    scene.new_episode()  # past the one that was begun here


def test_an_episode_that_starts_again_drops_the_step_that_waits(scene: Any) -> None:
    episode, robot = scene.new_episode(), scene.robot
    first = robot.show(episode, 1)
    scene.verifier.answer(scene.verifier.wait_for_question(episode, 1))
    robot.command_to(first)
    robot.show(episode, 3)
    late = scene.verifier.wait_for_question(episode, 3)
    commands = len(robot.commands)
    stamp = robot.show_until_given_up(episode, 2)
    scene.verifier.answer(late)
    request = scene.verifier.wait_for_question(episode, 2)
    assert request.base_window == 0
    window = np.reshape(request.observation_window, (3, 6))
    assert (window == window[-1]).all()  # nothing of before is left
    scene.verifier.answer(request)
    robot.command_to(stamp)
    assert len(robot.commands) == commands + 1
    assert not any((record.episode, record.step) == (episode, 3) for record in robot.steps)


def test_a_status_names_the_gate_that_decided(scene: Any) -> None:
    episode, robot = scene.new_episode(), scene.robot
    threshold = robot.steps[-1].threshold
    robot.show(episode, 1)
    request = scene.verifier.wait_for_question(episode, 1)
    assert not scene.set(gate__name="never", gate__threshold=threshold + 1.0)
    robot.show(episode, 2)
    record = robot.answer_to(episode, 1)
    assert (record.gate, record.threshold, record.reason) == ("always", threshold, Reason.SUPERSEDED)
    assert robot.answer_to(episode, 2).gate == "never"
    scene.verifier.answer(request)
    assert not scene.set(gate__threshold=threshold)


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        ({"status": 3, "message": "goal[0]: nan"}, Reason.REFUSED, "goal[0]: nan"),
        ({"step_id": 999}, Reason.BAD_ANSWER, "episode_id, step_id"),
        ({"codes": [1, 8]}, Reason.BAD_ANSWER, "codes"),
        ({"codes": []}, Reason.BAD_ANSWER, "codes"),
        ({"accepted": [True]}, Reason.BAD_ANSWER, "accepted"),
        ({"offset": [math.nan, 0.0]}, Reason.BAD_ANSWER, "offset"),
        ({"offset": [0.0, -1e30]}, Reason.BAD_ANSWER, "action[1]"),
        ({"compute_time_ms": math.nan}, Reason.BAD_ANSWER, "compute_time_ms"),
        ({"compute_time_ms": -math.inf}, Reason.BAD_ANSWER, "compute_time_ms"),
    ],
)
def test_an_answer_that_is_no_good_executes_the_draft(
    scene: Any, changes: dict[str, Any], reason: Reason, message: str
) -> None:
    episode, robot = scene.new_episode(), scene.robot
    stamp = robot.show(episode, 1)
    request = scene.verifier.wait_for_question(episode, 1)
    scene.verifier.answer(request, **changes)
    record = robot.answer_to(episode, 1)
    assert record.reason is reason
    assert record.message.startswith(message)
    assert not record.verified
    assert robot.command_to(stamp) == record.action == record.draft_action


def test_live_parameters(scene: Any) -> None:
    episode, robot = scene.new_episode(), scene.robot
    assert "'sometimes', must be one of deviation" in scene.set(gate__name="sometimes")
    assert "gate.threshold: nan" in scene.set(gate__threshold=math.nan)
    assert "draft_temperature" in scene.set(draft_temperature=0.0)
    assert "unconfigured" in scene.set(checkpoint="ball/target")
    assert not scene.set(gate__name="deviation", gate__threshold=1e6)
    robot.show(episode, 1)
    record = robot.answer_to(episode, 1)
    assert (record.gate, record.threshold, record.transmitted) == ("deviation", 1e6, False)
    assert math.isfinite(record.deviation)
    assert record.score == record.deviation


def test_no_command_after_deactivation(scene: Any) -> None:
    episode, robot = scene.new_episode(), scene.robot
    robot.show(episode, 1)
    request = scene.verifier.wait_for_question(episode, 1)
    commands, before = len(robot.commands), robot.commands[-1]
    assert scene.stage.change_state("deactivate")
    scene.verifier.answer(request)
    robot.show(episode, 2)
    assert scene.stage.change_state("activate")
    assert scene.new_episode() == episode + 1
    robot.command_to(robot.steps[-1].stamp_ns)
    assert all(record.step == 0 for record in robot.steps if record.episode == episode)
    repeats = [record for record in robot.steps if record.episode == episode + 1]
    sent = robot.commands[commands:]
    holds = [command for command in sent if from_stamp(command.header.stamp) == 0]
    assert len(holds) > 0
    assert all(hold.points == before.points for hold in holds)
    assert len(sent) - len(holds) >= len(repeats)
    stamps = {from_stamp(command.header.stamp) for command in sent} - {0}
    assert min(stamps) == repeats[0].stamp_ns


def test_diagnostics_of_an_idle_node(scene: Any) -> None:
    scene.new_episode()
    scene.health.clear()
    scene.stage.wait(lambda: bool(scene.health), "report of the steps")

    def wait_for(message: str) -> DiagnosticStatus:
        scene.stage.wait(lambda: any(health.message == message for health in scene.health), message)
        return next(health for health in scene.health if health.message == message)

    assert scene.stage.change_state("deactivate")
    rates = {pair.key: pair.value for pair in wait_for("inactive").values}
    assert float(rates["rate_hz"]) == 0.0
    assert scene.stage.change_state("activate")
    assert wait_for("no observation").level == DiagnosticStatus.ERROR
    scene.new_episode()


def test_a_slow_verifier_is_asked_less_and_less_often(scene: Any) -> None:
    episode, robot = scene.new_episode(), scene.robot
    assert not scene.set(deadline_s=0.05)
    ready = scene.process.output.count("verifier ready")
    bursts: list[list[int]] = [[]]
    step = 0
    while len(bursts) < 4:
        step += 1
        stamp = robot.show(episode, step)
        record = robot.answer_to(episode, step)
        assert not record.verified
        if record.transmitted:
            assert record.reason is Reason.DEADLINE
            scene.verifier.answer(scene.verifier.wait_for_question(episode, step))
            bursts[-1].append(stamp)
        else:
            assert record.reason is Reason.BREAKER_OPEN
            assert "too slow" in record.message
            if bursts[-1]:
                bursts.append([])
    assert [len(burst) for burst in bursts] == [MISSES_UNTIL_OPEN, 1, 1, 0]
    pauses_ns = [after[0] - before[-1] for before, after in pairwise(bursts[:3])]
    assert pauses_ns[0] > FIRST_PAUSE_S * 1e9
    assert pauses_ns[1] > 2 * FIRST_PAUSE_S * 1e9
    assert scene.process.output.count("verifier ready") == ready
    assert scene.process.output.count("too slow, or gone") == 1
    assert not scene.set(deadline_s=30.0)
    asked: list[VerifyDraft.Request] = []
    while not asked:
        step += 1
        robot.show(episode, step)
        scene.stage.wait(
            lambda step=step: scene.verifier.questions(episode, step) or robot.steps[-1].step == step,
            "question or status",
        )
        asked = scene.verifier.questions(episode, step)
    scene.verifier.answer(asked[0])
    assert robot.answer_to(episode, step).verified
    scene.stage.wait(lambda: scene.process.output.count("verifier ready") == ready + 1, "ready again")


def test_questions_that_newer_observations_overtake_open_the_breaker(scene: Any) -> None:
    """So a verifier that is gone is noticed even where the deadline is longer than the control period."""
    episode, robot = scene.new_episode(), scene.robot
    robot.show(episode, 1)
    for step in range(1, MISSES_UNTIL_OPEN + 1):
        request = scene.verifier.wait_for_question(episode, step)
        robot.show(episode, step + 1)
        assert robot.answer_to(episode, step).reason is Reason.SUPERSEDED
        scene.verifier.answer(request)
    assert robot.answer_to(episode, MISSES_UNTIL_OPEN + 1).reason is Reason.BREAKER_OPEN
    step = MISSES_UNTIL_OPEN + 1
    while not scene.verifier.questions(episode, step):
        step += 1
        robot.show(episode, step)
        scene.stage.wait(
            lambda step=step: scene.verifier.questions(episode, step) or robot.steps[-1].step == step,
            "question or status",
        )
    scene.verifier.answer(scene.verifier.questions(episode, step)[0])
    assert robot.answer_to(episode, step).verified


def test_a_verifier_of_another_tokenizer_is_refused_before_the_first_step(scene: Any) -> None:
    right = scene.verifier.description
    assert scene.stage.change_state("deactivate")
    scene.verifier.description = DescribeTarget.Response(
        **{
            name: getattr(right, name)
            for name in right.get_fields_and_field_types()
            if name != "tokenizer_fingerprint"
        },
        tokenizer_fingerprint="feedfacefeedface",
    )
    assert scene.stage.change_state("activate")
    scene.stage.wait(lambda: "feedfacefeedface" in scene.process.output, "the reason in the log")
    assert f"tokenizer_fingerprint: the draft's is {right.tokenizer_fingerprint}" in scene.process.output
    assert scene.state() == "inactive"
    scene.health.clear()
    scene.stage.wait(lambda: any(h.level == DiagnosticStatus.ERROR for h in scene.health), "ERROR")
    assert "feedfacefeedface" in scene.health[-1].message
    scene.verifier.description = right
    assert scene.stage.change_state("activate")
    scene.new_episode()


def test_a_verifier_that_is_replaced_by_another_kind_is_not_asked(scene: Any) -> None:
    """It is found out by its refusal; the drafts go on, and so does verification with the right one."""
    episode, robot, right = scene.new_episode(), scene.robot, scene.verifier.description
    scene.verifier.description = DescribeTarget.Response(tokenizer_fingerprint="feedfacefeedface")
    robot.show(episode, 1)
    request = scene.verifier.wait_for_question(episode, 1)
    scene.verifier.answer(request, status=1, message="tokenizer_fingerprint: another")
    assert robot.answer_to(episode, 1).reason is Reason.REFUSED
    scene.stage.wait(lambda: "drafts are executed: tokenizer_fingerprint" in scene.process.output, "error")
    robot.show(episode, 2)
    record = robot.answer_to(episode, 2)
    assert (record.reason, record.transmitted) == (Reason.REFUSED, False)
    assert "feedfacefeedface" in record.message
    assert record.action == record.draft_action
    assert scene.state() == "active"
    ready = scene.process.output.count("verifier ready")
    scene.verifier.description = right
    scene.stage.wait(lambda: scene.process.output.count("verifier ready") > ready, "ready again")
    robot.show(episode, 3)
    request = scene.verifier.wait_for_question(episode, 3)
    scene.verifier.answer(request)
    assert robot.answer_to(episode, 3).verified


def test_a_verifier_of_another_kind_that_has_gone_is_none(scene: Any) -> None:
    episode, robot, complaint = scene.new_episode(), scene.robot, "drafts are executed: tokenizer_fingerprint"
    complaints = scene.process.output.count(complaint)
    scene.verifier.description = DescribeTarget.Response(tokenizer_fingerprint="feedfacefeedface")
    robot.show(episode, 1)
    request = scene.verifier.wait_for_question(episode, 1)
    scene.verifier.answer(request, status=1, message="tokenizer_fingerprint: another")
    scene.stage.wait(lambda: scene.process.output.count(complaint) > complaints, "error")
    scene.health.clear()
    scene.stage.wait(lambda: len(scene.health) >= 3, "seconds in which it is asked again")
    scene.verifier.close()
    scene.stage.wait(lambda: "verifier lost" in scene.process.output, "loss")
    robot.show(episode, 2)
    assert robot.answer_to(episode, 2).reason is Reason.NO_VERIFIER
    assert scene.process.output.count(complaint) == complaints + 1
