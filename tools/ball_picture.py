# SPDX-License-Identifier: Apache-2.0
"""A picture of one plate for people: seen from behind it, x away from the viewer, y to the left."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_rgb
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.transforms import IdentityTransform

from adahi_lab.tasks.ball import BallBalancing, BallParameters

WIDTH, HEIGHT = 640, 480
DPI = 72  # one point is one pixel
EYE = np.array([-0.60, 0.0, 0.74])  # m, in the frame of the level plate
LOOK_AT = np.array([-0.01, 0.0, 0.0])
FOCAL_PX = 760.0
THICKNESS_M = 0.014
POST_HEIGHT_M = 0.035
FLOOR_M = -0.10
GRID_M = 0.05
TRAIL_STEPS = 40

BACKGROUND, FLOOR_SHADOW = "#eef1f5", "#c9d0da"
PLATE, PLATE_SIDE, GRID = "#fbfbfa", "#9aa5b5", "#d9dee6"
POST, POST_TOP = "#5d6b80", "#7f8da3"
BALL, BALL_LIGHT = "#c2410c", "#ffd9c2"
TRAIL, INK, FAINT = "#ea7a3a", "#273142", "#8a94a3"
GOAL, GOOD, BAD = "#2f9e6e", "#1f8a5b", "#c0262d"

Colour = tuple[float, float, float]


def draw(task: BallBalancing, trail: np.ndarray) -> np.ndarray:
    """Return the picture of the only episode of a task, (480, 640, 3) uint8.

    Args:
        task: as it is now.
        trail: (N, 2) m, where the ball was at each step; the last place is that of now.
    """
    canvas = _Canvas()
    turn = _rotation(task.joint_positions[0])
    _draw_plate(canvas, task.parameters, turn)
    _draw_goal(canvas, task, turn)
    _draw_trail(canvas, trail, turn)
    ball = trail[-1]
    shadow = _circle(ball, task.parameters.ball_radius_m * 1.05)
    canvas.polygon(_project(_on_plate(shadow) @ turn.T), INK, alpha=0.22)
    parts = [(0.0, _draw_post), (float(ball[0]), _draw_ball)]
    for _, part in sorted(parts, key=lambda entry: -entry[0]):
        part(canvas, task, turn)
    _draw_readings(canvas, task)
    return canvas.pixels()


class _Canvas:
    """Anti-aliased shapes in pixels, y up, without the cost of a figure and its artists."""

    def __init__(self) -> None:
        self._renderer = RendererAgg(WIDTH, HEIGHT, DPI)
        corners = np.array([[0, 0], [WIDTH, 0], [WIDTH, HEIGHT], [0, HEIGHT]])
        self.polygon(corners, BACKGROUND)

    def polygon(self, points: np.ndarray, face: str | Colour, alpha: float = 1.0) -> None:
        context = self._renderer.new_gc()
        context.set_linewidth(0.0)
        context.set_alpha(alpha)
        closed = Path(np.vstack([points, points[:1]]), closed=True)
        self._renderer.draw_path(context, closed, IdentityTransform(), to_rgb(face))

    def line(self, points: np.ndarray, colour: str, width: float, alpha: float = 1.0) -> None:
        context = self._renderer.new_gc()
        context.set_foreground(colour)
        context.set_linewidth(width)
        context.set_alpha(alpha)
        context.set_capstyle("round")
        context.set_joinstyle("round")
        self._renderer.draw_path(context, Path(points), IdentityTransform())

    def text(self, x: float, y: float, text: str, colour: str, size: float, bold: bool = False) -> None:
        context = self._renderer.new_gc()
        context.set_foreground(colour)
        self._renderer.draw_text(context, x, HEIGHT - y, text, _font(size, bold), 0.0)

    def pixels(self) -> np.ndarray:
        return np.asarray(self._renderer.buffer_rgba())[:, :, :3].copy()


@lru_cache(maxsize=8)
def _font(size: float, bold: bool) -> FontProperties:
    return FontProperties(family="DejaVu Sans", size=size, weight="bold" if bold else "normal")


def _rotation(tilt: np.ndarray) -> np.ndarray:
    """Plate to world, (3, 3): Ry(pitch) Rx(roll)."""
    roll, pitch = tilt
    about_x = np.array([[1, 0, 0], [0, np.cos(roll), -np.sin(roll)], [0, np.sin(roll), np.cos(roll)]])
    about_y = np.array([[np.cos(pitch), 0, np.sin(pitch)], [0, 1, 0], [-np.sin(pitch), 0, np.cos(pitch)]])
    return np.asarray(about_y @ about_x)


def _project(points: np.ndarray) -> np.ndarray:
    """World points (N, 3) in m to pixels (N, 2), y up, through a pinhole."""
    forward = (LOOK_AT - EYE) / np.linalg.norm(LOOK_AT - EYE)
    right = np.array([0.0, -1.0, 0.0])
    up = np.cross(right, forward)
    from_eye = points - EYE
    depth = from_eye @ forward
    centre = np.array([WIDTH / 2, HEIGHT / 2])
    return centre + FOCAL_PX * np.stack([from_eye @ right, from_eye @ up], axis=1) / depth[:, None]


def _on_plate(points: np.ndarray, height_m: float = 0.0) -> np.ndarray:
    return np.column_stack([points, np.full(len(points), height_m)])


def _circle(centre: np.ndarray, radius: float, share: float = 1.0) -> np.ndarray:
    """(N, 2) points, clockwise from the far side as a clock's hand seen from above."""
    angle = -np.linspace(0.0, 2 * np.pi * share, 49)
    return centre + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _draw_plate(canvas: _Canvas, world: BallParameters, turn: np.ndarray) -> None:
    half = world.half_side_m
    corners = half * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    below = (_on_plate(corners) @ turn.T) * [1.0, 1.0, 0.0] + [0.02, -0.03, FLOOR_M]
    for grow in np.linspace(1.10, 0.98, 9):  # layers of thin shadow make a soft edge
        canvas.polygon(_project(below * [grow, grow, 1.0]), FLOOR_SHADOW, alpha=0.16)
    canvas.polygon(_project(_on_plate(_circle(np.zeros(2), 0.05), FLOOR_M)), POST, alpha=0.5)
    top, bottom = _on_plate(corners) @ turn.T, _on_plate(corners, -THICKNESS_M) @ turn.T
    for i in range(4):
        j = (i + 1) % 4
        normal = np.cross(top[j] - top[i], bottom[i] - top[i])
        if -normal @ (EYE - top[i]) > 0:
            canvas.polygon(_project(np.array([top[i], top[j], bottom[j], bottom[i]])), PLATE_SIDE)
    canvas.polygon(_project(top), PLATE)
    for at in np.arange(GRID_M, half, GRID_M).tolist():
        for offset in (-at, at):
            for ends in ([[offset, -half], [offset, half]], [[-half, offset], [half, offset]]):
                canvas.line(_project(_on_plate(np.array(ends)) @ turn.T), GRID, 1.0, alpha=0.8)
    for ends in ([[0.0, -half], [0.0, half]], [[-half, 0.0], [half, 0.0]]):
        canvas.line(_project(_on_plate(np.array(ends)) @ turn.T), GRID, 1.8)
    canvas.line(_project(np.vstack([top, top[:1]])), PLATE_SIDE, 1.4)


