from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from adahi_ros.safety.entry_limits import LARGEST
from adahi_ros.safety.limits import MARGIN, Limits
from adahi_ros.safety.limits_file import joints_of, load_limits

ELBOW = {"position": [-1.0, 2.0], "velocity": 3, "acceleration": 4.0, "max_step": 0.5, "effort": 6.0}
NUMBER = "must be a number from "


def written(folder: Path, values: Any, name: str = "limits.yaml") -> Path:
    path = folder / name
    path.write_text(values if isinstance(values, str) else yaml.safe_dump(values))
    return path


def row(limits: Limits, index: int = 0) -> list[float]:
    columns = (limits.position_low, limits.position_high, limits.velocity, limits.acceleration)
    return [float(column[index]) for column in (*columns, limits.max_step, limits.effort)]


UNLIMITED = [-math.inf, *[math.inf] * 5]


def test_what_is_written_is_read_in_the_order_of_the_names(tmp_path: Path) -> None:
    path = written(tmp_path, {"limits": {"elbow": ELBOW, "wrist": {"velocity": 7.0}, "thumb": {}}})
    limits = load_limits(path, ["wrist", "elbow"])
    assert limits.names == ("wrist", "elbow")
    assert row(limits, 1) == [-1.0, 2.0, 3.0, 4.0, 0.5, 6.0]
    assert row(limits, 0) == [-math.inf, math.inf, 7.0, math.inf, math.inf, math.inf]
    assert all(column.dtype == np.float64 for column in (limits.position_low, limits.velocity))


def test_names_that_a_file_has_not_are_an_error_unless_it_has_a_default(tmp_path: Path) -> None:
    path = written(tmp_path, {"limits": {"elbow": ELBOW}})
    with pytest.raises(ValueError, match=re.escape(f"{path}: no limits of wrist, thumb, only of elbow")):
        load_limits(path, ["wrist", "elbow", "thumb"])
    path = written(tmp_path, {"limits": {"elbow": ELBOW, "default": {"velocity": 7.0}}})
    limits = load_limits(path, ["wrist", "elbow"])
    assert limits.velocity.tolist() == [7.0, 3.0]
    assert math.isinf(limits.effort[0])


ENDS = {"position": [-1.0, 2.0]}


@pytest.mark.parametrize(
    ("commanded", "entry", "fault"),
    [
        ("positions", {}, "wrist.position: missing, must be there for commanded positions"),
        ("positions", {"velocity": 1.0}, "wrist.position: missing"),
        ("positions", {**ENDS, "effort": 1.0, "max_step": 1.0}, "wrist.velocity: missing"),
        ("positions", {"position": [0.0, math.inf], "velocity": math.inf}, "wrist: nothing limits commanded"),
        ("velocities", {**ENDS, "acceleration": 1.0}, "wrist.velocity: missing"),
        (
            "velocities",
            {"velocity": math.inf},
            "nothing limits commanded velocities, velocity must be finite",
        ),
        ("accelerations", {**ENDS, "velocity": 1.0}, "wrist.acceleration: missing"),
        ("effort", {**ENDS, "velocity": 1.0}, "wrist.effort: missing"),
    ],
)
def test_an_entry_that_must_be_limited_and_is_not_is_named(
    tmp_path: Path, commanded: str, entry: Any, fault: str
) -> None:
    elbow = {**ELBOW, "velocity": 1.0}
    for name in ("wrist", "default"):
        path = written(tmp_path, {"limits": {"elbow": elbow, name: entry}})
        load_limits(path, ["elbow", "wrist"])
        load_limits(path, ["elbow"], [commanded])
        with pytest.raises(ValueError, match=re.escape(f"{path}: ") + ".*" + re.escape(fault)):
            load_limits(path, ["elbow", "wrist"], [commanded, commanded])


@pytest.mark.parametrize(
    "entry",
    [
        {**ENDS, "velocity": 1.0},
        {**ENDS, "velocity": math.inf},
        {"position": [-math.inf, math.inf], "velocity": 1.0},
    ],
)
def test_what_is_declared_unlimited_is_not_missing(tmp_path: Path, entry: Any) -> None:
    load_limits(written(tmp_path, {"limits": {"elbow": entry}}), ["elbow"], ["positions"])


