# SPDX-License-Identifier: Apache-2.0
"""The verb that writes the contract of a simulated robot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adahi_ros.cli.lab.task_options import known_task
from adahi_ros.cli.options import Overwrite, replaceable
from adahi_ros.cli.terminal import command_line, say
from adahi_ros.core.files import replacing


def write(
    task: Annotated[str, typer.Argument(help="Task of the simulator, or a YAML file of another.")],
    out: Annotated[
        Path | None, typer.Option(help="File to write. Default: config/contracts/TASK.yaml.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the contract of a simulated robot; to start from, for one in the flesh."""
    import yaml

    from adahi_ros.contract.parsing import parse_contract
    from adahi_ros.lab.evaluation.task_contract import contract_values
    from adahi_ros.lab.tasks import make

    values = contract_values(make(known_task(task)))
    parse_contract(values)
    path = out if out is not None else Path("config/contracts") / f"{values['robot_type']}.yaml"
    replaceable("--out", path, overwrite)
    text = yaml.safe_dump(values, sort_keys=False, default_flow_style=None, width=100)
    with replacing(path) as partial:
        partial.write_text(f"# Written by: {command_line()}\n{text}")
    say(f"contract: {path}")
