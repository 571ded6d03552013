# SPDX-License-Identifier: Apache-2.0
"""Ball balancing: tilt a plate so that a ball rolls round a post and rests on the goal.

Axes follow REP-103: the plate's frame sits in its centre, x forward, y left, z up, all in metres and
radians. The plate turns by `pitch` about its y axis after `roll` about its x axis, both right-handed:
positive pitch lowers the front edge (the ball rolls towards +x), positive roll lifts the left edge
(the ball rolls towards -y). In the frame of the plate gravity is g (sin p, -cos p sin r, -cos p cos r),
and a solid ball that rolls without slipping takes 5/7 of its tangential part.

A round post stands in the centre, between start and goal, so there are two ways to go: round its
left or round its right. That makes good behaviour multimodal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adahi_lab.tasks.portable import UNIFORMS_PER_DRAW, bell_noise, norm, polar, sine_of_small
from adahi_lab.tasks.task_interface import SimulatedTask, Task, TaskSpec, checked_action
from adahi_ros.core.randomness import EpisodeStreams

GRAVITY = 9.81  # m/s^2
ROLLING_SHARE = 5.0 / 7.0  # of the tangential acceleration, for a solid ball without slip
SUBSTEPS = 5
TURN = 2.0 * np.pi


@dataclass(frozen=True)
class BallParameters:
    """The world's constants, SI units.

    Attributes:
        half_side_m: half of the square plate's side; a ball has left the plate when its centre passes it.
        ball_radius_m: of the ball.
        post_radius_m: of the post in the plate's centre.
        restitution: share of the normal speed after a bounce off the post.
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


class BallBalancing(SimulatedTask):
    """E plates side by side. Implements `adahi_lab.tasks.task_interface.Task`.

    Joints: plate roll and pitch (rad). State: ball x, y (m), vx, vy (m/s) in the plate's frame. Goal: x,
    y (m). Action: commanded roll and pitch (rad). An episode that is done stands still from then on.

    Args:
        parameters: the world's constants.
    """

    def __init__(self, parameters: BallParameters | None = None) -> None:
        self.parameters = parameters or BallParameters()
        limit = np.full(2, self.parameters.max_tilt_rad)
        hold_s = self.parameters.hold_steps / self.parameters.control_rate_hz
        self.spec = TaskSpec(
            name="ball",
            joint_names=("plate_roll_joint", "plate_pitch_joint"),
            state_names=("ball_x_m", "ball_y_m", "ball_vx_m_s", "ball_vy_m_s"),
            frame_id="plate",
            goal_dim=2,
            action_names=("roll_command_rad", "pitch_command_rad"),
            action_low=-limit,
            action_high=limit,
            control_rate_hz=self.parameters.control_rate_hz,
            max_steps=self.parameters.max_steps,
            success_text=f"ball within {self.parameters.goal_tolerance_m * 100:g} cm of the goal "
            f"for {self.parameters.hold_steps} consecutive steps ({hold_s:g} s)",
            subtask_names=("ball on the goal",),
        )
        self.reset(0, [0])

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers; E is how many there are.

        The goal lies anywhere in a ring round the post, the ball starts behind the post as seen from
        the goal, and moves a little.
        """
        count = len(episodes)
        draws = EpisodeStreams(seed, "ball/reset", episodes, 6).next()
        goal_angle = TURN * draws[:, 0]
        start_angle = goal_angle + np.pi + 1.2 * (draws[:, 2] - 0.5)
        self._goal = polar(0.10 + 0.08 * draws[:, 1], goal_angle)
        self._position = polar(0.12 + 0.08 * draws[:, 3], start_angle)
        self._velocity = 0.2 * (draws[:, 4:6] - 0.5)
        self._tilt = np.zeros((count, 2))
        self._tilt_rate = np.zeros((count, 2))
        self._command = np.zeros((count, 2))
        self._begin(count)
        self._held = np.zeros(count, dtype=np.int64)
        self._disturbance = np.zeros((count, 2))
        self._disturbances = EpisodeStreams(seed, "ball/disturbance", episodes, 2 * UNIFORMS_PER_DRAW)

    @property
    def joint_positions(self) -> np.ndarray:
        """(E, 2) float64, plate roll and pitch, rad."""
        return self._tilt.copy()

    @property
    def joint_velocities(self) -> np.ndarray:
        """(E, 2) float64, rad/s."""
        return self._tilt_rate.copy()

    @property
    def state(self) -> np.ndarray:
        """(E, 4) float64, ball x, y (m), vx, vy (m/s)."""
        return np.concatenate([self._position, self._velocity], axis=1)

    @property
    def goal(self) -> np.ndarray:
        """(E, 2) float64, goal x, y (m)."""
        return self._goal.copy()

    @property
    def command(self) -> np.ndarray:
        """(E, 2) float64, roll and pitch that are commanded, rad."""
        return self._command.copy()

    @property
    def held_steps(self) -> np.ndarray:
        """(E,) int64, consecutive steps for which the ball has been on the goal."""
        return self._held.copy()

    @property
    def fulfilled(self) -> np.ndarray:
        """(E, 1) bool: the ball is within the tolerance of the goal now."""
        return self._on_goal()[:, None]

    def step(self, action: np.ndarray) -> None:
        """Advance every episode that is not done by one control period.

        Args:
            action: (E, 2), commanded roll and pitch, rad, clipped to +-`max_tilt_rad`.

        Raises:
            ValueError: wrong shape, or not finite.
        """
        command = checked_action(self.spec, len(self._tilt), action)
        command = np.where(self.done[:, None], self._command, command)
        self._disturbance = self.parameters.disturbance_m_s2 * bell_noise(self._disturbances.next())
        active = ~self.done
        for _ in range(SUBSTEPS):
            moving = (active & ~self._failed)[:, None]
            self._advance(command, moving)
        self._command = command
        self._steps += active
        held = np.where(self._on_goal(), self._held + 1, 0)
        self._held = np.where(active, held, self._held)
        self._success |= active & (self._held >= self.parameters.hold_steps)

    def _on_goal(self) -> np.ndarray:
        near: np.ndarray = norm(self._position - self._goal) <= self.parameters.goal_tolerance_m
        return near & ~self._failed

    def _advance(self, command: np.ndarray, moving: np.ndarray) -> None:
        """Semi-implicit Euler over one substep, for the episodes that still move, (E, 1) bool."""
        world = self.parameters
        period = 1.0 / world.control_rate_hz / SUBSTEPS
        limit = world.max_tilt_rate_rad_s
        rate = np.clip((command - self._tilt) / world.tilt_lag_s, -limit, limit)
        tilt = self._tilt + period * rate
        roll, pitch = sine_of_small(tilt[:, 0]), sine_of_small(tilt[:, 1])
        slope = np.stack([pitch, -np.sqrt(1.0 - pitch * pitch) * roll], axis=1)
        acceleration = ROLLING_SHARE * GRAVITY * slope + self._disturbance
        acceleration -= world.rolling_damping_per_s * self._velocity
        velocity = self._velocity + period * acceleration
        position, velocity = self._bounce(self._position + period * velocity, velocity)
        edge = world.half_side_m
        left_plate = moving[:, 0] & np.any(np.abs(position) > edge, axis=1)
        self._failed |= left_plate
        position = np.clip(position, -edge, edge)
        velocity = np.where(left_plate[:, None], 0.0, velocity)
        self._tilt = np.where(moving, tilt, self._tilt)
        self._tilt_rate = np.where(moving, rate, self._tilt_rate)
        self._position = np.where(moving, position, self._position)
        self._velocity = np.where(moving, velocity, self._velocity)

    def _bounce(self, position: np.ndarray, velocity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Push balls out of the post and reflect the speed at which they went in."""
        contact = self.parameters.ball_radius_m + self.parameters.post_radius_m
        distance = norm(position)
        hit = distance < contact
        normal = position / np.maximum(distance, 1e-9)[:, None]
        inward = np.minimum(normal[:, 0] * velocity[:, 0] + normal[:, 1] * velocity[:, 1], 0.0)
        bounced = velocity - (1.0 + self.parameters.restitution) * inward[:, None] * normal
        return (
            np.where(hit[:, None], contact * normal, position),
            np.where(hit[:, None], bounced, velocity),
        )


