# SPDX-License-Identifier: Apache-2.0
"""Swarm control: drones cross the same arena, each to its own target, without touching one another.

The plane is seen from above in the frame `map` (REP-103, REP-105): x east, y north, metres. The drones
fly at one height, so height is left out. Each takes a velocity command, as flight controllers do, and
follows it with a lag; wind pushes every drone separately, with new draws at every control step.

The drones start around the arena's centre and their targets lie on its far side. Straight lines would
meet in the middle; all drones must go round it the same way, and either way will do. That makes good
behaviour multimodal, and its average a collision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from adahi_lab.tasks.portable import UNIFORMS_PER_DRAW, bell_noise, dot, norm, polar
from adahi_lab.tasks.task_interface import SimulatedTask, Task, TaskSpec, checked_action
from adahi_ros.core.randomness import EpisodeStreams

SUBSTEPS = 5
TURN = 2.0 * np.pi
FEWEST_DRONES, MOST_DRONES = 3, 6  # so that each has a sector in front of the centre, wide enough
SPREAD = 0.6  # of a drone's sector around the centre, the rest is room between neighbours


@dataclass(frozen=True)
class SwarmParameters:
    """The world's constants, SI units.

    Attributes:
        drones: N, how many.
        half_side_m: half of the square arena's side; a drone has left the arena when its centre passes it.
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


