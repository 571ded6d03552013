"""The draft policy node between a robot and a verifier that are both played by the test."""

from __future__ import annotations

import math
from copy import deepcopy

import pytest
from adahi_msgs.msg import DraftStatus, LinkState
from adahi_msgs.srv import DescribeTarget
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.qos import QoSProfile

from adahi_ros.nodes.common.messages import from_stamp
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import fingerprint_text
from test.system.stage import Scene


def of_another_tokenizer(right: DescribeTarget.Response) -> DescribeTarget.Response:
    other = deepcopy(right)
    other.tokenizer_fingerprint = 0xFEEDFACEFEEDFACE
    return other


def test_the_reply_is_executed(scene: Scene) -> None:
    episode, robot = scene.new_episode(), scene.robot
    stamp = robot.show(episode, 1)
    request = scene.verifier.wait_for_request(episode, 1)
    assert request.observation_window[-6:].tolist() == pytest.approx([0.01, -0.02, *[0.01] * 4])
    assert request.robot_id == "robot"
    scene.verifier.reply(request, compute_time_ms=0.25)
    record = robot.answer_to(episode, 1)
    assert record.action == (0.5, -0.25) == robot.command_to(stamp)
    assert record.action != record.draft_action
    assert record.stamp_ns == stamp
    assert (record.transmitted, record.verified, record.reason) == (True, True, Reason.NONE)
    assert record.accepted == (True, False)
    assert record.target_compute_ms == 0.25
    assert record.request_bytes > 0 < record.response_bytes


def test_the_state_of_the_link_is_published(scene: Scene) -> None:
    states: list[LinkState] = scene.stage.received(LinkState, "link_state")
    episode, robot = scene.new_episode(), scene.robot
    robot.show(episode, 1)
    scene.verifier.reply(scene.verifier.wait_for_request(episode, 1))
    assert robot.answer_to(episode, 1).verified
    scene.stage.wait(lambda: bool(states) and states[-1].replies > 0, "link state")
    state = states[-1]
    assert state.verifier == LinkState.VERIFIER_READY
    assert 0.0 < state.rtt_ms < 30_000.0
    assert state.goodput_bytes_s > 0.0
    assert state.replies <= state.requests


def test_who_subscribes_late_as_a_recorder_does_hears_nothing_of_before(scene: Scene) -> None:
    """`ros2 bag record` asks for what the publisher offers, and a bag notes when a message came."""
    episode, robot, node = scene.new_episode(), scene.robot, scene.stage.node
    assert not scene.set(gate__name="never")
    (publisher,) = node.get_publishers_info_by_topic("draft_status")
    offered = publisher.qos_profile
    as_offered = QoSProfile(depth=1000, reliability=offered.reliability, durability=offered.durability)
    received: list[DraftStatus] = []
    subscription = node.create_subscription(DraftStatus, "draft_status", received.append, as_offered)
    for step in range(1, 1000):
        robot.show(episode, step)
        robot.answer_to(episode, step)
        if received:
            break
    node.destroy_subscription(subscription)
    assert received
    assert {(each.episode_id, each.step_id > 0) for each in received} == {(episode, True)}


def test_live_parameters(scene: Scene) -> None:
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


def test_no_command_after_deactivation(scene: Scene) -> None:
    episode, robot = scene.new_episode(), scene.robot
    robot.show(episode, 1)
    request = scene.verifier.wait_for_request(episode, 1)
    commands, before = len(robot.commands), robot.commands[-1]
    assert scene.stage.change_state("deactivate")
    scene.verifier.reply(request)
    robot.show(episode, 2)
    assert scene.stage.change_state("activate")
    assert scene.new_episode() == episode + 1
    robot.command_to(robot.steps[-1].stamp_ns)
    assert all(record.step == 0 for record in robot.steps if record.episode == episode)
    repeats = [record for record in robot.steps if record.episode == episode + 1]
    sent = robot.commands[commands:]
    holds = [command for command in sent if from_stamp(command.header.stamp) == 0]
    assert all(hold.points == before.points for hold in holds)
    assert len(sent) - len(holds) >= len(repeats)
    stamps = {from_stamp(command.header.stamp) for command in sent} - {0}
    assert min(stamps) == repeats[0].stamp_ns


def test_a_verifier_of_another_tokenizer_is_refused_before_the_first_step(scene: Scene) -> None:
    right = scene.verifier.description
    assert scene.stage.change_state("deactivate")
    scene.verifier.description = of_another_tokenizer(right)
    assert scene.stage.change_state("activate")
    scene.stage.wait(lambda: "feedfacefeedface" in scene.process.output, "the reason in the log")
    ours = fingerprint_text(right.tokenizer_fingerprint)
    assert f"tokenizer_fingerprint: the draft's is {ours}, " in scene.process.output
    assert scene.stage.state() == "inactive"
    scene.health.clear()
    scene.stage.wait(lambda: any(h.level == DiagnosticStatus.ERROR for h in scene.health), "ERROR")
    assert "feedfacefeedface" in scene.health[-1].message
    scene.verifier.description = right
    assert scene.stage.change_state("activate")
    scene.new_episode()
