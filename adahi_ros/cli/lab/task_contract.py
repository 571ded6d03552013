# SPDX-License-Identifier: Apache-2.0
"""The verb that writes the contract of a simulated robot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from adahi_ros.cli import options
from adahi_ros.cli.lab.task_options import known_task
from adahi_ros.cli.terminal import say, write_yaml


def write(
    task: Annotated[str, Argument(help="Task of the simulator, or a YAML file of another.")],
    out: Annotated[Path | None, Option(help="File to write. Default: config/contracts/TASK.yaml.")] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write the contract of a simulated robot, to start from for a real one."""
    from adahi_ros.contract.parsing import parse_contract
    from adahi_ros.lab.evaluation.task_contract import contract_values
    from adahi_ros.lab.tasks import make

    values = contract_values(make(known_task(task)))
    parse_contract(values)
    path = out if out is not None else Path("config/contracts") / f"{values['robot_type']}.yaml"
    options.replaceable("--out", path, overwrite)
    write_yaml(path, values, width=100)
    say(f"contract: {path}")
