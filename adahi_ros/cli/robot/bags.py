# SPDX-License-Identifier: Apache-2.0
"""`adahi record`, `adahi bag` and `adahi dataset`: a robot's bags as data."""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from adahi_ros.cli.options import ContractName, Namespace, finite
from adahi_ros.cli.terminal import console, say

RECORDER = "adahi_ros.nodes.monitoring.bag_recorder_node"

bag_app = typer.Typer(help="A robot's bags.", no_args_is_help=True)


@bag_app.callback()
def _bags() -> None:
    """Have Typer keep the verb's name though there is but one."""


def record(
    contract: ContractName,
    out: Annotated[Path, typer.Option(help="The bag to make: a folder that is not there yet.")],
    duration_s: Annotated[
        float,
        typer.Option("--duration", min=0.0, callback=finite, help="How long, s. Default: until Ctrl-C."),
    ] = 0.0,
    namespace: Namespace = "",
    storage: Annotated[str, typer.Option(help="Format of the bag: mcap or sqlite3.")] = "mcap",
    sim_time: Annotated[bool, typer.Option("--use-sim-time", help="Note the time of /clock.")] = False,
) -> None:
    """Record a robot's observations and actions, and what the draft policy says, into a rosbag2."""
    from adahi_ros.bags.bag_writer import STORAGES
    from adahi_ros.bags.definitions import BagError
    from adahi_ros.contract.parsing import load_contract

    if find_spec("rclpy") is None:
        raise ModuleNotFoundError("No module named 'rclpy'", name="rclpy")
    load_contract(contract)
    if storage not in STORAGES:
        raise ValueError(f"storage: {storage!r}, must be one of {', '.join(STORAGES)}")
    if out.exists():
        raise BagError(f"{out}: is there already, expected the name of a new bag")
    parameters = {
        "contract": contract,
        "out": str(out),
        "storage": storage,
        "duration_s": duration_s,
        "use_sim_time": sim_time,
    }
    arguments = [
        part for name, value in parameters.items() for part in ("-p", f"{name}:={json.dumps(value)}")
    ]
    if namespace.strip("/"):
        arguments += ["-r", f"__ns:=/{namespace.strip('/')}"]
    sys.stdout.flush()
    # The node takes this process over: signals, exit status and output are its own.
    os.execv(sys.executable, [sys.executable, "-m", RECORDER, "--ros-args", *arguments])


@bag_app.command("recover")
def recover_bag(
    bag: Annotated[Path, typer.Argument(help="Bag: a folder, or a single .mcap or .db3 file.")],
    out: Annotated[Path, typer.Option(help="The bag to make: a folder that is not there yet.")],
) -> None:
    """Make a whole bag of what can be read of one whose recorder was killed."""
    from adahi_ros.bags.recovery import recover

    with console.status("reading"):
        found = recover(bag, out)
    for fault in found.faults:
        say(f"{bag}: the rest is lost: {fault}")
    say(f"{out}: {sum(found.counts.values())} messages of {len(found.counts)} topics")