class Swarm(SimulatedTask):
    """E arenas side by side, each with N drones. Implements `adahi_lab.tasks.task_interface.Task`.

    Joints: none, J = 0. State: every drone's x, y (m), then every drone's vx, vy (m/s). Goal: every
    target's x, y (m). Action: every drone's commanded vx, vy (m/s). Sub-task i is completed once drone i
    has stood on its target for the hold, whatever the others do; the success takes all of them at the
    same time. An episode that is done stands still from then on.

    Args:
        parameters: the world's constants.
    """

    def __init__(self, parameters: SwarmParameters | None = None) -> None:
        self.parameters = parameters or SwarmParameters()
        world = self.parameters
        numbers = range(1, world.drones + 1)
        limit = np.full(2 * world.drones, world.max_speed_m_s)
        hold_s = world.hold_steps / world.control_rate_hz
        self.spec = TaskSpec(
            name="swarm",
            joint_names=(),
            state_names=tuple(f"drone_{i}_{axis}_m" for i in numbers for axis in ("x", "y"))
            + tuple(f"drone_{i}_{axis}_m_s" for i in numbers for axis in ("vx", "vy")),
            frame_id="map",
            goal_dim=2 * world.drones,
            action_names=tuple(f"drone_{i}_{axis}_command_m_s" for i in numbers for axis in ("vx", "vy")),
            action_low=-limit,
            action_high=limit,
            control_rate_hz=world.control_rate_hz,
            max_steps=world.max_steps,
            success_text=f"all {world.drones} drones within {world.target_tolerance_m * 100:g} cm of their "
            f"targets for {world.hold_steps} consecutive steps ({hold_s:g} s), without a collision",
            subtask_names=tuple(f"drone {i} on its target" for i in numbers),
            command_field="velocities",
            command_names=tuple(f"drone_{i}_{axis}" for i in numbers for axis in ("x", "y")),
        )
        self.reset(0, [0])

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers; E is how many there are.

        Each drone hovers somewhere in a sector of its own around the centre, in the order of their
        numbers, counter-clockwise from east; its target lies somewhere in the opposite sector.
        """
        count, drones = len(episodes), self.parameters.drones
        draws = EpisodeStreams(seed, "swarm/reset", episodes, 4 * drones).next()
        jitter = draws.reshape(count, drones, 4) - 0.5
        sector = TURN / drones
        angle = sector * np.arange(drones) + SPREAD * sector * jitter[:, :, 0]
        opposite = sector * np.arange(drones) + np.pi + SPREAD * sector * jitter[:, :, 1]
        self._position = polar(1.4 + 0.4 * jitter[:, :, 2], angle)
        self._target = polar(1.4 + 0.4 * jitter[:, :, 3], opposite)
        self._velocity = np.zeros((count, drones, 2))
        self._begin(count)
        self._held = np.zeros((count, drones), dtype=np.int64)
        self._completed = np.zeros((count, drones), dtype=bool)
        self._collided = np.zeros((count, drones), dtype=bool)
        self._left = np.zeros((count, drones), dtype=bool)
        self._wind = np.zeros((count, drones, 2))
        self._winds = EpisodeStreams(seed, "swarm/wind", episodes, 2 * drones * UNIFORMS_PER_DRAW)

    @property
    def state(self) -> np.ndarray:
        """(E, 4 N) float64: every drone's x, y (m), then every drone's vx, vy (m/s)."""
        return np.concatenate([_flat(self._position), _flat(self._velocity)], axis=1)

    @property
    def goal(self) -> np.ndarray:
        """(E, 2 N) float64, every target's x, y (m)."""
        return _flat(self._target).copy()

    @property
    def targets(self) -> np.ndarray:
        """(E, N, 2) float64, m."""
        return self._target.copy()

    @property
    def held_steps(self) -> np.ndarray:
        """(E, N) int64, consecutive steps for which each drone has been on its target."""
        return self._held.copy()

    @property
    def completed(self) -> np.ndarray:
        """(E, N) bool, latched: the drone has stood on its target for the hold."""
        return self._completed.copy()

    @property
    def fulfilled(self) -> np.ndarray:
        """(E, N) bool: the drone is within the tolerance of its target now."""
        near: np.ndarray = norm(self._position - self._target) <= self.parameters.target_tolerance_m
        return near

    @property
    def collided(self) -> np.ndarray:
        """(E, N) bool, latched: the drone has touched another one."""
        return self._collided.copy()

    @property
    def failed(self) -> np.ndarray:
        """(E,) bool, latched: drones have collided or left the arena."""
        failed: np.ndarray = np.any(self._collided | self._left, axis=1)
        return failed

    def step(self, action: np.ndarray) -> None:
        """Advance every episode that is not done by one control period.

        Args:
            action: (E, 2 N), every drone's commanded vx, vy, m/s, clipped to +-`max_speed_m_s`; a
                command that is still faster than that is scaled down to it.

        Raises:
            ValueError: wrong shape, or not finite.
        """
        command = checked_action(self.spec, len(self._steps), action).reshape(self._position.shape)
        fastest = self.parameters.max_speed_m_s
        command = command * (fastest / np.maximum(norm(command), fastest))[:, :, None]
        self._wind = self.parameters.wind_m_s2 * bell_noise(self._winds.next()).reshape(command.shape)
        active = ~self.done
        for _ in range(SUBSTEPS):
            self._advance(command, active & ~self.failed)
        self._steps += active
        held = np.where(self.fulfilled, self._held + 1, 0)
        self._held = np.where(active[:, None], held, self._held)
        holding = (active & ~self.failed)[:, None] & (self._held >= self.parameters.hold_steps)
        self._completed |= holding
        self._success |= np.all(holding, axis=1)

    def _advance(self, command: np.ndarray, moving: np.ndarray) -> None:
        """Semi-implicit Euler over one substep, for the episodes that still move, (E,) bool."""
        world = self.parameters
        period = 1.0 / world.control_rate_hz / SUBSTEPS
        limit = world.max_acceleration_m_s2
        thrust = np.clip((command - self._velocity) / world.velocity_lag_s, -limit, limit)
        velocity = self._velocity + period * (thrust + self._wind)
        position = self._position + period * velocity
        self._velocity = np.where(moving[:, None, None], velocity, self._velocity)
        self._position = np.where(moving[:, None, None], position, self._position)
        self._left |= np.any(np.abs(self._position) > world.half_side_m, axis=2)
        for i, j in _pairs(world.drones):
            touch = norm(self._position[:, i] - self._position[:, j]) < 2.0 * world.drone_radius_m
            self._collided[:, i] |= touch
            self._collided[:, j] |= touch


