# SPDX-License-Identifier: Apache-2.0
"""ROS parameter files of robot and verifier for a method, for launch files: shipped, or made at launch."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import yaml

from adahi_lab.nodes.task_encoders import encoder_parameters
from adahi_ros.core.assets import asset, shipped
from adahi_ros.core.schema import shown

SHIPPED = {"adahi": ("{task}", "verifier"), "best": ("best/{task}", "best/{task}")}
"""Files below config/, robot's and verifier's, of methods that have some."""
_WRITTEN: list[tempfile.TemporaryDirectory[str]] = []  # removed when this process, a launch, ends


def parameter_files(method: str, task: str) -> tuple[Path, Path]:
    """Return the parameter files of the draft policy node and of the target verifier node.

    Those of other methods than `SHIPPED` are written to a new folder, which is removed when this process
    ends. They have no deadline: the nodes' own counts.

    Args:
        method: one that a robot can run, as in `adahi evaluate --methods`, with its own policies.
        task: its registry name.

    Raises:
        ValueError: no robot can run the method, or not on this task; or nothing is shipped for the task.
    """
    try:
        if method in SHIPPED:
            robot, verifier = (name.format(task=task) for name in SHIPPED[method])
            return asset(f"config/{robot}.yaml"), asset(f"config/{verifier}.yaml")
        return _made(method, task)
    except FileNotFoundError as error:
        raise ValueError(f"task: {shown(task)}, nothing is shipped for it: {error}") from None


def verifier_defaults(task: str) -> Path:
    """Return a parameter file of the task's target and encoder, for what a verifier's own file leaves out."""
    defaults = {"checkpoint": f"{task}/target", **encoder_parameters(task)}
    return _written("verifier_defaults", {"/**": {"ros__parameters": defaults}})


def _written(name: str, document: Mapping[str, object]) -> Path:
    """Write a parameter file to a new folder, which is removed when this process ends."""
    _WRITTEN.append(tempfile.TemporaryDirectory(prefix="adahi-method-"))
    path = Path(_WRITTEN[-1].name, f"{name}.yaml")
    path.write_text(yaml.safe_dump(document))
    return path


def _made(method: str, task: str) -> tuple[Path, Path]:
    # Imported here: a shipped file needs none of them.
    from adahi_lab.calibration.parameter_file import load_calibration
    from adahi_lab.evaluation.loaded_policies import Bench, PolicyFiles, uncalibrated
    from adahi_lab.methods.dds_method import node_parameters
    from adahi_lab.methods.methods import for_task, on_task, parse_methods
    from adahi_lab.nodes.dds_run import observed

    files = PolicyFiles.of_task(task)
    names = parse_methods(for_task(method, task, files.folder), on_air=True)
    if len(names) != 1:
        raise ValueError(f"method: {method!r}, must be one method")
    made = on_task(names[0], task)
    files = files.of_method(task, made.checkpoints, made.backend)
    if not files.folder.is_dir():
        raise FileNotFoundError(f"{files.folder}: not found")
    file = f"config/{task}.yaml"
    calibration = load_calibration(asset(file)) if shipped(file) else uncalibrated(task, files.load())
    made.threshold(Bench(task, files.load(), calibration))  # raises errors before a node starts
    draft, target = node_parameters(names[0], task, files, calibration, 1.0)
    del draft["deadline_s"]
    robot, verifier = ({**observed(task), **draft}, {**encoder_parameters(task), **target})
    robot_file, verifier_file = (
        _written(name, {"/**": {"ros__parameters": parameters}})
        for name, parameters in (("robot", robot), ("verifier", verifier))
    )
    return robot_file, verifier_file
