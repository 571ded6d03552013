# SPDX-License-Identifier: Apache-2.0
"""The contract of a simulated task's robot, the same as for the real robot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from adahi_lab.evaluation.plain_contract import plain_values, with_camera
from adahi_lab.tasks import make
from adahi_lab.tasks.task_interface import Task, has_camera
from adahi_ros.contract.parsing import SHIPPED
from adahi_ros.core.assets import shipped


def contract_values(task: Task) -> dict[str, Any]:
    """Return the content of a task's contract file.

    Args:
        task: simulated; with a camera, the contract uses the shipped encoder of the observed task.
    """
    spec = task.spec
    values = plain_values(
        spec.name,
        spec.control_rate_hz,
        spec.joint_names,
        len(spec.state_names),
        spec.goal_dim,
        spec.commanded,
        spec.command_field,
    )
    if not has_camera(task):
        return values
    rows, columns = task.images.shape[1:3]  # type: ignore[attr-defined]
    return with_camera(values, task.encoder_name, rows, columns, spec.images_for_target)  # type: ignore[attr-defined]


def contract_of_task(task: str, folder: Path) -> str:
    """Return the name of a task's shipped contract; else the path of one that is written to a folder."""
    made = make(task)
    name = made.spec.name
    if shipped(f"{SHIPPED}/{name}.yaml"):
        return name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.resolve() / f"{name}_contract.yaml"
    path.write_text(yaml.safe_dump(contract_values(made), sort_keys=False))
    return str(path)