def test_far_outside_is_beyond_a_margin_or_beyond_any_position() -> None:
    ends = {"position_low": 0.0, "position_high": 1.0}
    limits = Limits.from_fields(["elbow", "wrist"], {"elbow": ends, "wrist": ends})
    low, high = limits.far
    assert [low.tolist(), high.tolist()] == [[-MARGIN] * 2, [1.0 + MARGIN] * 2]
    unlimited = Limits.from_fields(["elbow"], {}).far
    assert [each.tolist() for each in unlimited] == [[-LARGEST], [LARGEST]]


def test_which_limits_need_the_measured_position(tmp_path: Path) -> None:
    entries = {"elbow": ELBOW, "wrist": {**ENDS, "velocity": 1.0}, "wheel": {"velocity": 1.0}}
    limits = load_limits(written(tmp_path, {"limits": entries}), ["elbow", "wrist", "wheel"])
    assert limits.needing_position(["positions"] * 3) == {"elbow": "max_step"}
    assert limits.needing_position(["velocities"] * 3) == {"elbow": "position", "wrist": "position"}
    assert limits.needing_position(["effort"] * 3) == {}


def test_infinite_is_unlimited(tmp_path: Path) -> None:
    path = written(tmp_path, "limits: {elbow: {position: [-.inf, .inf], velocity: .inf, effort: .inf}}")
    assert row(load_limits(path, ["elbow"])) == UNLIMITED
    assert row(Limits.from_fields(["elbow"], {})) == UNLIMITED


@pytest.mark.parametrize(
    ("entry", "following"),
    [
        ({"max_step": 0.5}, 0.4),
        ({"max_step": 0.5, "following": 0.3}, 0.3),
        ({"max_step": 0.5, "following": math.inf}, math.inf),
        ({"max_step": math.inf}, math.inf),
        ({"max_step": 1e9}, 8e8),
        ({"following": 0.3}, 0.3),
        ({}, math.inf),
    ],
)
def test_the_following_error_is_a_share_of_the_step_by_default(
    tmp_path: Path, entry: dict[str, float], following: float
) -> None:
    limits = load_limits(written(tmp_path, {"limits": {"elbow": entry}}), ["elbow"])
    assert limits.following.tolist() == [following]
    assert limits.following.dtype == np.float64


HIDDEN = [
    ({"max_step": 0.2, "following": 0.25}, "following: 0.25, must be below max_step, 0.2"),
    ({"max_step": 0.2, "following": 0.2}, "following: 0.2, must be below max_step, 0.2"),
    ({"position": [-1.0, 2.0], "max_step": 3.0}, "max_step: 3, must be below the range of position, 3"),
    ({"position": [-1.0, 2.0], "following": 57.3}, "following: 57.3, must be below the range of position, 3"),
]


@pytest.mark.parametrize(("entry", "fault"), HIDDEN)
@pytest.mark.parametrize("name", ["elbow", "default"])
def test_a_limit_that_another_one_hides_is_refused_with_both_values(
    tmp_path: Path, name: str, entry: dict[str, Any], fault: str
) -> None:
    path = written(tmp_path, {"limits": {name: entry}})
    with pytest.raises(
        ValueError, match=re.escape(f"{path}: limits.{name}.{fault}") + ".*or be .inf for none"
    ):
        load_limits(path, ["elbow"])


@pytest.mark.parametrize(
    "entry",
    [
        {"max_step": 0.2, "following": 0.19},
        {"max_step": 0.2, "following": math.inf},
        {"position": [-1.0, 2.0], "max_step": 2.9, "following": 2.8},
        {"position": [-1.0, 2.0], "max_step": math.inf, "following": 0.2},
        {"position": [0.5, 0.5], "max_step": 0.1},  # of a joint that is locked
        {"position": [-math.inf, math.inf], "max_step": 1e9},
        {"position": [0.0, 0.04], "velocity": 100.0, "acceleration": 1e6},  # hidden, and no less safe
        {"velocity": 3.0, "acceleration": 0.1, "max_step": 0.01},
    ],
)
def test_limits_that_act_beside_each_other_are_read(tmp_path: Path, entry: dict[str, Any]) -> None:
    load_limits(written(tmp_path, {"limits": {"elbow": entry}}), ["elbow"])


@pytest.mark.parametrize("field", ["velocity", "acceleration", "max_step", "effort", "following"])
@pytest.mark.parametrize(
    "value", [math.nan, -1.0, -math.inf, True, "fast", None, [1.0], 1e10, 10**400, {"a": 1}]
)
def test_a_bad_limit_is_named_with_file_field_and_what_is_allowed(
    tmp_path: Path, field: str, value: Any
) -> None:
    path = written(tmp_path, {"limits": {"elbow": {**ELBOW, field: value}}})
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: limits.elbow.{field}: ')}.*{NUMBER}"):
        load_limits(path, ["elbow"])


