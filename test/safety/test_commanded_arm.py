"""An arm of LeRobot's is held where it is measured, and moves by commands alone."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.safety.commanded_arm import CommandedArm

HERE, THERE = np.array([10.0, -5.0]), np.array([12.0, 95.0])


@pytest.fixture
def arm() -> CommandedArm:
    return CommandedArm(silence_s=0.5, max_step=30.0)


def test_it_is_held_once_before_the_first_command(arm: CommandedArm) -> None:
    assert arm.hold() is None  # nothing was measured
    assert arm.measured(HERE, 1.0) is HERE
    assert all(arm.measured(HERE + sag, 1.0 + sag) is None for sag in np.linspace(0.02, 9.0))


def test_a_step_is_bounded_from_where_it_is_measured(arm: CommandedArm) -> None:
    arm.measured(HERE, 1.0)
    np.testing.assert_array_equal(arm.command(THERE, 1, 1.0), [12.0, 25.0])
    assert arm.measured(HERE + 20.0, 1.1) is None
    np.testing.assert_array_equal(arm.command(THERE, 1, 1.1), [12.0, 45.0])


def test_it_is_held_once_after_silence_and_at_the_end(arm: CommandedArm) -> None:
    arm.measured(HERE, 1.0)
    arm.command(THERE, 1, 1.0)
    assert arm.measured(THERE, 1.5) is None
    assert arm.measured(THERE, 1.6) is THERE
    assert arm.measured(HERE, 1.7) is arm.hold() is None
    arm.command(THERE, 1, 1.7)
    assert arm.measured(HERE, 1.8) is None
    assert arm.hold() is HERE
    assert arm.hold() is None


def test_refused_commands_are_silence(arm: CommandedArm) -> None:
    with pytest.raises(ValueError, match="was not measured"):
        arm.command(THERE, 1, 0.0)
    arm.measured(HERE, 1.0)
    arm.command(THERE, 1, 1.0)
    with pytest.raises(ValueError, match="2 programs command the arm, must be one"):
        arm.command(THERE, 2, 1.4)
    assert arm.measured(HERE, 1.6) is HERE
    with pytest.raises(ValueError, match="was not measured"):
        arm.command(THERE, 1, 2.2)


def test_a_measurement_that_is_no_number_is_refused(arm: CommandedArm) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        arm.measured(np.array([np.nan, 0.0]), 1.0)
    assert arm.hold() is None
