# SPDX-License-Identifier: Apache-2.0
"""`adahi lab bench`: what hybrid inference costs, most of it across an emulated wireless link."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from adahi_lab.bench.fleet_load import FleetLoad
from adahi_lab.cli import options
from adahi_lab.cli.output import episode_bars, job_bar, write_json
from adahi_lab.cli.task_options import TaskName, Workers, file_name, folder_of
from adahi_ros.cli.fields import with_fields
from adahi_ros.cli.options import number
from adahi_ros.cli.terminal import command_line, console, say


def latency(
    profile: options.ProfileName = "wifi_ac",
    task: Annotated[str, Option(help="Task with shipped policies.")] = "ball",
    episodes: Annotated[int, Option(min=1, help="Per method, the same ones for each.")] = 20,
    methods: Annotated[
        str,
        Option(
            "--methods", help="Separated by commas. If one never waits, such as best, all run in real time."
        ),
    ] = "adahi,hybrid,draft,target,random",
    picture: Annotated[Path, Option(help="Picture to write.")] = Path("results/bench-latency.png"),
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Measure latency, throughput and bytes of every method across an emulated link."""
    from adahi_lab.bench.loop_latency import measure_latency
    from adahi_lab.methods.methods import parse_methods
    from adahi_lab.reporting.wireless import draw_latency, latency_table

    options.picture_file("--picture", picture)
    names = parse_methods(methods, on_air=True)
    with episode_bars(names, episodes) as advance:
        found = measure_latency(profile, task, episodes, names, seed=seed, say=say, on_run=advance)
    console.print(latency_table(found.figures))
    write_json(json_file, {"command": command_line(), **found.figures})
    draw_latency(found.figures, found.runs, picture)
    say(f"picture: {picture}")