def _draw_goal(canvas: _Canvas, task: BallBalancing, turn: np.ndarray) -> None:
    radius = task.parameters.goal_tolerance_m
    disk = _project(_on_plate(_circle(task.goal[0], radius)) @ turn.T)
    canvas.polygon(disk, GOAL, alpha=0.28 if task.held_steps[0] == 0 else 0.45)
    canvas.line(disk, GOAL, 1.6)
    canvas.polygon(_project(_on_plate(_circle(task.goal[0], 0.003)) @ turn.T), GOAL)
    share = min(1.0, task.held_steps[0] / task.parameters.hold_steps)
    if share > 0.0:
        ring = _circle(task.goal[0], radius + 0.008, share)
        canvas.line(_project(_on_plate(ring) @ turn.T), GOOD, 5.0)


def _draw_trail(canvas: _Canvas, trail: np.ndarray, turn: np.ndarray) -> None:
    points = _project(_on_plate(trail[-TRAIL_STEPS - 1 :]) @ turn.T)
    for i in range(len(points) - 1):
        age = (i + 1) / (len(points) - 1)
        canvas.line(points[i : i + 2], TRAIL, 1.0 + 3.0 * age, alpha=0.1 + 0.75 * age)


def _draw_post(canvas: _Canvas, task: BallBalancing, turn: np.ndarray) -> None:
    ring = _circle(np.zeros(2), task.parameters.post_radius_m)
    foot = _project(_on_plate(ring) @ turn.T)
    head = _project(_on_plate(ring, POST_HEIGHT_M) @ turn.T)
    last = len(ring) - 1
    for i in range(last):
        j = min(i + 2, last)  # strips overlap, so that no seam shows
        light = 0.80 + 0.35 * max(0.0, np.cos(2 * np.pi * i / last - 4.0))
        face = np.minimum(np.array(to_rgb(POST)) * light, 1.0)
        strip = np.array([foot[i], foot[j], head[j], head[i]])
        along, upward = foot[j] - foot[i], head[i] - foot[i]
        if along[0] * upward[1] - along[1] * upward[0] < 0.0:  # faces the viewer
            canvas.polygon(strip, (face[0], face[1], face[2]))
    canvas.polygon(head, POST_TOP)


