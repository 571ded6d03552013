"""The draft policy node and observations that it must not act on, or not act on twice."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from adahi_msgs.msg import TaskState
from diagnostic_msgs.msg import DiagnosticStatus
from sensor_msgs.msg import JointState

from adahi_ros.nodes.common.messages import to_stamp
from adahi_ros.safety.envelope import HOLDS_AT_REST
from test.system.stage import Scene


def test_what_overflows_the_policy_moves_nothing(scene: Scene) -> None:
    """The robot is held where it is commanded; the next good observation gets its command."""
    episode, robot = scene.new_episode(), scene.robot
    stands = robot.commands[-1].points[-1].positions
    commands = len(robot.commands)
    scene.health.clear()
    stamp = robot.now()
    huge = robot.state(episode, 1, stamp)
    huge.state = [1e38] * 4
    robot.joints_out.publish(robot.joints(stamp))
    robot.state_out.publish(huge)
    scene.stage.wait(lambda: any(h.level == DiagnosticStatus.ERROR for h in scene.health), "ERROR")
    report = next(health for health in scene.health if health.level == DiagnosticStatus.ERROR)
    assert report.message == "no sound action for an observation, no command"
    assert {pair.key: pair.value for pair in report.values}["undrafted"] == "1"
    assert "no command: " in scene.process.output
    robot.show(episode, 1)
    request = scene.verifier.wait_for_request(episode, 1)
    assert max(request.observation_window) < 1.0
    scene.verifier.reply(request)
    assert robot.answer_to(episode, 1).verified
    robot.command_to(robot.answer_to(episode, 1).stamp_ns)
    assert [command.points[-1].positions for command in robot.commands[commands:-1]] == [
        stands
    ] * HOLDS_AT_REST
    assert np.isfinite([command.points[-1].positions for command in robot.commands]).all()


@pytest.mark.parametrize(
    ("topic", "change"),
    [
        ("joint_states", {"position": [math.nan, 0.0]}),
        ("joint_states", {"position": [0.0]}),
        ("joint_states", {"position": []}),
        ("joint_states", {"position": [1e300, 0.0]}),
        ("joint_states", {"name": ["elbow_joint", "plate_roll_joint"]}),
        ("joint_states", {"name": []}),
        ("joint_states", {"age_s": 5.0}),
        ("joint_states", {"age_s": -5.0}),
        ("joint_states", {"age_s": 0.01}),  # fresh, but of another time than the task state
        ("task_state", {"state": [0.0, math.inf, 0.0, 0.0]}),
        ("task_state", {"state": []}),
        ("task_state", {"goal": [0.0]}),
        ("task_state", {"goal": [math.nan, 0.0]}),
        ("task_state", {"age_s": 5.0}),
    ],
)
def test_garbage_moves_nothing(scene: Scene, topic: str, change: dict[str, Any]) -> None:
    episode, robot = scene.new_episode(), scene.robot
    assert not scene.set(gate__name="never")
    commands = len(robot.commands)
    stamp = robot.now()
    messages: dict[str, JointState | TaskState] = {
        "joint_states": robot.joints(stamp),
        "task_state": robot.state(episode, 1, stamp),
    }
    for name, value in change.items():
        if name == "age_s":
            messages[topic].header.stamp = to_stamp(stamp - round(value * 1e9))
        else:
            setattr(messages[topic], name, value)
    robot.joints_out.publish(messages["joint_states"])
    robot.state_out.publish(messages["task_state"])
    robot.command_to(robot.show(episode, 2))
    assert robot.answer_to(episode, 2)
    assert len(robot.commands) == commands + 1
    assert not any((record.episode, record.step) == (episode, 1) for record in robot.steps)


def test_what_is_ignored_is_reported_and_counted(scene: Scene) -> None:
    scene.new_episode()
    garbage = scene.robot.joints(scene.robot.now())
    garbage.position = [0.0, math.nan]
    scene.health.clear()
    scene.robot.joints_out.publish(garbage)
    first = scene.report("ignored.joint_states.position[1]")
    assert first.level in (DiagnosticStatus.WARN, DiagnosticStatus.ERROR)  # a second later: no observation
    assert first.message.endswith("input ignored")
    assert "ignored: " in scene.process.output


def test_a_step_whose_joints_never_came_is_reported_and_counted(scene: Scene) -> None:
    episode, robot = scene.new_episode(), scene.robot
    assert not scene.set(gate__name="never")
    scene.health.clear()
    robot.state_out.publish(robot.state(episode, 1, robot.now()))
    robot.command_to(robot.show(episode, 2))
    scene.report("missed.joint_states")
    assert "no step: joint_states: the sample nearest to a step is " in scene.process.output
