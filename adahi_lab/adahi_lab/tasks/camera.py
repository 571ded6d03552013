# SPDX-License-Identifier: Apache-2.0
"""Tasks as a camera sees them: joint positions, and features of a frame in place of the state.

The camera is part of the world: its exposure and its grain come from the episode's addressed draws, so an
episode's frames are the same side by side or alone. A frame is rendered on demand, once per step.

In the worlds of `SeenTask` only the target uses the camera, and only the picture shows the goal. The robot
sends the picture as JPEG with a request, and does not use it. Here, too, the target reads the verifier's
features of that JPEG.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Protocol

import numpy as np

from adahi_lab.tasks import make, make_expert
from adahi_lab.tasks.portable import UNIFORMS_PER_DRAW, bell_noise
from adahi_lab.tasks.task_interface import SimulatedTask, Task
from adahi_ros.core.assets import asset
from adahi_ros.core.randomness import EpisodeStreams, step_uniforms
from adahi_ros.core.registry import at_place
from adahi_ros.vision.encoder import Encoder
from adahi_ros.vision.images import as_sent

EXPOSURE = 0.1  # largest share by which a frame is brighter or darker
GRAIN = 2.5  # standard deviation of a pixel, of 255
GRAIN_SIDE = 256  # px; a frame's grain is a part of one large sheet
DRAWS = 3  # per frame: exposure, and where on the sheet
TOGETHER = 16  # frames at once, which fit into caches

CAMERA_VIEWS: dict[str, str] = {
    "ball": "adahi_lab.tasks.ball_camera:BallView",
    "ball_instructed": "adahi_lab.tasks.ball_camera:BallAndGoalView",
    "kitchen": "adahi_lab.tasks.kitchen_camera:KitchenView",
    "metaworld": "adahi_lab.tasks.metaworld_camera:MetaWorldView",
}
"""The view of each task, as "module:class": imported when made."""


class View(Protocol):
    """A camera's view of a task.

    Attributes:
        image_size: rows and columns of a frame.
        label_names: the L labels of a frame, with units.
    """

    image_size: tuple[int, int]
    label_names: tuple[str, ...]

    def labels(self, task: Any) -> np.ndarray:
        """Return the labels of a frame, (E, L), known only to the simulator."""

    def photograph(self, task: Any, rows: np.ndarray) -> np.ndarray:
        """Return images of the episodes in these rows (N,): (N, H, W, 3) uint8."""


def make_view(task: str) -> View:
    """Return a new view of the task of this name.

    Raises:
        ValueError: it has no camera; the message lists tasks with one.
    """
    if task not in CAMERA_VIEWS:
        raise ValueError(f"task: {task!r}, must be one that a camera looks at: {', '.join(CAMERA_VIEWS)}")
    view: View = at_place(CAMERA_VIEWS[task])()
    return view


class Film:
    """The frames of a task's running episodes.

    Args:
        task: to render; its caller also calls `advance` at each step.
        view: of the camera.
    """

    def __init__(self, task: Task, view: View) -> None:
        self._task = task
        self._view = view

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Restart after the task has been reset to the same episodes."""
        self._streams = EpisodeStreams(seed, f"{self._task.spec.name}/camera", episodes, DRAWS)
        self._draws = self._streams.next()
        self._images = np.zeros((len(episodes), *self._view.image_size, 3), dtype=np.uint8)
        self._old = np.ones(len(episodes), dtype=bool)

    def advance(self, active: np.ndarray) -> None:
        """Count a step of the active episodes (E,) bool."""
        self._draws = np.where(active[:, None], self._streams.next(), self._draws)
        self._old |= active

    @property
    def images(self) -> np.ndarray:
        """(E, H, W, 3) uint8, the current frames."""
        rows = np.flatnonzero(self._old)
        for start in range(0, len(rows), TOGETHER):
            some = rows[start : start + TOGETHER]
            self._images[some] = exposed(self._view.photograph(self._task, some), self._draws[some])
        self._old[:] = False
        return self._images.copy()


