"""The box that the tool may not leave."""

from __future__ import annotations

import math
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from adahi_ros.contract.commanded import Commanded
from adahi_ros.safety.command_limits import Judge
from adahi_ros.safety.limits_file import load_limits
from adahi_ros.safety.named_limits import NO_LIMITS, named_command_limits

URDF = """<robot name="gantry"><link name="base"/><link name="arm"/><link name="tool"/>
<joint name="slide" type="prismatic"><parent link="base"/><child link="arm"/><axis xyz="1 0 0"/></joint>
<joint name="turn" type="revolute"><parent link="arm"/><child link="tool"/><axis xyz="0 0 1"/></joint>
</robot>"""
BOX: dict[str, Any] = {
    "urdf": "gantry.urdf",
    "base": "base",
    "tip": "tool",
    "low": [-0.5, -1, -1],
    "high": [0.5, 1, 1],
}
NAMES = ("turn", "gripper", "slide")


def workspace(folder: Path, box: Any = BOX, field: str = "positions") -> Judge:
    (folder / "gantry.urdf").write_text(URDF)
    limits = folder / "limits.yaml"
    limits.write_text(yaml.safe_dump({"limits": {"default": {"velocity": 1.0}}, "workspace": box}))
    assert load_limits(limits, NAMES).velocity.tolist() == [1.0] * 3
    return named_command_limits(str(limits), Commanded.alike(NAMES, field))["workspace"]


@pytest.mark.parametrize(
    ("before", "wanted", "admitted"),
    [
        (0.0, 0.4, True),
        (0.0, 0.5, True),
        (0.4, 0.51, False),
        (0.7, 0.6, True),
        (0.7, 0.7, False),
        (0.7, 0.8, False),
        (0.7, -0.6, True),
        (0.7, 0.0, True),
        (np.nan, 0.0, True),
        (np.nan, 0.6, False),
        (0.0, np.nan, False),
    ],
)
def test_the_tool_may_end_inside_or_come_nearer(
    tmp_path: Path, before: float, wanted: float, admitted: bool
) -> None:
    admits = workspace(tmp_path)
    assert admits(np.array([1.0, np.nan, before]), np.array([2.0, 9.0, wanted])) is admitted


def test_a_shipped_arm_is_judged_by_its_tool(tmp_path: Path) -> None:
    names = [f"panda_joint{number}" for number in range(1, 8)]
    file = tmp_path / "limits.yaml"
    tool = {"urdf": "panda", "base": "panda_link0", "tip": "panda_hand_tcp"}
    file.write_text(
        yaml.safe_dump({"workspace": {**tool, "low": [0.2, -0.5, 0.05], "high": [0.8, 0.5, 0.9]}})
    )
    admits = named_command_limits(str(file), Commanded.alike(names, "positions"))["workspace"]
    ready = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
    behind = ready + np.array([np.pi, 0, 0, 0, 0, 0, 0])
    assert admits(behind, ready)
    assert not admits(ready, behind)
    table = {"low": [-math.inf, -math.inf, 0.05], "high": [math.inf] * 3}
    file.write_text(yaml.safe_dump({"workspace": {**tool, **table}}))
    assert named_command_limits(str(file), Commanded.alike(names, "positions"))["workspace"](ready, behind)


@pytest.mark.parametrize(("side", "limits"), [(1.0, True), (2.0, False), (800.0, False)])  # or in mm
def test_a_box_that_the_tool_cannot_leave_is_refused_with_its_reach(
    tmp_path: Path, side: float, limits: bool
) -> None:
    what = Commanded.alike([f"panda_joint{number}" for number in range(1, 8)], "positions")
    file = tmp_path / "limits.yaml"
    tool = {"urdf": "panda", "base": "panda_link0", "tip": "panda_hand_tcp"}
    file.write_text(yaml.safe_dump({"workspace": {**tool, "low": [-side] * 3, "high": [side] * 3}}))
    fault = pytest.raises(ValueError, match=r"workspace: low, high: .*, must limit a tool that reaches 1\.")
    with nullcontext() if limits else fault:
        named_command_limits(str(file), what)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"high": [0.5, 1]}, "must be of 3 entries at least"),
        ({"low": [0, 0, "a"]}, "low[2]: 'a', must be a number"),
        ({"low": [0.5, -1, -1]}, "low: [0.5, -1.0, -1.0], must be below high"),
        ({"low": [-math.inf] * 3, "high": [math.inf] * 3}, "low, high: all infinite, must limit one side"),
        ({"tip": 1}, "tip: 1, must be a text"),
        ({"tip": "nose"}, "tip_link: 'nose', must be a link of the robot"),
        ({"size": 1}, "workspace: size: unknown, must be one of urdf"),
        ({"urdf": "none.urdf"}, "none.urdf"),
    ],
)
def test_a_fault_in_the_box_is_named(tmp_path: Path, change: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=f"^safety.limits: .*cannot be used: .*{re.escape(fault)}"):
        workspace(tmp_path, {**BOX, **change})
    with pytest.raises(ValueError, match="workspace: low: missing"):
        workspace(tmp_path, {key: value for key, value in BOX.items() if key != "low"})


def test_only_commanded_positions_have_a_box(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="joint slide moves it: its position must be commanded"):
        workspace(tmp_path, field="velocities")
    for name in ("", NO_LIMITS, "ur5e"):
        assert named_command_limits(name, Commanded.alike(NAMES, "positions")) == {}
