# SPDX-License-Identifier: Apache-2.0
"""LIBERO's scene, converted once on the user's machine: physics without what is only seen.

The assets have licences of their own, so the result stays in the user's cache.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import os
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from adahi_lab.tasks.libero.conditions import Condition
from adahi_lab.tasks.libero.scene_files import (
    FORMAT,
    LIBRARY,
    LIBRARY_VERSION,
    MODEL,
    NOTES,
    STARTS,
    SUITE,
    load_scene,
)
from adahi_lab.tasks.libero.world import STATE, Placed
from adahi_lab.tasks.offscreen import choose_renderer
from adahi_ros.core.written_files import save_json

choose_renderer()

import mujoco  # noqa: E402

INSTALL = "pip install -r requirements/libero.txt"
TASKS = 10
SEEN = ("material", "texture", "camera", "light")
PREDICATES = {"open": "open", "turnon": "turned_on", "turnoff": "turned_off"}
OWN_SENTENCES = ("libero_goal_lan", "libero_goal_task")  # their files' names have the former ones


def open_library(number: int, suite_name: str = SUITE) -> tuple[Any, Any]:
    """Return the library's environment of one of a suite's ten tasks, after a reset, and the suite.

    Raises:
        ValueError: the library is not installed, or is another version; the message has the command.
    """
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            from libero.libero import envs
        installed = importlib.metadata.version(LIBRARY)
    except ImportError as error:  # also another distribution's package of this name
        raise ValueError(f"{LIBRARY}: must be installed to convert its scene ({error}): {INSTALL}") from None
    if installed != LIBRARY_VERSION:
        raise ValueError(f"{LIBRARY}: {installed} is installed, must be {LIBRARY_VERSION}: {INSTALL}")
    options = {"use_camera_obs": False, "has_offscreen_renderer": False}
    return library_of(number, envs.env_wrapper.ControlEnv, suite_name, **options)


def library_of(number: int, kind: Any, suite_name: str = SUITE, **options: Any) -> tuple[Any, Any]:
    """Return the same in a class of the library's environments, made with options."""
    with contextlib.redirect_stdout(io.StringIO()):  # it prints as it loads
        from libero.libero import benchmark, get_libero_path

        suite = benchmark.get_benchmark(suite_name)()
        task = suite.tasks[number]
        file = os.path.join(get_libero_path("bddl_files"), task.problem_folder, task.bddl_file)
        environment = kind(bddl_file_name=file, **options)
        environment.reset()
    return environment, suite


def placed(library: Any, suite: str = SUITE) -> Placed:
    """Return the state of one of the library's environments as one of `LiberoWorld`."""
    model, data = library.sim.model._model, library.sim.data._data
    state = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    fixtures = [model.body(f"{name}_main").id for name in load_scene(suite=suite).fixtures]
    robot = library.robots[0]
    return Placed(
        state, model.body_pos[fixtures][:, :2], robot.controller.goal_ori, robot.gripper.current_action
    )


def convert(
    folder: Path, progress: Callable[[int], None] = lambda done: None, suite_name: str = SUITE
) -> dict[str, object]:
    """Write the scene of the ten tasks into a folder; return what was written.

    Args:
        folder: is made.
        progress: called after each task with how many are done.
        suite_name: one of `SUITES`. Only those of `SUITE` have regions in which things start.

    Raises:
        ValueError: the library is not installed, is another version, or its tasks have different scenes.
    """
    errands, starts, scenes = [], [], set()
    for number in range(TASKS):
        environment, suite = open_library(number, suite_name)
        task = suite.tasks[number]
        goal = [
            asdict(_condition(environment.env, state))
            for state in environment.env.parsed_problem["goal_state"]
        ]
        own = " ".join(environment.env.parsed_problem["language_instruction"])
        sentence = own if suite_name in OWN_SENTENCES else task.language
        stand = [_region(environment.env, name) for name in environment.env.fixtures_dict]
        errands.append({"name": task.name, "sentence": sentence, "goal": goal, "fixtures": stand})
        positions = suite.get_task_init_states(number)
        starts.append(positions[:, 1 : 1 + environment.sim.model.nq])
        scenes.add(environment.env.model.get_xml())
        progress(number + 1)
    if len(scenes) != 1:
        raise ValueError(
            f"{suite_name}: its tasks have {len(scenes)} scenes, must share one: {LIBRARY} {LIBRARY_VERSION}"
        )
    model, domain = without_visuals(scenes.pop()), environment.env
    for one in stand:
        body = model.body(f"{one['name']}_main")
        body.pos, body.quat = np.split(np.array(one["pose"]), [3])
    folder.mkdir(parents=True, exist_ok=True)
    mujoco.mj_saveModel(model, str(folder / MODEL))
    save_file({"starts": np.stack(starts)}, str(folder / STARTS))
    notes = {
        "format": FORMAT,
        "mujoco": mujoco.__version__,
        "library": f"{LIBRARY} {LIBRARY_VERSION}",
        "errands": errands,
        "things": [
            _region(domain, name) if suite_name == SUITE else _somewhere(name) for name in domain.objects_dict
        ],
        "fixtures": stand,
    }
    save_json(folder / NOTES, notes)
    return notes