def _draw_ball(canvas: _Canvas, task: BallBalancing, turn: np.ndarray) -> None:
    radius = task.parameters.ball_radius_m
    centre = _on_plate(task.state[:, :2], radius) @ turn.T
    pixel = _project(centre)[0]
    radius_px = FOCAL_PX * radius / np.linalg.norm(centre[0] - EYE)
    dark, light = np.array(to_rgb(BALL)) * 0.72, np.array(to_rgb(BALL_LIGHT))
    for share in np.linspace(0.0, 1.0, 14):
        face = dark + (light - dark) * share**1.6
        spot = pixel + radius_px * share * np.array([-0.28, 0.34])
        canvas.polygon(
            _circle(spot, radius_px * (1.0 - 0.93 * share)), (float(face[0]), float(face[1]), float(face[2]))
        )


def _draw_readings(canvas: _Canvas, task: BallBalancing) -> None:
    world = task.parameters
    seconds = task.steps[0] / world.control_rate_hz
    canvas.text(18, 450, "ball balancing", INK, 15, bold=True)
    canvas.text(18, 431, f"step {task.steps[0]} of {world.max_steps}   {seconds:.2f} s", FAINT, 11.5)
    if task.success[0]:
        status, colour = "goal held: success", GOOD
    elif task.failed[0]:
        status, colour = "left the plate: failed", BAD
    elif task.steps[0] >= world.max_steps:
        status, colour = "out of steps: failed", BAD
    else:
        status, colour = f"held {task.held_steps[0]} of {world.hold_steps} steps", FAINT
    canvas.text(18, 414, status, colour, 11.5, bold=colour != FAINT)
    _draw_level(canvas, task)


def _draw_level(canvas: _Canvas, task: BallBalancing) -> None:
    """A bubble level: the plate's tilt (dot) and its commanded tilt (ring)."""
    centre, reach = np.array([WIDTH - 58.0, HEIGHT - 58.0]), 34.0
    canvas.polygon(_circle(centre, reach + 6.0), "#ffffff")
    canvas.line(_circle(centre, reach + 6.0), PLATE_SIDE, 1.2)
    for axis in (np.array([reach, 0.0]), np.array([0.0, reach])):
        canvas.line(np.array([centre - axis, centre + axis]), GRID, 1.0)
    places = []
    for roll, pitch in (task.command[0], task.joint_positions[0]):
        # Downhill on the screen: pitch lowers the far edge, roll the right one.
        lean = np.array([roll, pitch]) / task.parameters.max_tilt_rad
        places.append(centre + reach * lean / max(1.0, float(np.linalg.norm(lean))))
    canvas.line(_circle(places[0], 6.0), TRAIL, 1.6)
    canvas.polygon(_circle(places[1], 4.2), INK)
    roll_deg, pitch_deg = np.degrees(task.joint_positions[0])
    canvas.text(centre[0] - 41, centre[1] - 58, f"roll {roll_deg:+5.1f}°", FAINT, 10)
    canvas.text(centre[0] - 41, centre[1] - 72, f"pitch {pitch_deg:+4.1f}°", FAINT, 10)
