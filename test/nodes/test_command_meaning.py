"""What commands mean, and whether what limits them can hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from adahi_ros.contract.parsing import parse_contract
from adahi_ros.nodes.common.parameters import ParameterError, filled
from adahi_ros.nodes.robot.command_meaning import commanded, limits_of
from adahi_ros.nodes.robot.draft_policy_parameters import DraftPolicyParameters
from adahi_ros.safety.limits import Limits

JOINTS = {"topic": "joint_states", "type": "sensor_msgs/msg/JointState"}
ENDS = "position: [-1, 1], velocity: 1"


def limits(tmp_path: Path, field: str, text: str, required: bool = True) -> Limits:
    """Return the limits of an elbow that is observed, and of a gripper that is not."""
    names = ("elbow", "gripper")
    channel = {"topic": "command", "type": "trajectory_msgs/msg/JointTrajectory"}
    contract = parse_contract(
        {
            "robot_type": "arm",
            "fps": 20,
            "observations": {
                "observation.state": {"channel": JOINTS, "select": ["position.elbow"], "apply": ["rad2deg"]}
            },
            "actions": {"action": {"channel": channel, "select": [f"{field}.{name}" for name in names]}},
        }
    )
    path = tmp_path / "limits.yaml"
    path.write_text(f"limits: {text}")
    values = filled(DraftPolicyParameters, {"safety.limits": str(path), "safety.require_limits": required})
    return limits_of(values, commanded(contract, values), contract.measured(names))


@pytest.mark.parametrize(
    ("field", "text", "limit"),
    [
        ("positions", f"{{default: {{{ENDS}, max_step: 0.1}}}}", "max_step"),
        ("velocities", f"{{default: {{{ENDS}}}}}", "position"),
        ("velocities", "{default: {position: [-.inf, 1], velocity: 1}}", "position"),
    ],
)
def test_a_limit_that_cannot_hold_for_want_of_a_measured_position_is_named_with_its_joint(
    tmp_path: Path, field: str, text: str, limit: str
) -> None:
    words = (
        f"safety.limits: .*, {limit} of gripper needs its measured position: .* position.gripper of a sensor"
    )
    with pytest.raises(ParameterError, match=words):
        limits(tmp_path, field, text)
    assert limits(tmp_path, field, text, required=False).names == ("elbow", "gripper")


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("positions", f"{{elbow: {{{ENDS}, max_step: 0.1}}, gripper: {{{ENDS}}}}}"),
        ("velocities", f"{{elbow: {{{ENDS}}}, gripper: {{velocity: 1}}}}"),
    ],
)
def test_only_the_joint_that_is_not_observed_goes_without(tmp_path: Path, field: str, text: str) -> None:
    assert limits(tmp_path, field, text).velocity.tolist() == [1.0, 1.0]


def test_a_file_that_limits_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"safety.limits: .*elbow\.position: missing"):
        limits(tmp_path, "positions", "{default: {}}")
    assert limits(tmp_path, "positions", "{default: {}}", required=False).names == ("elbow", "gripper")