def peers(
    profile: options.ProfileName = "wifi_ac",
    task: Annotated[str, Option(help="Task that the observations are from.")] = "kitchen",
    calls: Annotated[int, Option(min=30, help="Calls per system and round; few give noisy figures.")] = 300,
    picture: Annotated[Path, Option(help="Picture to write.")] = Path("results/bench-peers.png"),
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Compare our client with those of openpi, LeRobot and Flask: one model, the same drafts.

    With 200 calls all of them take eight minutes. The first run installs each system's packages
    in its own folder below ~/.cache/adahi_ros. A system that cannot be installed is skipped, with the reason.
    """
    from adahi_lab.bench.growth import PARAMETERS, grown_policies
    from adahi_lab.bench.peer_comparison import compare_peers
    from adahi_lab.link.link_profile import profile_named
    from adahi_lab.reporting.wireless import draw_peers, peers_table
    from adahi_ros.core.assets import asset

    options.picture_file("--picture", picture)
    target = grown_policies(asset(f"checkpoints/{task}"), PARAMETERS) / "target"
    skipped: dict[str, str] = {}

    def skip(name: str, why: str) -> None:
        skipped[name] = why
        say(f"skipped: {why}")

    found = compare_peers(profile_named(profile), task, target, calls, seed, say, skip)
    figures: dict[str, object] = {"command": command_line(), "profile": profile, "task": task, "calls": calls}
    figures["seed"] = seed
    figures |= {"target_parameters": PARAMETERS, "skipped": skipped, **found}
    console.print(peers_table(figures))
    write_json(json_file, figures)
    draw_peers(figures, picture)
    say(f"picture: {picture}")


def dds(
    quick: Annotated[bool, Option("--quick", help="Requests of 1 kB only.")] = False,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Measure service calls with DDS's defaults and with config/dds, across lossy links."""
    from adahi_lab.bench.dds_settings import SIZES, compare_dds
    from adahi_lab.reporting.wireless import dds_table

    sizes = {name: SIZES[name] for name in list(SIZES)[:1]} if quick else SIZES
    figures = {"command": command_line(), "seed": seed}
    figures |= {"profiles": compare_dds(sizes, seed, say)}
    console.print(dds_table(figures))
    write_json(json_file, figures)


def cameras(
    workers: Workers,
    task: Annotated[str, Option(help="Task with a camera.")] = "ball_camera",
    episodes: Annotated[int, Option(min=1, help="Per method and view, the same for each.")] = 100,
    methods: Annotated[str, Option("--methods", help="Separated by commas.")] = "hybrid,adahi",
    picture: Annotated[Path, Option("--figure", help="Picture to write.")] = Path(
        "results/bench-cameras.png"
    ),
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Compare what the target may see of cameras: features, JPEGs, raw frames, nothing.

    In process, with the real messages, but without DDS and without a link.
    """
    from adahi_lab.bench.cameras import VISION_SETTINGS, measure_cameras
    from adahi_lab.methods.methods import parse_methods
    from adahi_lab.reporting.cameras_table import cameras_table, draw_cameras

    options.picture_file("--figure", picture)
    names = parse_methods(methods, on_air=True)
    with episode_bars(list(VISION_SETTINGS), episodes * len(names)) as advance:
        figures = measure_cameras(task, episodes, names, seed, workers, advance)
    console.print(cameras_table(figures))
    write_json(json_file, {"command": command_line(), **figures})
    draw_cameras(figures, picture)
    say(f"picture: {picture}")


def soak(
    minutes: Annotated[float, number("How long.", 0.1)] = 30.0,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Run robot, policy and verifier for long across a bad link; fails if a step is lost."""
    from adahi_lab.bench.soak import soak as run_soak
    from adahi_lab.reporting.load_tables import soak_table

    with job_bar("soak", 1.0) as update:
        found = run_soak(
            minutes, seed=seed, on_progress=lambda share, what: update(completed=share, note=what)
        )
    console.print(soak_table(found.values()))
    write_json(json_file, {"command": command_line(), **found.values()})
    for fault in found.faults:
        say(f"failed: {fault}")
    if not found.passed:
        raise typer.Exit(1)


def compute(
    task: TaskName,
    repetitions: Annotated[int, Option(min=100, help="Runs of each policy, in turns.")] = 3000,
    checkpoints: options.Checkpoints = None,
    backend: options.Backend = "onnxruntime",
    json_file: options.JsonFile = None,
) -> None:
    """Measure a step of draft, corrector, intents and targets: weights, and time on this machine."""
    from adahi_lab.evaluation.loaded_policies import PolicyFiles
    from adahi_lab.evaluation.step_costs import step_costs
    from adahi_lab.reporting.tables import step_cost_table

    policies = PolicyFiles(folder_of(task, checkpoints), backend).load()
    with console.status("measuring"):
        costs = step_costs(policies, repetitions)
    console.print(step_cost_table(costs, f"{file_name(task)}, one robot, {repetitions} steps"))
    found = {name: asdict(cost) for name, cost in costs.items()}
    write_json(json_file, {"command": command_line(), "task": file_name(task), "steps": found})


@with_fields
def fleet(load: FleetLoad, json_file: options.JsonFile = None) -> None:
    """Send requests as a fleet does, and count the robots that get plans in time."""
    from adahi_lab.bench.fleet_bench import ENGINES, OPENPI, PARTS, measure_fleet
    from adahi_lab.peers.environments import EnvironmentMissingError
    from adahi_lab.reporting.load_tables import fleet_table

    known = (*ENGINES, OPENPI)
    for name in load.engines:
        if name not in known:
            raise typer.BadParameter(f"{name!r}, must be of {', '.join(known)}", param_hint="--engine")
    if load.kill and (load.kill not in PARTS or load.engines != ["ray"]):
        allowed = f"must be of {', '.join(PARTS)}, and --engine ray"
        raise typer.BadParameter(f"{load.kill!r}, {allowed}", param_hint="--kill")
    try:
        found = measure_fleet(load, say)
    except EnvironmentMissingError as error:
        raise typer.BadParameter(str(error), param_hint="--engine") from None
    title = f"{load.target}: {load.robots} robots at {load.rate_hz:g} Hz, {load.seconds:g} s"
    console.print(fleet_table(found, title))
    for fault in (each["kill"] for each in found.values() if "kill" in each):
        say(", ".join(f"{name} {_formatted(value)}" for name, value in fault.items()))
    write_json(json_file, {"command": command_line(), "engines": found})


def _formatted(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
