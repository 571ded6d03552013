"""Meta-World: one arm, eight scenes, and a sentence that says what to do there.

Each scene allows for two or three of the library's tasks and shows none of them: `metaworld_scenes.py`. What
is asked for, a sentence and the place of a mark, is the goal; a robot that does not know it can only guess.
Doing the opposite fails the episode, so doing first one and then the other does not help either.

The hand is disturbed at every step, for without that the benchmark is an exercise by heart: nothing in it is
random but the start, and plans of any length can be followed blindly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from adahi_ros.randomness import EpisodeStreams
from adahi_ros.tasks.base import TaskSpec, checked_action
from adahi_ros.tasks.instructions import INSTRUCTION_DIM, embedded
from adahi_ros.tasks.metaworld_scenes import SCENES, Delivery, Errand, Scene
from adahi_ros.tasks.metaworld_world import load_scene
from adahi_ros.tasks.portable import UNIFORMS_PER_DRAW, bell_noise

if TYPE_CHECKING:
    from adahi_ros.tasks.metaworld_render import MetaWorldPainter

MAX_STEPS = 240
DISTURBANCE = 0.6  # standard deviation, as a share of the fastest motion along an axis
AXES = ("x", "y", "z")
ASKED = "what was asked for"
MIDDLE_M = np.array([0.0, 0.85, 0.15])  # of where marks may be
LIBRARY_OBSERVATION_DIM = 39


class MetaWorld:
    """E tables side by side. Implements `adahi_ros.tasks.base.Task`.

    Joints: none, for the hand is commanded. State: the hand's place (m), how open the gripper is (0 to 1),
    where the moving part of the thing on the table is and where the thing is (m), and which scene it is
    (one entry of each, 1 or 0). Goal, for the target alone: the sentence as a vector, and where the mark is
    (m), from the middle of where it may be, 0 where there is none. Action: the hand's velocity (m/s) and
    the gripper, from -1, open, to 1, closed. An episode that is done stands still from then on; one in
    which something else was done has failed.

    Args:
        scenes: that an episode may be in.
        disturbance: of the hand's motion at every step, standard deviation, as a share of the fastest.

    Raises:
        ValueError: Meta-World is not installed; the message says how to.
    """

    def __init__(self, scenes: Sequence[Scene] = SCENES, disturbance: float = DISTURBANCE) -> None:
        self._disturbance = disturbance
        self._names = tuple(scene.name for scene in scenes)
        self._errands = [(scene, errand) for scene in scenes for errand in scene.errands]
        world = load_scene(scenes[0])
        fastest = round(world.reach_m / world.period_s, 9)
        limit = np.array([fastest, fastest, fastest, 1.0])
        self._period_s = world.period_s
        self._painter: MetaWorldPainter | None = None
        self.spec = TaskSpec(
            name="metaworld",
            joint_names=(),
            state_names=(
                *(f"hand_{axis}_m" for axis in AXES),
                "gripper_opening",
                *(f"part_{axis}_m" for axis in AXES),
                *(f"thing_{axis}_m" for axis in AXES),
                *(f"scene_is_{name.replace(' ', '_')}" for name in self._names),
            ),
            frame_id="world",
            goal_dim=INSTRUCTION_DIM + len(AXES),
            action_names=(*(f"hand_v{axis}_command_m_s" for axis in AXES), "gripper_command"),
            action_low=-limit,
            action_high=limit,
            control_rate_hz=1.0 / world.period_s,
            max_steps=MAX_STEPS,
            success_text="what the sentence asks for is done, and nothing else before",
            subtask_names=(ASKED,),
            command_field="velocities",
            command_names=(*(f"hand_{axis}" for axis in AXES), "gripper"),
            goal_for_target=True,
        )
        self.reset(0, [0])

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers; E is how many there are.

        Scene and errand are drawn, all errands alike; then the place of the thing, the coordinate of its
        joint, and the mark.
        """
        count = len(episodes)
        draws = EpisodeStreams(seed, "metaworld/reset", episodes, 8).next()
        self._drawn = [self._errands[int(draw * len(self._errands))] for draw in draws[:, 0]]
        self._worlds = [load_scene(scene) for scene, _ in self._drawn]
        self._goal = np.zeros((count, self.spec.goal_dim))
        self._marks = np.full((count, len(AXES)), np.nan)
        self._places = np.zeros((count, len(AXES)))
        self._states: list[np.ndarray] = []
        self._observed = np.zeros((count, self.spec.observation_dim))
        self._seen = np.zeros((count, len(AXES)))
        self._met = np.zeros(count, dtype=bool)
        self._failed = np.zeros(count, dtype=bool)
        self._success = np.zeros(count, dtype=bool)
        self._steps = np.zeros(count, dtype=np.int64)
        self._disturbances = EpisodeStreams(
            seed, "metaworld/disturbance", episodes, len(AXES) * UNIFORMS_PER_DRAW
        )
        for row, (scene, errand) in enumerate(self._drawn):
            self._places[row] = _between(scene.place.low, scene.place.high, draws[row, 1:4])
            coordinate = _between(*scene.start, draws[row, 4])
            self._goal[row, :INSTRUCTION_DIM] = embedded(errand.sentence)
            if isinstance(errand.done, Delivery):
                box = errand.done.mark
                self._marks[row] = _between(box.low, box.high, draws[row, 5:8])
                self._goal[row, INSTRUCTION_DIM:] = self._marks[row] - MIDDLE_M
            self._states.append(self._worlds[row].start(self._places[row], float(coordinate)))
            self._look(row)

    @property
    def joint_positions(self) -> np.ndarray:
        """(E, 0) float64: the hand is commanded, not its joints."""
        return np.zeros((len(self._steps), 0))

    @property
    def joint_velocities(self) -> np.ndarray:
        """(E, 0) float64: the hand is commanded, not its joints."""
        return np.zeros((len(self._steps), 0))

    @property
    def state(self) -> np.ndarray:
        """(E, S) float64; see the class."""
        return self._observed.copy()

    @property
    def goal(self) -> np.ndarray:
        """(E, 35) float64: the sentence's vector, then x, y, z of the mark (m) from the middle of all."""
        return self._goal.copy()

    @property
    def observation(self) -> np.ndarray:
        """(E, S) float32: the state."""
        return self._observed.astype(np.float32)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What each of the E episodes asks for."""
        return tuple(errand.sentence for _, errand in self._drawn)

    @property
    def errands(self) -> tuple[Errand, ...]:
        """The same, with all that belongs to it."""
        return tuple(errand for _, errand in self._drawn)

    @property
    def library_observations(self) -> np.ndarray:
        """(E, 39) float64, what the library's scripted policies read.

        Hand, gripper and object, the same again for the step before, which none of them uses, and the goal:
        the mark, or where there is none the place of the thing.
        """
        read = np.zeros((len(self._steps), LIBRARY_OBSERVATION_DIM))
        read[:, :4], read[:, 4:7] = self._observed[:, :4], self._seen
        read[:, 18:36] = read[:, :18]
        read[:, -3:] = np.where(np.isnan(self._marks), self._places, self._marks)
        return read

    @property
    def completed(self) -> np.ndarray:
        """(E, 1) bool, latched: what was asked for has been done."""
        return self._success[:, None].copy()

    @property
    def fulfilled(self) -> np.ndarray:
        """(E, 1) bool: what was asked for is done now."""
        return self._met[:, None].copy()

    @property
    def success(self) -> np.ndarray:
        """(E,) bool, latched."""
        return self._success.copy()

    @property
    def failed(self) -> np.ndarray:
        """(E,) bool, latched: something else that the scene allows for has been done."""
        return self._failed.copy()

    @property
    def done(self) -> np.ndarray:
        """(E,) bool: succeeded, failed, or out of steps."""
        done: np.ndarray = self._success | self._failed | (self._steps >= self.spec.max_steps)
        return done

    def step(self, action: np.ndarray) -> None:
        """Advance every episode that is not done by one control period.

        Args:
            action: (E, 4), the hand's velocity (m/s) and the gripper, clipped to the action limits; so is the
                velocity with its disturbance.

        Raises:
            ValueError: wrong shape, or not finite.
        """
        action = checked_action(self.spec, len(self._steps), action)
        fastest = self.spec.action_high[:3]
        disturbed = action[:, :3] + self._disturbance * fastest * bell_noise(self._disturbances.next())
        moved = np.clip(disturbed, -fastest, fastest) * self._period_s
        for row in np.flatnonzero(~self.done).tolist():
            world = self._worlds[row]
            world.load(self._states[row], self._places[row])
            self._states[row] = world.step(moved[row], float(action[row, 3]))
            self._steps[row] += 1
            self._look(row)

    def render(self, index: int = 0) -> np.ndarray:
        """Return a picture of one episode for people, (480, 640, 3) uint8.

        Raises:
            IndexError: no such episode.
            RuntimeError: there is no OpenGL to draw with.
        """
        from adahi_ros.tasks import metaworld_render  # most tables are never drawn

        world = self._worlds[index]
        if self._painter is None:
            self._painter = metaworld_render.MetaWorldPainter()
        world.load(self._states[index], self._places[index])
        mark = self._marks[index]
        return self._painter.draw(
            world,
            metaworld_render.Told(
                self.sentences[index],
                None if np.isnan(mark).any() else mark,
                int(self._steps[index]),
                self.spec.max_steps,
                self._period_s,
                bool(self._success[index]),
                bool(self._failed[index]),
            ),
        )

    def _look(self, row: int) -> None:
        """Note what there is to see in an episode whose world was started or stepped last."""
        world, (scene, errand) = self._worlds[row], self._drawn[row]
        is_scene = np.array([name == scene.name for name in self._names], dtype=np.float64)
        parts = world.hand(), world.point(scene.part), world.thing(), is_scene
        self._observed[row] = np.concatenate(parts)
        self._seen[row] = world.point(errand.seen)
        self._met[row] = world.is_done(errand, self._marks[row])
        self._success[row] |= self._met[row]
        others = (other for other in scene.errands if other is not errand and _opposes(other, errand))
        self._failed[row] |= any(world.is_done(other, self._marks[row]) for other in others)


def _opposes(one: Errand, other: Errand) -> bool:
    """Whether the doing of the one is the failing of the other: they move the same joint."""
    return not isinstance(one.done, Delivery) and not isinstance(other.done, Delivery)


def _between(low: Sequence[float] | float, high: Sequence[float] | float, share: np.ndarray) -> np.ndarray:
    between: np.ndarray = np.asarray(low) + share * (np.asarray(high) - np.asarray(low))
    return between
