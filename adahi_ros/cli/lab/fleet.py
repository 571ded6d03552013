# SPDX-License-Identifier: Apache-2.0
"""`adahi bench fleet`: a verifier under the load of many robots."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from adahi_ros.cli import options
from adahi_ros.cli.terminal import command_line, console, say, write_json


def fleet(
    robots: Annotated[int, Option(min=1, max=10_000, help="How many, all in one process.")] = 64,
    rate_hz: Annotated[float, options.number("Of their control, Hz.", 0.1, 1000.0, name="--rate")] = 20.0,
    seconds: Annotated[float, options.number("How long.", 1.0)] = 20.0,
    engine: Annotated[
        str, Option(help="Separated by commas: batched, one_by_one, ray, openpi.")
    ] = "one_by_one,batched",
    target: Annotated[
        str, Option(help="DIRECTORY/NAME of a checkpoint, or a YAML file of a policy elsewhere.")
    ] = "kitchen/plans/target",
    every: Annotated[
        int,
        Option(
            min=0, help="Control steps by a plan before the next is asked for. Default: half of the plan."
        ),
    ] = 0,
    flood: Annotated[
        float, options.number("Requests per second of one more robot, which floods.", 0.0, 1e5)
    ] = 0.0,
    replicas: Annotated[
        int, Option(min=1, max=64, help="Of the target, with the engine ray, on this machine.")
    ] = 1,
    batch: Annotated[int, Option(min=1, max=1024, help="Requests that are verified at once.")] = 16,
    added_compute_s: Annotated[
        float,
        options.number(
            "Seconds that every batch takes longer, as on a GPU: no core is busy then.",
            0.0,
            60.0,
            name="--added-compute",
        ),
    ] = 0.0,
    kill: Annotated[
        str, Option(help="With the engine ray: replica, head or front, which is killed amid the load.")
    ] = "",
    at_s: Annotated[float, options.number("Seconds from the start to that.", 0.0, name="--at")] = 5.0,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Ask a verifier as a fleet does, ahead of need and with a burst at the start; who gets plans in time."""
    from adahi_ros.lab.bench.fleet_bench import ENGINES, OPENPI, Serving, measure_fleet
    from adahi_ros.lab.bench.fleet_faults import PARTS
    from adahi_ros.lab.peers.environments import EnvironmentMissingError
    from adahi_ros.lab.reporting.load_tables import fleet_table

    names, known = engine.split(","), (*ENGINES, OPENPI)
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"{name!r}, must be of {', '.join(known)}", param_hint="--engine")
    if OPENPI in names and flood:
        raise typer.BadParameter("there is no flood of openpi's server", param_hint="--flood")
    if kill and (kill not in PARTS or names != ["ray"]):
        allowed = f"must be of {', '.join(PARTS)}, and --engine ray"
        raise typer.BadParameter(f"{kill!r}, {allowed}", param_hint="--kill")
    serving = Serving(target, replicas, added_compute_s, batch, kill, at_s)
    try:
        found = measure_fleet(serving, names, robots, rate_hz, seconds, every, flood, seed, say)
    except EnvironmentMissingError as error:
        raise typer.BadParameter(str(error), param_hint="--engine") from None
    title = f"{target}: {robots} robots at {rate_hz:g} Hz, {seconds:g} s"
    console.print(fleet_table(found, title + (f", one floods at {flood:g} Hz" if flood else "")))
    for fault in (each["kill"] for each in found.values() if "kill" in each):
        say(", ".join(f"{name} {_told(value)}" for name, value in fault.items()))
    write_json(json_file, {"command": command_line(), "engines": found})


def _told(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
