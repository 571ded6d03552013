# SPDX-License-Identifier: Apache-2.0
"""Images of a small camera above the plate, for many plates at once.

The camera hangs over the plate's centre and looks straight down: forward (x) is up in the picture, left
(y) is left. Shapes cover pixels partly, so motion by a fraction of a pixel is visible.
The arithmetic is that of `portable.py`: a frame has the same bits on every machine and in every batch.
"""

from __future__ import annotations

import numpy as np

from adahi_lab.tasks.ball import BallBalancing
from adahi_lab.tasks.portable import sine_of_small

ROWS = COLUMNS = 64
HEIGHT_M = 0.75  # of the camera above the plate's centre
REACH_M = 0.30  # half of its field of view, at the height of the plate's centre
PIXEL_M = 2.0 * REACH_M / ROWS
POST_HEIGHT_M = 0.035
HIGHLIGHT = 0.35  # of the ball's radius: where it is, and how large

Colour = tuple[float, float, float]
FLOOR: Colour = (96.0, 104.0, 118.0)
PLATE: Colour = (224.0, 224.0, 220.0)
POST: Colour = (58.0, 68.0, 84.0)
POST_TOP: Colour = (92.0, 106.0, 128.0)
BALL: Colour = (204.0, 74.0, 22.0)
BALL_LIGHT: Colour = (255.0, 196.0, 160.0)
GOAL: Colour = (47.0, 158.0, 110.0)

_SIDE = np.float32(REACH_M) * (
    1 - (2 * np.arange(ROWS, dtype=np.float32) + 1) / ROWS
)  # m, of pixel centres at the centre's height
_X, _Y = _SIDE[None, :, None], _SIDE[None, None, :]


class BallView:
    """Renders plates. Implements `View`."""

    image_size = (ROWS, COLUMNS)
    label_names: tuple[str, ...] = ("plate_roll_rad", "plate_pitch_rad", "ball_x_m", "ball_y_m")

    def labels(self, task: BallBalancing) -> np.ndarray:
        """(E, 4) float64, the plate's roll and pitch (rad) and the ball's place on it (m)."""
        return np.concatenate([task.joint_positions, task.state[:, :2]], axis=1)

    def photograph(self, task: BallBalancing, rows: np.ndarray) -> np.ndarray:
        """Return the camera's images of the episodes in these rows (N,): (N, 64, 64, 3) uint8."""
        world, ball = task.parameters, task.state[rows, :2].astype(np.float32)
        forward, left, up = _axes(task.joint_positions[rows].astype(np.float32))
        picture = np.empty((3, len(rows), ROWS, COLUMNS), dtype=np.float32)
        picture[:] = np.reshape(FLOOR, (3, 1, 1, 1))
        _paint(picture, _plate(forward, left, up, world.half_side_m), PLATE)
        self._mark(picture, task, rows, (forward, left))
        at_rest = np.zeros_like(up)
        top = POST_HEIGHT_M * up
        _paint(picture, _disc(at_rest, world.post_radius_m), POST)
        _paint(picture, _disc(top, world.post_radius_m), POST_TOP)
        radius = world.ball_radius_m
        centre = ball[:, :1] * forward + ball[:, 1:] * left + radius * up
        _paint(picture, _disc(centre, radius), BALL)
        _paint(picture, _disc(centre + HIGHLIGHT * radius, HIGHLIGHT * radius), BALL_LIGHT)
        return np.moveaxis(np.rint(picture).astype(np.uint8), 0, -1)

    def _mark(
        self,
        picture: np.ndarray,
        task: BallBalancing,
        rows: np.ndarray,
        axes: tuple[np.ndarray, np.ndarray],
    ) -> None:
        """Draw objects on the bare plate into the picture (3, N, 64, 64): here none.

        Args:
            picture: is changed.
            task: the rendered one.
            rows: (N,), of its episodes.
            axes: of the plate in the world, forward and left, each (N, 3).
        """


class BallAndGoalView(BallView):
    """Renders plates with a mark at the goal. Implements `View`."""

    label_names = (*BallView.label_names, "goal_x_m", "goal_y_m")

    def labels(self, task: BallBalancing) -> np.ndarray:
        """(E, 6) float64, those of `BallView`, and the goal's place on the plate (m)."""
        return np.concatenate([super().labels(task), task.goal], axis=1)

    def _mark(
        self,
        picture: np.ndarray,
        task: BallBalancing,
        rows: np.ndarray,
        axes: tuple[np.ndarray, np.ndarray],
    ) -> None:
        """See `BallView`: a disc as large as the tolerance."""
        forward, left = axes
        goal = task.goal[rows].astype(np.float32)
        centre = goal[:, :1] * forward + goal[:, 1:] * left
        _paint(picture, _disc(centre, task.parameters.goal_tolerance_m), GOAL)


def _axes(tilt: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the plate's axes in the world, each (N, 3), for roll and pitch (N, 2): Ry(pitch) Rx(roll)."""
    sine = sine_of_small(tilt)
    cosine = np.sqrt(1.0 - sine * sine)
    (sr, sp), (cr, cp) = sine.T, cosine.T
    nothing = np.zeros_like(sr)
    return (
        np.stack([cp, nothing, -sp], axis=1),
        np.stack([sp * sr, cr, cp * sr], axis=1),
        np.stack([sp * cr, -sr, cp * cr], axis=1),
    )


def _plate(forward: np.ndarray, left: np.ndarray, up: np.ndarray, half_side_m: float) -> np.ndarray:
    """Return which share of each pixel the plate covers, (N, 64, 64)."""
    fx, fz, lx, ly, lz, ux, uy, uz = (
        axis[:, entry, None, None]
        for axis, entry in (
            (forward, 0), (forward, 2), (left, 0), (left, 1), (left, 2), (up, 0), (up, 1), (up, 2)
        )
    )  # fmt: skip
    # Where the pixel's ray meets the plate's plane, as a share of the way from the camera to the level plane.
    share = uz * HEIGHT_M / (uz * HEIGHT_M - ux * _X - uy * _Y)
    below = (1.0 - share) * HEIGHT_M
    x = np.abs(share * (fx * _X) + fz * below)
    y = np.abs(share * (lx * _X + ly * _Y) + lz * below)
    return _covered(half_side_m - np.maximum(x, y))


def _disc(centre: np.ndarray, radius: float) -> np.ndarray:
    """Return which share of each pixel a disc at centres (N, 3), m, covers that faces the camera."""
    nearer = (HEIGHT_M / (HEIGHT_M - centre[:, 2]))[:, None, None]
    x, y = nearer * centre[:, 0, None, None], nearer * centre[:, 1, None, None]
    return _covered(nearer * radius - np.sqrt(np.square(_X - x) + np.square(_Y - y)))


def _covered(inside_m: np.ndarray) -> np.ndarray:
    """Return the share of a pixel that is inside, from how far inside its centre is."""
    share: np.ndarray = np.clip(0.5 + inside_m / PIXEL_M, 0.0, 1.0)
    return share


def _paint(picture: np.ndarray, share: np.ndarray, colour: Colour) -> None:
    """Lay a colour over the picture (3, N, 64, 64) where a shape covers it."""
    for channel, value in zip(picture, colour, strict=True):
        channel += share * (np.float32(value) - channel)
