"""A joint that turns without end is measured in the turn in which it is commanded."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from adahi_ros.safety.envelope import TURN, Unwrapped, nearest_turn
from adahi_ros.safety.limits_file import load_limits

URDF = """<robot name="r">
  <joint name="wrist" type="continuous"><limit velocity="2" effort="5"/></joint>
  <joint name="base" type="continuous"/>
  <joint name="elbow" type="revolute"><limit lower="-2" upper="2" velocity="2" effort="5"/></joint>
</robot>"""


def test_an_angle_is_the_same_and_within_half_a_turn_of_its_reference() -> None:
    random = np.random.default_rng(3)
    measured, reference = random.uniform(-math.pi, math.pi, 1000), random.uniform(-100.0, 100.0, 1000)
    found = nearest_turn(measured, reference)
    assert (np.abs(found - reference) <= math.pi + 1e-9).all()
    np.testing.assert_allclose(np.cos(found - measured), 1.0, atol=1e-9)


@pytest.mark.parametrize(("measured", "reference"), [(math.nan, 0.0), (1.0, math.nan), (math.inf, 0.0)])
def test_what_is_not_finite_changes_nothing(measured: float, reference: float) -> None:
    found = nearest_turn(np.array([measured]), np.array([reference]))
    np.testing.assert_array_equal(found, [measured])


def test_a_joint_that_turns_on_and_on_makes_no_step_of_a_turn() -> None:
    unwrapped = Unwrapped(np.array([True, False]))
    commanded: np.ndarray | None = None
    for true in np.arange(0.0, 20.0, 0.05):
        reported = (true + math.pi) % TURN - math.pi
        found = unwrapped(np.array([reported, reported]), commanded)
        np.testing.assert_allclose(found, [true, reported], atol=1e-9)
        commanded = np.array([true + 0.05, 0.0])


def test_a_urdf_names_the_joints_that_are_continuous(tmp_path: Path) -> None:
    file = tmp_path / "r.urdf"
    file.write_text(URDF)
    assert load_limits(file, ("wrist", "elbow", "base")).continuous.tolist() == [True, False, True]


def test_an_endless_slide_is_not_a_continuous_joint(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text("limits:\n  rail: {position: [-.inf, .inf], velocity: 1.0}\n")
    assert load_limits(file, ("rail",)).continuous.tolist() == [False]