@dataclass(frozen=True)
class ExpertGains:
    """How the expert drives.

    Attributes:
        stiffness_per_s2: wanted acceleration per metre to the place it aims at.
        damping_per_s: wanted deceleration per m/s.
        reach_m: largest distance it aims ahead, which bounds its speed.
        clearance_m: distance from the post's centre at which it passes.
        lead_m: it turns to the goal this far before it is level with the post.
    """

    stiffness_per_s2: float = 6.0
    damping_per_s: float = 4.0
    reach_m: float = 0.15
    clearance_m: float = 0.13
    lead_m: float = 0.01


class BallExpert:
    """A PD controller that goes round the post on a side drawn per episode, then to the goal.

    Implements `adahi_lab.tasks.task_interface.Expert`. The side is all it remembers.

    Args:
        gains: how it drives.
    """

    def __init__(self, gains: ExpertGains | None = None) -> None:
        self.gains = gains or ExpertGains()
        self.reset(0, [0])

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Draw a side for each of the episodes with these numbers."""
        draws = EpisodeStreams(seed, "ball/expert", episodes, 1).next()
        self.sides = np.where(draws[:, 0] < 0.5, -1.0, 1.0)
        """(E,), +1 passes the post on its left as seen towards the goal, -1 on its right."""

    def act(self, task: Task) -> np.ndarray:
        """Return the commanded roll and pitch, (E, 2) rad.

        Raises:
            ValueError: the task has another number of episodes than were reset here.
        """
        state, goal = task.state, task.goal
        if len(state) != len(self.sides):
            raise ValueError(f"task: {len(state)} episodes, the expert was reset for {len(self.sides)}")
        position, velocity = state[:, :2], state[:, 2:]
        ahead = goal / norm(goal)[:, None]
        left = np.stack([-ahead[:, 1], ahead[:, 0]], axis=1)
        level = ahead[:, 0] * position[:, 0] + ahead[:, 1] * position[:, 1]
        beside = left[:, 0] * position[:, 0] + left[:, 1] * position[:, 1]
        waypoint = self.gains.clearance_m * self._ways(level, beside)[:, None] * left
        aim = np.where((level > -self.gains.lead_m)[:, None], goal, waypoint)
        error = aim - position
        error *= np.minimum(1.0, self.gains.reach_m / np.maximum(norm(error), 1e-9))[:, None]
        wanted = self.gains.stiffness_per_s2 * error - self.gains.damping_per_s * velocity
        tilt = wanted / (ROLLING_SHARE * GRAVITY)
        command = np.stack([-tilt[:, 1], tilt[:, 0]], axis=1)
        return np.clip(command, task.spec.action_low, task.spec.action_high)

    def _ways(self, level: np.ndarray, beside: np.ndarray) -> np.ndarray:
        """Return the side on which to pass the post, (E,).

        Args:
            level: (E,), how far a ball is past the post on the way to the goal, m.
            beside: (E,), how far to the left of that way, m.
        """
        return self.sides
