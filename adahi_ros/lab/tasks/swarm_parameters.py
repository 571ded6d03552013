# SPDX-License-Identifier: Apache-2.0
"""The constants of the swarm, for the world and for who draws it."""

from __future__ import annotations

from dataclasses import dataclass

FEWEST_DRONES, MOST_DRONES = 3, 6  # so that each has a sector in front of the centre, wide enough


@dataclass(frozen=True)
class SwarmParameters:
    """The world's constants, SI units.

    Attributes:
        drones: N, how many.
        half_side_m: half of the square arena's side; a drone whose centre passes it has left the arena.
        drone_radius_m: two drones collide when their centres are closer than twice this.
        max_speed_m_s: fastest command; a longer one keeps its direction.
        velocity_lag_s: time constant with which a drone follows the command.
        max_acceleration_m_s2: it follows no harder, per axis.
        wind_m_s2: standard deviation of the random acceleration, per drone and axis, new at every
            control step.
        target_tolerance_m: within it a drone counts as on its target.
        hold_steps: consecutive steps on the targets, all drones together, that make a success.
        control_rate_hz: control steps per second.
        max_steps: an episode's length at most.

    Raises:
        ValueError: `drones` out of range.
    """

    drones: int = 4
    half_side_m: float = 2.0
    drone_radius_m: float = 0.18
    max_speed_m_s: float = 1.2
    velocity_lag_s: float = 0.25
    max_acceleration_m_s2: float = 4.0
    wind_m_s2: float = 1.0
    target_tolerance_m: float = 0.25
    hold_steps: int = 5
    control_rate_hz: float = 20.0
    max_steps: int = 110

    def __post_init__(self) -> None:
        if not FEWEST_DRONES <= self.drones <= MOST_DRONES:
            raise ValueError(f"drones: {self.drones}, expected {FEWEST_DRONES} to {MOST_DRONES}")
