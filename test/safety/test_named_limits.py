"""Limits by the name that a parameter gives: whether they are there, and can hold."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from adahi_ros.contract.commanded import Commanded
from adahi_ros.contract.contract import MeasuredPositions
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.named_limits import NO_LIMITS, limits_of_task, limits_warning, named_limits

NAMES = ("elbow", "gripper")
MEASURED = MeasuredPositions(NAMES, (0, None))
ENDS = "position: [-1, 1], velocity: 1"


def limits(tmp_path: Path, field: str, text: str, required: bool = True) -> Limits:
    """Return the limits of an elbow that is observed, and of a gripper that is not."""
    path = tmp_path / "limits.yaml"
    path.write_text(f"limits: {text}")
    return named_limits(str(path), required, Commanded.alike(NAMES, field), MEASURED)


@pytest.mark.parametrize(
    ("field", "text", "limit"),
    [
        ("positions", f"{{default: {{{ENDS}, max_step: 0.1}}}}", "max_step"),
        (
            "positions",
            f"{{elbow: {{{ENDS}, max_step: .inf}}, gripper: {{{ENDS}, following: 0.1}}}}",
            "following",
        ),
        ("velocities", f"{{default: {{{ENDS}}}}}", "position"),
        ("velocities", "{default: {position: [-.inf, 1], velocity: 1}}", "position"),
    ],
)
def test_a_limit_that_needs_a_measured_position_is_named_with_its_joint(
    tmp_path: Path, field: str, text: str, limit: str
) -> None:
    words = (
        f"safety.limits: .*, {limit} of gripper needs its measured position: .* position.gripper of a sensor"
    )
    with pytest.raises(ValueError, match=words):
        limits(tmp_path, field, text)
    assert limits(tmp_path, field, text, required=False).names == NAMES


@pytest.mark.parametrize("text", [f"{{default: {{{ENDS}}}}}", f"{{elbow: {{{ENDS}}}, gripper: {{{ENDS}}}}}"])
def test_a_measured_joint_commanded_by_positions_needs_a_largest_step(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"elbow\.max_step: missing, must be there .* or \.inf for none"):
        limits(tmp_path, "positions", text)
    assert limits(tmp_path, "positions", text, required=False).names == NAMES
    unlimited = text.replace(ENDS, f"{ENDS}, max_step: .inf")
    assert limits(tmp_path, "positions", unlimited).max_step.tolist() == [math.inf, math.inf]


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
    with pytest.raises(ValueError, match=r"safety.limits: .*elbow\.position: missing"):
        limits(tmp_path, "positions", "{default: {}}")
    assert limits(tmp_path, "positions", "{default: {}}", required=False).names == NAMES


def test_where_limits_are_required_none_are_had_only_by_that_name() -> None:
    what = Commanded.alike(NAMES, "positions")
    with pytest.raises(ValueError, match=r"safety.limits: '', must name a file of limits, or be none"):
        named_limits("", True, what, MEASURED)
    for name, required in (("", False), (NO_LIMITS, True)):
        assert named_limits(name, required, what, MEASURED).needing_position(["positions"] * len(NAMES)) == {}


def test_limits_that_are_not_there_are_reported_by_their_name() -> None:
    with pytest.raises(ValueError, match=r"safety.limits: 'nobodys', cannot be used: "):
        named_limits("nobodys", False, Commanded.alike(NAMES, "positions"), MEASURED)


@pytest.mark.parametrize(
    ("name", "field", "places", "words"),
    [
        (NO_LIMITS, "positions", (0, None), "safety.limits: 'none', nothing limits where"),
        ("", "velocities", (0, 1), "safety.limits: '', nothing limits where"),
        ("arm", "positions", (0, None), "contract: does not observe where gripper stands; the first command"),
        ("arm", "velocities", (0, None), ""),
        ("arm", "positions", (0, 1), ""),
    ],
)
def test_a_robot_without_limits_or_that_may_leap_at_first_gets_a_warning(
    name: str, field: str, places: tuple[int | None, ...], words: str
) -> None:
    warning = limits_warning(name, Commanded.alike(NAMES, field), MeasuredPositions(NAMES, places))
    assert (warning or "").startswith(words)
    assert (warning is None) == (not words)


@pytest.mark.parametrize("variant", ["", "_camera", "_instructed", "_seen", "_10", "_50"])
def test_every_variant_of_a_task_has_the_limits_of_its_robot(variant: str) -> None:
    assert limits_of_task(f"kitchen{variant}") == "kitchen"
    assert limits_of_task(f"nobodys{variant}") == ""