def test_only_an_effort_may_be_nought(tmp_path: Path) -> None:
    path = written(tmp_path, {"limits": {"elbow": {"effort": 0}}})
    assert load_limits(path, ["elbow"]).effort.tolist() == [0.0]
    for field in ("velocity", "acceleration", "max_step", "following"):
        path = written(tmp_path, {"limits": {"elbow": {field: 0.0}}})
        with pytest.raises(ValueError, match=re.escape(f"limits.elbow.{field}: 0.0, {NUMBER}1e-09")):
            load_limits(path, ["elbow"])


@pytest.mark.parametrize(
    ("position", "fault"),
    [
        ([1.0, -1.0], "position: [1, -1], the low limit must not be above"),
        ([math.inf, math.inf], "position: [inf, inf], the low limit must not be above"),
        ([math.nan, 1.0], "position[0]: nan, " + NUMBER),
        ([0.0, "far"], "position[1]: 'far', " + NUMBER),
        ([False, 1.0], "position[0]: False, " + NUMBER),
        ([0.0, 1e300], "position[1]: 1e+300, " + NUMBER),
        ([0.0], "position: [0.0], must be of 2 entries at least"),
        (1.0, "position: 1.0, must be a list"),
    ],
)
def test_positions_are_two_numbers_in_order(tmp_path: Path, position: Any, fault: str) -> None:
    path = written(tmp_path, {"limits": {"elbow": {"position": position}}})
    with pytest.raises(ValueError, match=re.escape(f"{path}: limits.elbow.{fault}")):
        load_limits(path, ["elbow"])


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("limits: {elbow: {speed: 1.0}}", "limits.elbow.speed: unknown, must be one of position, velocity"),
        ("limits: {elbow: 1.0}", "limits.elbow: 1.0, must be a mapping"),
        ("limits: []", "limits: [], must be a mapping"),
        ("limits: {}", "limits: {}, must be of 1 entries at least"),
        ("limit: {elbow: {}}", "limit: unknown, must be one of limits, workspace"),
        ("joint_limits: {elbow: {}}\nlimits: {}", "limits: unknown"),
        ("nonsense", "file: 'nonsense', must be a mapping"),
        ("", "file: None, must be a mapping"),
        ("limits: [", "not YAML: "),
        ("\0", "not YAML: "),
        ("limits: !!python/object:os.system {}", "not YAML: "),
    ],
)
def test_what_is_no_file_of_limits_is_reported(tmp_path: Path, content: str, fault: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {fault}')}"):
        load_limits(path, ["elbow"])


def test_a_message_stays_short_whatever_the_file_says(tmp_path: Path) -> None:
    levels = [f"&l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 12)]
    for value in ("x" * 100_000, f"[&l0 [1, 2], {', '.join(levels)}]"):
        with pytest.raises(ValueError, match=f"{NUMBER}|entries with aliases written out") as caught:
            load_limits(written(tmp_path, f"limits:\n  elbow:\n    velocity: {value}"), ["elbow"])
        assert len(str(caught.value)) < 1000


def test_a_file_of_another_kind_or_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=re.escape("suffix: '.xacro', must be one of .yaml, .yml, .urdf, .xml")
    ):
        load_limits(written(tmp_path, "", "arm.xacro"), ["elbow"])
    with pytest.raises(FileNotFoundError):
        load_limits(tmp_path / "none.yaml", ["elbow"])


def test_limits_made_of_arrays_are_checked_too() -> None:
    named = ("velocity", "acceleration", "max_step", "effort", "following")
    given: dict[str, Any] = {field: [1.0] for field in named}
    given |= {"position_low": [0.0], "position_high": [1.0]}
    assert row(Limits(("elbow",), **given)) == [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match=r"elbow\.velocity: nan, must be"):
        Limits(("elbow",), **{**given, "velocity": [math.nan]})
    with pytest.raises(ValueError, match=r"elbow\.position: \[2, 1\]"):
        Limits(("elbow",), **{**given, "position_low": [2.0]})
    with pytest.raises(ValueError, match=re.escape("effort: shape (2,), expected (1,)")):
        Limits(("elbow",), **{**given, "effort": [1.0, 2.0]})
    with pytest.raises(ValueError, match="read-only"):
        Limits(("elbow",), **given).velocity[0] = 9.0


MOVEIT = {
    "has_position_limits": True,
    "min_position": -1.0,
    "max_position": 2.0,
    "has_velocity_limits": True,
    "max_velocity": 3,
    "has_acceleration_limits": True,
    "max_acceleration": 4.0,
    "has_jerk_limits": False,
}


def moveit(folder: Path, entry: Any) -> Path:
    return written(folder, {"default_velocity_scaling_factor": 0.1, "joint_limits": {"elbow": entry}})


def test_moveits_limits_are_read(tmp_path: Path) -> None:
    limits = load_limits(moveit(tmp_path, MOVEIT), ["elbow"])
    assert row(limits) == [-1.0, 2.0, 3.0, 4.0, math.inf, math.inf]


def test_moveits_limits_hold_unless_they_are_switched_off(tmp_path: Path) -> None:
    off = {**MOVEIT, "has_velocity_limits": False, "has_acceleration_limits": False, "max_acceleration": 0}
    assert row(load_limits(moveit(tmp_path, {**off, "has_position_limits": False}), ["elbow"])) == UNLIMITED
    load_limits(moveit(tmp_path, {**MOVEIT, "has_position_limits": False}), ["elbow"], ["positions"])
    without_values = {"max_velocity": 3.0}
    with pytest.raises(ValueError, match=r"elbow\.position: missing"):
        load_limits(moveit(tmp_path, without_values), ["elbow"], ["positions"])
    assert load_limits(moveit(tmp_path, without_values), ["elbow"]).velocity.tolist() == [3.0]
    slower = {**MOVEIT, "has_deceleration_limits": True, "max_deceleration": 2.5}
    assert load_limits(moveit(tmp_path, slower), ["elbow"]).acceleration.tolist() == [2.5]
    faster = {**slower, "max_deceleration": 5.0}
    assert load_limits(moveit(tmp_path, faster), ["elbow"]).acceleration.tolist() == [4.0]
    with pytest.raises(ValueError, match=r"elbow\.max_position: None, "):
        load_limits(moveit(tmp_path, {"min_position": -1.0}), ["elbow"])


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"max_velocity": -1.0}, "joint_limits.elbow.max_velocity: -1.0, "),
        ({"max_velocity": None}, "joint_limits.elbow.max_velocity: None, "),
        ({"has_velocity_limits": "yes"}, "joint_limits.elbow.has_velocity_limits: 'yes', must be true or"),
        ({"min_position": math.nan}, "joint_limits.elbow.min_position: nan, "),
        ({"min_position": 5.0}, "joint_limits.elbow.position: [5, 2], "),
        ({"max_speed": 5.0}, "joint_limits.elbow.max_speed: unknown, must be one of "),
    ],
)
def test_a_fault_in_moveits_file_is_named(tmp_path: Path, change: dict[str, Any], fault: str) -> None:
    path = moveit(tmp_path, {**MOVEIT, **change})
    with pytest.raises(ValueError, match=re.escape(f"{path}: {fault}")):
        load_limits(path, ["elbow"])


