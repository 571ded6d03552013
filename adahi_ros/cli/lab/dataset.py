# SPDX-License-Identifier: Apache-2.0
"""The verb that makes training data of bags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adahi_ros.cli.options import Bags, ContractName, Incomplete, KeepFailures, Namespace, tried
from adahi_ros.cli.terminal import command_line, console, say

dataset_app = typer.Typer(help="Training data from a robot's bags.", no_args_is_help=True)


@dataset_app.command("from-bag")
def from_bag(
    bags: Bags,
    contract: ContractName,
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    namespace: Namespace = "",
    keep_failures: KeepFailures = False,
    incomplete: Incomplete = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the dataset that is in --out already.")
    ] = False,
) -> None:
    """Make observations and actions of bags as the robot's node does, for 'adahi train --data'."""
    from adahi_ros.bags.bag_dataset import PICTURE, TRAJECTORIES, read_dataset
    from adahi_ros.contract.parsing import load_contract
    from adahi_ros.lab.reporting.bag_tables import dataset_table
    from adahi_ros.lab.reporting.dataset_figure import draw_dataset

    read = load_contract(contract)
    if (out / TRAJECTORIES).exists() and not overwrite:
        raise ValueError(f"--out: {out}, has a dataset already; must be another folder, or give --overwrite")
    tried("--out", out / TRAJECTORIES)
    with console.status("reading") as status:
        dataset = read_dataset(
            bags,
            read,
            namespace,
            keep_failures,
            lambda path: status.update(f"reading {path}"),
            say if incomplete else None,
        )
    dataset.save(out, contract, command_line())
    draw_dataset(dataset, out / PICTURE)
    console.print(dataset_table(dataset))
    for fault in dataset.summary["faults"].values():
        say(f"passed over {fault['count']} times, such as: {fault['first']}")
    for bag in dataset.summary["bags"]:
        if not bag["steps"]:
            check = f"adahi contract check {contract} --bag {bag['path']}"
            say(f"{bag['path']}: not one step of it; '{check}' tells more")
    data, picture = dataset.trajectories, out / PICTURE
    say(f"{out}: {len(data)} episodes, {len(data.observations)} steps of {data.task}; picture: {picture}")