def exposed(images: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Return images (N, H, W, 3) uint8 with sensor effects, by draws (N, 3) in [0, 1)."""
    rows, columns = images.shape[1:3]
    sheet = _grain()
    exposure = 1.0 + EXPOSURE * (2.0 * draws[:, 0] - 1.0)
    corners = (draws[:, 1:] * (GRAIN_SIDE - np.array([rows, columns]) + 1)).astype(np.int64)
    grain = np.stack([sheet[top : top + rows, left : left + columns] for top, left in corners])
    seen = exposure.astype(np.float32)[:, None, None, None] * images + grain
    return np.rint(np.clip(seen, 0.0, 255.0)).astype(np.uint8)


@lru_cache(maxsize=1)
def _grain() -> np.ndarray:
    shape = (GRAIN_SIDE, GRAIN_SIDE, 3)
    uniforms = step_uniforms(0, "camera/grain", 0, 0, int(np.prod(shape)) * UNIFORMS_PER_DRAW)
    sheet: np.ndarray = (GRAIN * bell_noise(uniforms[None])).astype(np.float32).reshape(shape)
    return sheet


def _of_watched(name: str) -> Any:
    """Return a property that forwards to the watched task; see `Task`."""
    return property(lambda task: getattr(task.watched, name))


class WatchedTask(SimulatedTask):
    """A task with a camera: joints, actions, criterion and every episode are those of the watched task.

    Attributes:
        watched: that task.
        encoder_name: of the shipped encoder of its frames, below checkpoints/encoders.
        encoder: of its frames.

    Args:
        watched: registry name of that task.
        encoder: default: the shipped one of that task.

    Raises:
        CheckpointError: the encoder is missing or damaged.
        ValueError: the task has no camera, or its frames do not have the encoder's size.
    """

    joint_positions, joint_velocities = _of_watched("joint_positions"), _of_watched("joint_velocities")
    state, goal = _of_watched("state"), _of_watched("goal")
    completed, fulfilled = _of_watched("completed"), _of_watched("fulfilled")
    success, failed, done = _of_watched("success"), _of_watched("failed"), _of_watched("done")

    def __init__(self, watched: str, encoder: Encoder | None = None) -> None:
        self.watched = make(watched)
        self.encoder_name = watched
        self.encoder = encoder or Encoder.load(asset(f"checkpoints/encoders/{watched}.json"))
        view = make_view(watched)
        if view.image_size != self.encoder.image_size:
            raise ValueError(f"encoder: for frames of {self.encoder.image_size}, must be {view.image_size}")
        self._film = Film(self.watched, view)

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers; E is how many there are."""
        self.watched.reset(seed, episodes)
        self._film.reset(seed, episodes)
        self._features = np.zeros((len(episodes), self.encoder.features), dtype=np.float32)
        self._old = np.ones(len(episodes), dtype=bool)

    @property
    def images(self) -> np.ndarray:
        """(E, H, W, 3) uint8, the camera's current frames."""
        return self._film.images

    def _encoded(self, sent: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return features (E, F) float32 of the current frames, after transforming them (N, H, W, 3)."""
        if self._old.any():
            self._features[self._old] = self.encoder.encode(sent(self.images[self._old]))
            self._old[:] = False
        return self._features.copy()

    def step(self, action: np.ndarray) -> None:
        """Advance every episode that is not done by one control period.

        Args:
            action: (E, A), clipped to the action limits.

        Raises:
            ValueError: wrong shape, or not finite.
        """
        active = ~self.watched.done
        self.watched.step(action)
        self._film.advance(active)
        self._old |= active


class CameraTask(WatchedTask):
    """A task with a frozen encoder's features of a camera's frames as its state. Implements `Task`.

    Args and errors are those of `WatchedTask`; the goal is that of the watched task.
    """

    def __init__(self, watched: str, encoder: Encoder | None = None) -> None:
        super().__init__(watched, encoder)
        names = tuple(f"feature_{number}" for number in range(self.encoder.features))
        self.spec = replace(self.watched.spec, name=f"{watched}_camera", state_names=names)
        self.reset(0, [0])

    @property
    def state(self) -> np.ndarray:
        """(E, F) float64, the features of the present frames."""
        return self._encoded(lambda images: images).astype(np.float64)


class CameraExpert:
    """The expert of the watched task; it sees that task's state. Implements `Expert`.

    Args:
        watched: registry name of that task.
    """

    def __init__(self, watched: str) -> None:
        self._expert = make_expert(watched)

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers."""
        self._expert.reset(seed, episodes)

    def act(self, task: Task) -> np.ndarray:
        """Return the actions (E, A).

        Raises:
            ValueError: the task has no camera.
        """
        if not isinstance(task, WatchedTask):
            raise ValueError(f"task: {task.spec.name!r}, must be one that a camera looks at")
        return self._expert.act(task.watched)


BallCamera = partial(CameraTask, "ball")
BallCameraExpert = partial(CameraExpert, "ball")
KitchenCamera = partial(CameraTask, "kitchen")
KitchenCameraExpert = partial(CameraExpert, "kitchen")


class SeenTask(WatchedTask):
    """A task with a goal that only the camera shows, for the target only. Implements `Task`.

    Args:
        name: of the task.
        watched: registry name of the watched task.
        encoder: the verifier's; default: the shipped one of that task.

    Raises:
        CheckpointError: the encoder is missing or damaged.
        ValueError: the task has no camera, or its frames do not have the encoder's size.
    """

    def __init__(self, name: str, watched: str, encoder: Encoder | None = None) -> None:
        super().__init__(watched, encoder)
        self.spec = replace(
            self.watched.spec, name=name, goal_dim=0, goal_for_target=False, images_for_target=True
        )
        self.reset(0, [0])

    @property
    def goal(self) -> np.ndarray:
        """(E, 0) float64."""
        return self.watched.goal[:, :0]

    @property
    def image_features(self) -> np.ndarray:
        """(E, F) float32, a verifier's features of the current frames as they are sent."""
        return self._encoded(as_sent)


class BallSeen(SeenTask):
    """Ball balancing to a mark in the ring round the post, which only the target sees."""

    def __init__(self) -> None:
        super().__init__("ball_seen", "ball_instructed")


BallSeenExpert = partial(CameraExpert, "ball_instructed")
