# SPDX-License-Identifier: Apache-2.0
"""`adahi lab contract`: the contract of a simulated robot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from adahi_lab.cli.output import write_yaml
from adahi_lab.cli.task_options import known_task
from adahi_ros.cli.options import Overwrite, replaceable
from adahi_ros.cli.terminal import say


def write(
    task: Annotated[str, Argument(help="A task of the simulator, or a YAML file of another task.")],
    out: Annotated[
        Path | None, Option(help="File to write. Default: config/contracts/TASK.yaml here.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the contract of a simulated robot."""
    from adahi_lab.evaluation.task_contract import contract_values
    from adahi_lab.tasks import make
    from adahi_ros.contract.parsing import parse_contract

    values = contract_values(make(known_task(task)))
    parse_contract(values)
    path = out if out is not None else Path("config/contracts") / f"{values['robot_type']}.yaml"
    replaceable("--out", path, overwrite)
    write_yaml(path, values, width=100)
    say(f"contract: {path}")
