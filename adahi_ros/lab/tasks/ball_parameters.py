# SPDX-License-Identifier: Apache-2.0
"""The constants of ball balancing, for the world and for who draws it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BallParameters:
    """The world's constants, SI units.

    Attributes:
        half_side_m: half of the square plate's side; a ball whose centre passes it has left the plate.
        ball_radius_m: of the ball.
        post_radius_m: of the post in the plate's centre.
        restitution: share of the normal speed that a bounce off the post gives back.
        max_tilt_rad: largest commanded roll and pitch.
        tilt_lag_s: time constant with which the plate follows the command.
        max_tilt_rate_rad_s: the plate turns no faster.
        rolling_damping_per_s: rolling friction, proportional to speed.
        disturbance_m_s2: standard deviation of the random acceleration, new at every control step.
        goal_tolerance_m: within it the ball counts as on the goal.
        hold_steps: consecutive steps on the goal that make a success.
        control_rate_hz: control steps per second.
        max_steps: an episode's length at most.
    """

    half_side_m: float = 0.25
    ball_radius_m: float = 0.02
    post_radius_m: float = 0.03
    restitution: float = 0.3
    max_tilt_rad: float = 0.2
    tilt_lag_s: float = 0.12
    max_tilt_rate_rad_s: float = 2.0
    rolling_damping_per_s: float = 0.1
    disturbance_m_s2: float = 0.25
    goal_tolerance_m: float = 0.03
    hold_steps: int = 20
    control_rate_hz: float = 20.0
    max_steps: int = 112