def robot(*joints: str, before: str = "") -> str:
    return f'{before}<robot name="arm"><link name="base"/>{"".join(joints)}</robot>'


def joint(inside: str, kind: str = "revolute", name: str = "elbow") -> str:
    return f'<joint name="{name}" type="{kind}">{inside}</joint>'


LIMIT = '<limit lower="-1" upper="2.0" velocity="3" effort="87"/>'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("robot.urdf", "<robot name='r'><joint name='default' type='continuous'/></robot>"),
        ("joint_limits.yaml", "joint_limits: {default: {max_velocity: 9.0}}"),
    ],
)
def test_a_joint_named_default_limits_no_other_joint(tmp_path: Path, name: str, text: str) -> None:
    path = written(tmp_path, text, name)
    with pytest.raises(ValueError, match="joint default: must have another name"):
        load_limits(path, ["elbow"])


def test_a_urdf_is_read(tmp_path: Path) -> None:
    soft = '<safety_controller soft_lower_limit="-0.5" soft_upper_limit="2.5" k_velocity="1"/>'
    upper = '<safety_controller soft_lower_limit="-1.5" soft_upper_limit="1.5" k_velocity="1"/>'
    text = robot(
        joint(LIMIT),
        joint(LIMIT + soft, "prismatic", "rail"),
        joint("", "continuous", "wheel"),
        joint('<limit velocity="9" effort="1"/>', "continuous", "tool"),
        joint("", "fixed", "mount"),
        joint(LIMIT + upper, name="lift"),
        '<ros2_control><joint name="elbow"/></ros2_control>',
        before='<?xml version="1.0" encoding="utf-8"?>\n',
    )
    limits = load_limits(written(tmp_path, text, "arm.urdf"), ["tool", "elbow", "rail", "wheel", "lift"])
    assert row(limits, 0) == [-math.inf, math.inf, 9.0, math.inf, math.inf, 1.0]
    assert row(limits, 1) == [-1.0, 2.0, 3.0, math.inf, math.inf, 87.0]
    assert row(limits, 2) == [-0.5, 2.0, 3.0, math.inf, math.inf, 87.0]
    assert row(limits, 3) == UNLIMITED
    assert row(limits, 4) == [-1.0, 1.5, 3.0, math.inf, math.inf, 87.0]
    load_limits(
        tmp_path / "arm.urdf", ["tool", "elbow"], ["positions", "positions"]
    )  # a tool that turns on and on
    with pytest.raises(ValueError, match=r"wheel\.velocity: missing"):
        load_limits(tmp_path / "arm.urdf", ["wheel"], ["positions"])
    with pytest.raises(ValueError, match="no limits of mount, only of elbow, rail, wheel, tool, lift"):
        load_limits(tmp_path / "arm.urdf", ["mount"])


