"""`adahi contract`: what a robot's observation and action are made of, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adahi_ros.cli.options import known_task
from adahi_ros.cli.terminal import command_line, say


def contract(
    task: Annotated[str, typer.Argument(help="Task of the simulator, or a YAML file of another.")],
    out: Annotated[
        Path | None, typer.Option(help="File to write. Default: config/contracts/TASK.yaml.")
    ] = None,
) -> None:
    """Write the contract of a simulated robot; to start from, for one in the flesh."""
    import yaml

    from adahi_ros.contract.parsing import parse_contract
    from adahi_ros.evaluation.task_contract import contract_values
    from adahi_ros.tasks import make

    values = contract_values(make(known_task(task)))
    parse_contract(values)
    path = out if out is not None else Path("config/contracts") / f"{values['robot_type']}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(values, sort_keys=False, default_flow_style=None, width=100)
    path.write_text(f"# Written by: {command_line()}\n{text}")
    say(f"contract: {path}")