@dataclass(frozen=True)
class SwarmGains:
    """How the expert flies.

    Attributes:
        speed_m_s: on the way.
        ring_radius_m: of the ring round the centre on which the drones pass one another.
        ring_pull_per_m: how strongly a drone turns to the ring, per metre of distance from it.
        turn_in_cosine: it flies straight to its target once the angle to it, as seen from the centre,
            has a larger cosine than this.
        stiffness_per_s: wanted speed per metre to the target.
        clearance_m: it shuns drones that are closer than this.
        repulsion_per_s: wanted speed away from another drone per metre that is missing to the clearance.
    """

    speed_m_s: float = 0.9
    ring_radius_m: float = 0.65
    ring_pull_per_m: float = 2.0
    turn_in_cosine: float = 0.4
    stiffness_per_s: float = 3.0
    clearance_m: float = 0.8
    repulsion_per_s: float = 3.0


class SwarmExpert:
    """A roundabout: all drones circle the centre the same way, drawn per episode, and leave at their targets.

    Implements `adahi_lab.tasks.task_interface.Expert`. The way round is all it remembers.

    Args:
        gains: how it flies.
    """

    def __init__(self, gains: SwarmGains | None = None) -> None:
        self.gains = gains or SwarmGains()
        self.reset(0, [0])

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Draw a way round for each of the episodes with these numbers."""
        draws = EpisodeStreams(seed, "swarm/expert", episodes, 1).next()
        self.ways = np.where(draws[:, 0] < 0.5, -1.0, 1.0)
        """(E,), +1 goes round counter-clockwise as seen from above, -1 clockwise."""

    def act(self, task: Task) -> np.ndarray:
        """Return the commanded velocities, (E, 2 N) m/s.

        Raises:
            ValueError: the task has another number of episodes than were reset here.
        """
        state, goal = task.state, task.goal
        if len(state) != len(self.ways):
            raise ValueError(f"task: {len(state)} episodes, the expert was reset for {len(self.ways)}")
        position = state[:, : goal.shape[1]].reshape(len(state), -1, 2)
        target = goal.reshape(position.shape)
        outward = _unit(position)
        across = self.ways[:, None, None] * np.stack([-outward[:, :, 1], outward[:, :, 0]], axis=2)
        inward_of_ring = self.gains.ring_radius_m - norm(position)[:, :, None]
        around = self.gains.speed_m_s * _unit(across + self.gains.ring_pull_per_m * inward_of_ring * outward)
        straight = self.gains.stiffness_per_s * (target - position)
        straight *= np.minimum(1.0, self.gains.speed_m_s / np.maximum(norm(straight), 1e-9))[:, :, None]
        near = dot(outward, _unit(target)) > self.gains.turn_in_cosine
        wanted = np.where(near[:, :, None], straight, around) + self._away_from_others(position)
        return np.clip(_flat(wanted), task.spec.action_low, task.spec.action_high)

    def _away_from_others(self, position: np.ndarray) -> np.ndarray:
        away = np.zeros_like(position)
        for i, j in _pairs(position.shape[1]):
            apart = position[:, i] - position[:, j]
            missing = np.maximum(self.gains.clearance_m - norm(apart), 0.0)[:, None]
            push = self.gains.repulsion_per_s * missing * _unit(apart)
            away[:, i] += push
            away[:, j] -= push
        return away


def _pairs(count: int) -> Iterator[tuple[int, int]]:
    for i in range(count):
        for j in range(i + 1, count):
            yield i, j


def _flat(vectors: np.ndarray) -> np.ndarray:
    """(E, N, 2) to (E, 2 N)."""
    return vectors.reshape(len(vectors), -1)


def _unit(vectors: np.ndarray) -> np.ndarray:
    unit: np.ndarray = vectors / np.maximum(norm(vectors), 1e-9)[..., None]
    return unit