def without_visuals(scene: str) -> mujoco.MjModel:
    """Return the model of a scene (XML) without images, and without shapes that touch nothing.

    Masses stay as they were: some shapes that are only seen have one.
    """
    root = ET.fromstring(scene)
    for parent in root.iter():
        for child in list(parent):
            if child.tag in SEEN:
                parent.remove(child)
            child.attrib.pop("material", None)
    spec = mujoco.MjSpec.from_string(ET.tostring(root, encoding="unicode"))
    full = spec.compile()
    for body in spec.bodies[1:]:
        at = full.body(body.name).id
        body.explicitinertial, body.fullinertia = True, [np.nan] * 6
        body.mass, body.inertia = full.body_mass[at], full.body_inertia[at]
        body.ipos, body.iquat = full.body_ipos[at], full.body_iquat[at]
    for geom in list(spec.geoms):
        if geom.contype == 0 and geom.conaffinity == 0:
            spec.delete(geom)
    used = {geom.meshname for geom in spec.geoms}
    for mesh in list(spec.meshes):
        if mesh.name not in used:
            spec.delete(mesh)
    return spec.compile()


def _condition(domain: Any, state: list[str]) -> Condition:
    """Return a goal of the library's as a condition.

    Raises:
        ValueError: its predicate is not known here.
    """
    predicate, first, *rest = state
    if predicate in PREDICATES:
        return Condition(PREDICATES[predicate], _joint(domain, first))
    thing, geoms = domain.get_object(first).root_body, domain.get_object(first).contact_geoms
    (second,) = rest
    if predicate == "on" and second not in domain.object_sites_dict:
        other = domain.get_object(second)
        return Condition("on", thing, other.root_body, geoms, other.contact_geoms)
    if predicate == "on":
        parent = domain.get_object(domain.object_sites_dict[second].parent_name)
        return Condition("on_place", thing, second, geoms, [] if parent is None else parent.contact_geoms)
    if predicate == "in":
        return Condition("in_place", thing, second)
    raise ValueError(f"goal: predicate {predicate!r}, must be one of on, in, {', '.join(PREDICATES)}")


def _joint(domain: Any, name: str) -> str:
    """Return the only joint of a drawer or a fixture."""
    (joint,) = (domain.object_sites_dict.get(name) or domain.get_object(name)).joints
    return str(joint)


def _somewhere(name: str) -> dict[str, object]:
    """Return a thing that starts in the benchmark's states only."""
    return {"name": name, "low": [0.0] * 2, "high": [0.0] * 2, "pose": [0.0] * 3 + [1.0] + [0.0] * 3}


def _region(domain: Any, name: str) -> dict[str, object]:
    """Return where a thing starts, by the library's sampler of it."""
    (sampler,) = (
        one for one in domain.placement_initializer.samplers.values() if one.mujoco_objects[0].name == name
    )
    ((place, quaternion, thing),) = sampler.sample().values()
    margin = thing.horizontal_radius if sampler.ensure_object_boundary_in_range else 0.0
    ends = [
        sorted((low + margin + offset, high - margin + offset))
        for ((low, high),), offset in zip(
            (sampler.x_ranges, sampler.y_ranges), sampler.reference_pos[:2], strict=True
        )
    ]
    return {
        "name": name,
        "low": [float(low) for low, _ in ends],
        "high": [float(high) for _, high in ends],
        "pose": [float(value) for value in (*place, *quaternion)],
    }
