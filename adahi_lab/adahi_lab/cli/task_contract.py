# SPDX-License-Identifier: Apache-2.0
"""`adahi contract write`: a contract to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from adahi_ros.cli import options
from adahi_ros.cli.lab.task_options import known_task
from adahi_ros.cli.terminal import command_line, say, write_yaml
from adahi_ros.core.assets import asset
from adahi_ros.core.texts import nearest
from adahi_ros.core.written_files import replacing

ARMS = ("franka_panda", "panda_kitchen", "so101", "ur5e")
"""Robots with a shipped contract that no task writes."""


def write(
    robot: Annotated[
        str,
        Argument(help="An arm, such as so101, a task of the simulator, or a YAML file of another task."),
    ],
    out: Annotated[
        Path | None,
        Option(help="File to write. Default: ARM.yaml here, for a task config/contracts/TASK.yaml."),
    ] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write the contract of an arm or of a simulated robot, to start from."""
    from adahi_ros.contract.parsing import SHIPPED, parse_contract
    from adahi_ros.lab.evaluation.task_contract import contract_values
    from adahi_ros.lab.tasks import make

    if robot in ARMS:
        path = options.replaceable("--out", out if out is not None else Path(f"{robot}.yaml"), overwrite)
        if path.exists() and not overwrite:  # somebody may have changed it
            raise ValueError(f"--out: {path}, exists; must be another file, or give --overwrite")
        shipped = asset(f"{SHIPPED}/{robot}.yaml").read_text()  # with the comments, which say what to change
        with replacing(path) as partial:
            partial.write_text(f"# Written by: {command_line()}\n{shipped}")
        say(f"contract: {path}")
        return
    try:
        task = known_task(robot)
    except ValueError as error:
        raise ValueError(f"{error}; or an arm: {', '.join(ARMS)}{nearest(robot, ARMS)}") from None
    values = contract_values(make(task))
    parse_contract(values)
    path = out if out is not None else Path("config/contracts") / f"{values['robot_type']}.yaml"
    options.replaceable("--out", path, overwrite)
    write_yaml(path, values, width=100)
    say(f"contract: {path}")
