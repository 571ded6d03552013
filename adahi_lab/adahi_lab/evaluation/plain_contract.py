# SPDX-License-Identifier: Apache-2.0
"""Contracts without a file: joints and a task's state in, a trajectory point out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adahi_ros.contract.contract import JOINT_STATE

JOINTS = {"topic": "joint_states", "type": JOINT_STATE}
TASK_STATE = {"topic": "task_state", "type": "adahi_msgs/msg/TaskState"}
COMMAND = {"topic": "command", "type": "trajectory_msgs/msg/JointTrajectory"}
IMAGE = {"topic": "camera/image_raw", "type": "sensor_msgs/msg/Image"}


def plain_values(
    robot_type: str,
    rate_hz: float,
    joint_names: Sequence[str],
    state_dim: int,
    goal_dim: int,
    command_names: Sequence[str],
    command_field: str,
    max_skew_s: float = 0.0,
    max_age_s: float = 0.2,
) -> dict[str, Any]:
    """Return the content of the YAML file of a plain contract.

    Args:
        robot_type: names the kind of robot.
        rate_hz: control steps per second.
        joint_names: joints with the first entries of an observation as positions; may be empty.
        state_dim: entries of the task state that follow.
        goal_dim: entries of its goal.
        command_names: the joints that the action commands.
        command_field: their field of a trajectory point.
        max_skew_s: between the stamps of joint state and task state.
        max_age_s: of a message when it arrives.
    """
    align = {"strategy": "asof", "timeline": "header", "tolerance_ms": 1e3 * max_skew_s}

    def part(channel: dict[str, str], select: list[str]) -> dict[str, Any]:
        return {"channel": dict(channel), "select": select, "align": dict(align)}

    observations = {}
    if joint_names:
        observations["observation.joints"] = part(JOINTS, [f"position.{name}" for name in joint_names])
    if state_dim:
        observations["observation.task"] = part(TASK_STATE, [f"state.0:{state_dim}"])
    return {
        "robot_type": robot_type,
        "fps": float(rate_hz),
        "paced_by": TASK_STATE["topic"],
        "max_age_s": float(max_age_s),
        "observations": observations,
        **({"goal": part(TASK_STATE, [f"goal.0:{goal_dim}"])} if goal_dim else {}),
        "episode": part(TASK_STATE, ["episode_id", "step_id"]),
        "actions": {"action": part(COMMAND, [f"{command_field}.{name}" for name in command_names])},
    }


def with_camera(
    values: dict[str, Any], encoder: str, rows: int, columns: int, for_target: bool = False
) -> dict[str, Any]:
    """Return a plain contract with a camera instead of the task's state, or for the target alone."""
    observations = dict(values["observations"])
    if not for_target:
        del observations["observation.task"]
    observations["observation.images.camera"] = {
        "channel": dict(IMAGE),
        "apply": [{"resize": [rows, columns]}],
        "align": {"strategy": "asof", "timeline": "header", "tolerance_ms": 0.0},
    }
    encoding = {"encoder": encoder, **({"images_for_target": True} if for_target else {})}
    return {**values, **encoding, "observations": observations}
