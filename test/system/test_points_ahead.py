"""Trajectories with the next points of the plan, on a node that runs: a stop replaces them at once."""

from __future__ import annotations

import re

import pytest
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from adahi_lab.evaluation.loaded_policies import PLANS, PolicyFiles
from adahi_ros.nodes.launching.child_processes import NodeProcess
from adahi_ros.policies.backends import load_policy
from test.ball_contract import ball_contract
from test.system.stage import Robot, Stage

POINTS = 4
NUMBERS = {
    "action": {
        "channel": {"topic": "command", "type": "std_msgs/msg/Float64MultiArray"},
        "select": ["data.0", "data.1"],
        "names": ["plate_roll_joint", "plate_pitch_joint"],
        "field": "positions",
    }
}
"""Actions for a forward_command_controller."""


def plan_robot(stage: Stage, files: PolicyFiles, **changes: object) -> NodeProcess:
    for name in ("draft", f"{PLANS}/target"):
        load_policy(files.folder / name, "onnxruntime")
    ahead = {
        "proposer__name": "plan",
        "wait_policy": "ahead",
        "command__points": POINTS,
        "command__lockstep": False,
    }
    return stage.start_draft(files.folder, **{**ahead, **changes})


def test_a_plan_is_sent_ahead_and_a_stop_replaces_it(stage: Stage, files: PolicyFiles) -> None:
    robot = Robot(stage)
    draft = plan_robot(stage, files)
    verifier = stage.start_verifier(files.folder / PLANS, rule__name="replace")
    stage.activate()
    robot.show_until_answered(1)

    def found() -> list[JointTrajectory]:
        return [command for command in robot.commands if len(command.points) == POINTS]

    for _ in range(200):
        robot.next()
        if found():
            break
    times = [point.time_from_start for point in found()[0].points]
    assert [each.sec + 1e-9 * each.nanosec for each in times] == pytest.approx([0.05, 0.1, 0.15, 0.2])
    stop = stage.client(SetBool, "draft_policy/set_enabled")
    assert stop(SetBool.Request(data=False)).success
    stage.wait(lambda: len(robot.commands[-1].points) == 1, "a command that replaces the points")
    stage.end(draft)
    assert len(robot.commands[-1].points) == 1
    stage.end(verifier)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"command__velocities": True}, "must be 1 with command.velocities or command.lockstep"),
        (
            {"command__points": 12, "safety__hold_after_s": 0.5},
            "must be at most 11, so that they end within safety.hold_after_s",
        ),
        ({"contract": ball_contract(actions=NUMBERS)}, "must be 1 unless every command is positions"),
    ],
)
def test_what_does_not_go_with_points_is_refused(
    stage: Stage, files: PolicyFiles, changes: dict[str, object], says: str
) -> None:
    draft = plan_robot(stage, files, **changes)
    assert not stage.change_state("configure")
    output = stage.end(draft)
    assert re.search(rf"command.points: \d+, {re.escape(says)}", output), output
