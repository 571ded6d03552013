# SPDX-License-Identifier: Apache-2.0
"""A picture of one swarm for people: the arena seen from above, x (east) to the right, y (north) up."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from adahi_lab.tasks.swarm import Swarm

WIDTH, HEIGHT = 640, 480
DPI = 72  # one point is one pixel
MARGIN_M = 0.12  # around the arena
GRID_M = 0.5
TRAIL_STEPS = 40
ROTOR_TURN_DEG = 45.0

BACKGROUND, FLOOR, WALL, GRID = "#eef1f5", "#fbfbfa", "#9aa5b5", "#e3e7ed"
INK, FAINT, GOOD, BAD = "#273142", "#8a94a3", "#1f8a5b", "#c0262d"
# Okabe and Ito (2008), distinguishable by colour-blind people; its yellow is too light for this floor.
DRONES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")


def draw(task: Swarm, index: int) -> np.ndarray:
    """Return the picture of an episode, (480, 640, 3) uint8."""
    figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor=BACKGROUND)
    canvas = FigureCanvasAgg(figure)
    reach = task.parameters.half_side_m + MARGIN_M
    axes = figure.add_axes((1.0 - HEIGHT / WIDTH, 0.0, HEIGHT / WIDTH, 1.0))
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
    axes.set_axis_off()
    _draw_arena(axes, task.parameters.half_side_m)
    for drone in range(task.parameters.drones):
        _draw_target(axes, task, index, drone)
    for drone in range(task.parameters.drones):
        _draw_trail(axes, task.trail(index)[-TRAIL_STEPS - 1 :, drone], DRONES[drone])
    for drone in range(task.parameters.drones):
        _draw_drone(axes, task, index, drone)
    _draw_readings(figure, task, index)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def _draw_arena(axes: Axes, half: float) -> None:
    axes.add_patch(
        Rectangle((-half, -half), 2 * half, 2 * half, facecolor=FLOOR, edgecolor=WALL, linewidth=1.6)
    )
    lines = np.arange(GRID_M - half, half - GRID_M / 2, GRID_M)
    axes.vlines(lines, -half, half, GRID, linewidth=1.0, zorder=1)
    axes.hlines(lines, -half, half, GRID, linewidth=1.0, zorder=1)


def _draw_target(axes: Axes, task: Swarm, index: int, drone: int) -> None:
    colour, centre = DRONES[drone], task.targets[index][drone]
    radius = task.parameters.target_tolerance_m
    reached = task.fulfilled[index][drone]
    axes.add_patch(
        Circle(centre, radius, facecolor=colour, alpha=0.38 if reached else 0.16, linewidth=0.0, zorder=2)
    )
    style = "-" if reached else (0, (3, 2))
    axes.add_patch(
        Circle(centre, radius, fill=False, edgecolor=colour, linewidth=2.6, linestyle=style, zorder=2)
    )
    axes.text(
        centre[0],
        centre[1],
        str(drone + 1),
        color=colour,
        size=12,
        weight="bold",
        ha="center",
        va="center_baseline",
    )


def _draw_trail(axes: Axes, trail: np.ndarray, colour: str) -> None:
    if len(trail) < 2:
        return
    age = np.linspace(0.0, 1.0, len(trail))[1:]
    shades = to_rgba_array([colour] * len(age))
    shades[:, 3] = 0.05 + 0.75 * age
    pieces = np.stack([trail[:-1], trail[1:]], axis=1)
    axes.add_collection(LineCollection(list(pieces), colors=shades, linewidths=1.0 + 3.0 * age))


def _draw_drone(axes: Axes, task: Swarm, index: int, drone: int) -> None:
    """Four rotors within the radius at which drones touch, and a body with the drone's number."""
    centre, radius, colour = task.trail(index)[-1, drone], task.parameters.drone_radius_m, DRONES[drone]
    angle = np.radians(ROTOR_TURN_DEG + 90.0 * np.arange(4))
    hubs = centre + 0.66 * radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for hub in hubs:
        axes.add_patch(
            Circle(hub, 0.34 * radius, facecolor="white", edgecolor=colour, linewidth=2.2, zorder=4)
        )
    axes.add_patch(
        Circle(centre, 0.48 * radius, facecolor=colour, edgecolor="white", linewidth=0.8, zorder=5)
    )
    axes.text(
        centre[0],
        centre[1],
        str(drone + 1),
        color="white",
        size=8,
        weight="bold",
        ha="center",
        va="center_baseline",
        zorder=6,
    )
    if task.collided[index][drone] or task.left[index][drone]:
        axes.add_patch(Circle(centre, 1.5 * radius, fill=False, edgecolor=BAD, linewidth=3.0, zorder=7))


def _draw_readings(figure: Figure, task: Swarm, index: int) -> None:
    world = task.parameters

    def line(y: float, text: str, colour: str, size: float, bold: bool = False) -> None:
        weight = "bold" if bold else "normal"
        figure.text(18 / WIDTH, y / HEIGHT, text, color=colour, size=size, weight=weight)

    line(450, "swarm control", INK, 15, bold=True)
    line(428, f"step {task.steps[index]} of {world.max_steps}", FAINT, 11.5)
    line(411, f"{task.steps[index] / world.control_rate_hz:.2f} s", FAINT, 11.5)
    if task.success[index]:
        status, colour = "all there: success", GOOD
    elif task.collided[index].any():
        status, colour = "collision: failed", BAD
    elif task.left[index].any():
        status, colour = "left the arena: failed", BAD
    elif task.steps[index] >= world.max_steps:
        status, colour = "out of steps: failed", BAD
    else:
        status, colour = f"{task.fulfilled[index].sum()} of {world.drones} on target", FAINT
    line(394, status, colour, 11.5, bold=colour != FAINT)
    away_m = np.linalg.norm(task.trail(index)[-1] - task.targets[index], axis=1)
    for drone in range(world.drones):
        y = 362 - 19 * drone
        line(y, f"{drone + 1}", DRONES[drone], 12.5, bold=True)
        note = "on target" if task.fulfilled[index][drone] else f"{away_m[drone]:.2f} m to go"
        line(y, f"    {note}", GOOD if task.fulfilled[index][drone] else FAINT, 11.5)