@pytest.mark.parametrize(
    "hand",
    [
        joint(LIMIT.replace('"3"', '"0"'), name="hand"),
        joint(LIMIT.replace('"3"', '"-1"'), name="hand"),
        joint("", name="finger"),
        joint(LIMIT, name="twice") * 2,
    ],
)
def test_faults_of_other_joints_do_not_matter(tmp_path: Path, hand: str) -> None:
    path = written(tmp_path, robot(joint(LIMIT), hand), "arm.urdf")
    assert row(load_limits(path, ["elbow"]))[:3] == [-1.0, 2.0, 3.0]
    assert "elbow" in joints_of(path)
    other = {"joint_limits": {"elbow": MOVEIT, "hand": {"max_velocity": -1.0}}}
    assert row(load_limits(written(tmp_path, other), ["elbow"]))[:3] == [-1.0, 2.0, 3.0]


BOMB = '<!DOCTYPE robot [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (robot(joint(LIMIT), before=BOMB), "<!DOCTYPE: must not be in a URDF"),
        ("<robot>", "not XML: "),
        ("", "not XML: "),
        ("<sdf/>", "<sdf>: must be <robot>"),
        (robot(joint("")), "elbow.limit: missing"),
        (robot(joint('<limit upper="1"/>')), "elbow.lower: missing"),
        (robot(joint(LIMIT.replace("-1", "${lower}"))), "elbow.lower: '${lower}', must be a number"),
        (robot(joint(LIMIT.replace("-1", "nan"))), "elbow.lower: 'nan', must be a number"),
        (robot(joint(LIMIT.replace("-1", "3"))), "elbow.limit: [3, 2], the low limit"),
        (robot(joint(LIMIT.replace('"3"', '"0"'))), "elbow.velocity: 0.0, must be a number from 1e-09"),
        (robot(joint(LIMIT), joint(LIMIT)), "elbow: there twice"),
        (
            robot(joint(LIMIT + '<safety_controller soft_lower_limit="nan"/>')),
            "elbow.soft_lower_limit: 'nan', must be a number",
        ),
    ],
)
def test_a_fault_in_a_urdf_is_named(tmp_path: Path, text: str, fault: str) -> None:
    path = written(tmp_path, text, "arm.urdf")
    with pytest.raises(ValueError, match=re.escape(f"{path}: {fault}")):
        load_limits(path, ["elbow"])


def test_a_bomb_does_not_hide_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_bytes(robot(joint(LIMIT), before=BOMB).encode("utf-16"))
    with pytest.raises(ValueError, match="not UTF-8"):
        load_limits(path, ["elbow"])


@pytest.mark.parametrize("suffix", ["urdf", "yaml"])
def test_a_file_of_gigabytes_is_refused_unread(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"large.{suffix}"
    with path.open("wb") as file:
        file.truncate(2**33)  # of holes: it takes no room
    with pytest.raises(ValueError, match=re.escape(f"{path}: {2**33} bytes, must be at most ")):
        load_limits(path, ["joint"])
