# SPDX-License-Identifier: Apache-2.0
"""`adahi bench`: what hybrid inference costs, most of it across an emulated wireless link."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adahi_ros.cli.lab.task_options import TaskName, Workers, file_name, folder_of
from adahi_ros.cli.options import (
    Backend,
    Checkpoints,
    JsonFile,
    ProfileName,
    Seed,
    finite,
    picture_file,
    share,
)
from adahi_ros.cli.terminal import command_line, console, episode_bars, progress, say, write_json

if TYPE_CHECKING:
    from adahi_ros.lab.evaluation.evaluate import Comparison

app = typer.Typer(help="Measure, mostly across an emulated wireless link.", no_args_is_help=True)

Parameters = Annotated[int, typer.Option(min=1, help="Weights that the trained target is grown to.")]


@app.command("latency")
def latency(
    workers: Workers,
    profile: ProfileName = "wifi_ac",
    task: Annotated[str, typer.Option(help="A task with shipped policies.")] = "ball",
    episodes: Annotated[int, typer.Option(min=1, help="Per method, the same ones for each.")] = 20,
    methods: Annotated[
        str,
        typer.Option(
            "--methods", help="Separated by commas. With one that waits for nothing, as best, by the clock."
        ),
    ] = "adahi,hybrid,draft,target,random",
    target_compute_ms: Annotated[
        float,
        typer.Option(
            min=0.0, max=60e3, callback=finite, help="That every reply of the target takes longer, ms."
        ),
    ] = 0.0,
    rate: Annotated[
        float | None,
        typer.Option(
            callback=share,
            help="Transmission rate of ADAHI's gate, and of the random one. Default: a little below 0.6.",
        ),
    ] = None,
    parameters: Parameters = 5_000_000,
    picture: Annotated[Path, typer.Option(help="Picture to write.")] = Path("results/bench-latency.png"),
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Latency, throughput and bytes of every method; robot and server in processes, the link in between."""
    from adahi_ros.lab.bench.loop_latency import RATE, ROUNDS, measure_latency
    from adahi_ros.lab.methods.methods import parse_methods
    from adahi_ros.lab.reporting.wireless_latency import draw_latency, latency_table

    picture_file("--picture", picture)
    names = parse_methods(methods, on_air=True)
    rounds = min(ROUNDS, episodes)
    asked_rate = RATE if rate is None else rate
    with progress() as bar:
        advance = episode_bars(bar, names, episodes)
        found = measure_latency(
            profile,
            task,
            episodes,
            names,
            asked_rate,
            parameters,
            rounds,
            seed,
            workers,
            target_compute_ms / 1e3,
            say,
            advance,
        )
    console.print(latency_table(found.figures))
    write_json(json_file, {"command": command_line(), **found.figures})
    draw_latency(found.figures, found.runs, picture)
    say(f"picture: {picture}")


@app.command("plans")
def plans(
    task: TaskName,
    workers: Workers,
    episodes: Annotated[int, typer.Option(min=1, help="In one process, per method.")] = 600,
    episodes_over_dds: Annotated[
        int, typer.Option(min=0, help="Per method and condition, by the clock; 0 for none.")
    ] = 10,
    methods: Annotated[
        str, typer.Option("--methods", help="Separated by commas.")
    ] = "best,hybrid,adahi,plan_8",
    repetitions: Annotated[int, typer.Option(min=100, help="Of every policy, for its cost.")] = 3000,
    recorded: Annotated[
        int,
        typer.Option(
            "--recorded", min=0, help="Episodes for a corrector of recordings alone; 0 for none of it."
        ),
    ] = 125,
    seed: Seed = 1,
    json_file: JsonFile = None,
) -> None:
    """What plans bring: success and calls, across links and slow targets, and what they cost the robot.

    Beside that: a corrector of recordings alone, and what a threshold that is learned online holds. With
    ten episodes over DDS the ball takes some 20 minutes.
    """
    from adahi_ros.core.assets import asset
    from adahi_ros.gates.parameter_file import load_calibration
    from adahi_ros.lab.bench.plan_conditions import measure_conditions
    from adahi_ros.lab.evaluation.drifting_clocks import drift_of_bound, drift_of_rate, guarantee
    from adahi_ros.lab.evaluation.episodes import evaluation_episodes
    from adahi_ros.lab.evaluation.evaluate import Comparison, evaluate_methods
    from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles
    from adahi_ros.lab.evaluation.step_costs import step_costs
    from adahi_ros.lab.methods.methods import parse_methods
    from adahi_ros.lab.reporting.plans_table import plans_table
    from adahi_ros.lab.reporting.tables import step_cost_table

    if recorded == 1:  # said before minutes of work, not after
        raise ValueError("recorded: 1, must be at least 2, of which one is held out, or 0 for none")
    names, name = parse_methods(methods, on_air=True), file_name(task)
    files = PolicyFiles(folder_of(task, None), "onnxruntime")
    comparison = Comparison(task, files, load_calibration(asset(f"config/{name}.yaml")), seed)
    with progress() as bar:
        advance = episode_bars(bar, names, episodes)
        figures = evaluate_methods(comparison, names, evaluation_episodes(episodes), workers, advance)
    costs = step_costs(files.load(), repetitions)
    conditions = (
        measure_conditions(task, episodes_over_dds, names, seed, workers, say) if episodes_over_dds else {}
    )
    correctors = _correctors(task, comparison, recorded, episodes) if recorded else None
    with console.status("drifting"):
        drifts = guarantee(drift_of_bound(), drift_of_rate())
    console.print(plans_table(name, figures, conditions, correctors, drifts))
    console.print(step_cost_table(costs, f"{name}, one robot, {repetitions} steps"))
    found = {
        "methods": figures,
        "steps": {each: asdict(cost) for each, cost in costs.items()},
        "conditions": conditions,
        "correctors": correctors,
        "drifts": drifts,
    }
    write_json(json_file, {"command": command_line(), "task": name, **found})


def _correctors(task: str, comparison: Comparison, recorded: int, episodes: int) -> dict[str, Any] | None:
    """Compare a corrector of recordings alone with that of simulation; None where a task has none."""
    from adahi_ros.core.assets import asset, shipped
    from adahi_ros.lab.evaluation.episodes import evaluation_episodes
    from adahi_ros.lab.training.recipes import load_recipe
    from adahi_ros.lab.training.recorded_corrector import compare_correctors

    recipe_file, bench = f"config/recipes/{file_name(task)}-plans.yaml", comparison.bench()
    recipe = load_recipe(asset(recipe_file)).corrector if shipped(recipe_file) else None
    if recipe is None or bench.policies.plans is None or bench.policies.corrector is None:
        return None
    horizon = bench.policies.plans.signature.horizon
    with TemporaryDirectory() as folder, console.status("recording") as status:
        return compare_correctors(
            task,
            bench,
            recipe,
            Path(folder),
            (3 * horizon // 4, horizon),
            recorded,
            evaluation_episodes(episodes),
            comparison.seed,
            status.update,
        )


@app.command("peers")
def peers(
    profile: ProfileName = "wifi_ac",
    task: Annotated[str, typer.Option(help="Whose observations are asked about.")] = "kitchen",
    calls: Annotated[int, typer.Option(min=30, help="Of each way in each turn; few are noise.")] = 300,
    ways: Annotated[str, typer.Option(help="Separated by commas, or 'all'; a wrong one names them.")] = "all",
    parameters: Parameters = 5_000_000,
    picture: Annotated[Path, typer.Option(help="Picture to write.")] = Path("results/bench-peers.png"),
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Ours beside what people use, openpi, LeRobot and Flask: one model, the same drafts, no gate.

    With 200 calls all of them take eight minutes. The first run installs each one's
    packages in a folder of its own below ~/.cache/adahi_ros; one that cannot be installed is
    skipped, with the reason.
    """
    from adahi_ros.core.assets import asset
    from adahi_ros.lab.bench.peer_comparison import PEERS, compare_peers
    from adahi_ros.lab.link.link_profile import profile_named
    from adahi_ros.lab.reporting.wireless_calls import draw_peers, peers_table
    from adahi_ros.policies.vqbet.growth import grown_policies

    picture_file("--picture", picture)
    names = PEERS if ways == "all" else tuple(name.strip() for name in ways.split(","))
    for name in names:
        if name not in PEERS:
            raise ValueError(f"ways: {name!r}, must be 'all', or some of {', '.join(PEERS)}")
    target = grown_policies(asset(f"checkpoints/{task}"), parameters) / "target"
    skipped: dict[str, str] = {}

    def skip(name: str, why: str) -> None:
        skipped[name] = why
        say(f"skipped: {why}")

    found = compare_peers(profile_named(profile), task, target, calls, names, seed, say, skip)
    figures: dict[str, Any] = {"command": command_line(), "profile": profile, "task": task, "calls": calls}
    figures["seed"] = seed
    figures |= {"target_parameters": parameters, "skipped": skipped, **found}
    console.print(peers_table(figures))
    write_json(json_file, figures)
    draw_peers(figures, picture)
    say(f"picture: {picture}")


@app.command("dds")
def dds(
    quick: Annotated[bool, typer.Option("--quick", help="Requests of 1 kB alone.")] = False,
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Service calls by DDS's defaults and by config/dds: clean, 1 % and 5 % loss, bursts; 1 kB and 100 kB."""
    from adahi_ros.lab.bench.dds_settings import SIZES, compare_dds
    from adahi_ros.lab.reporting.wireless_calls import dds_table

    sizes = {name: SIZES[name] for name in list(SIZES)[:1]} if quick else SIZES
    figures = {"command": command_line(), "seed": seed}
    figures |= {"profiles": compare_dds(sizes=sizes, seed=seed, on_trial=say)}
    console.print(dds_table(figures))
    write_json(json_file, figures)


@app.command("cameras")
def cameras(
    workers: Workers,
    task: Annotated[str, typer.Option(help="One that a camera looks at.")] = "ball_camera",
    episodes: Annotated[int, typer.Option(min=1, help="Per method and view, the same for each.")] = 100,
    methods: Annotated[str, typer.Option("--methods", help="Separated by commas.")] = "hybrid,adahi",
    picture: Annotated[Path, typer.Option("--figure", help="Picture to write.")] = Path(
        "results/bench-cameras.png"
    ),
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """What the target should see of camera images: success and bytes with features, JPEGs, raw frames, none.

    In process: the very messages, without DDS and without a link.
    """
    from adahi_ros.lab.bench.cameras import VISION_SETTINGS, measure_cameras
    from adahi_ros.lab.methods.methods import parse_methods
    from adahi_ros.lab.reporting.cameras_table import cameras_table, draw_cameras

    picture_file("--figure", picture)
    names = parse_methods(methods, on_air=True)
    with progress() as bar:
        advance = episode_bars(bar, list(VISION_SETTINGS), episodes * len(names))
        figures = measure_cameras(task, episodes, names, seed, workers, advance)
    console.print(cameras_table(figures))
    write_json(json_file, {"command": command_line(), **figures})
    draw_cameras(figures, picture)
    say(f"picture: {picture}")


@app.command("soak")
def soak(
    minutes: Annotated[float, typer.Option(min=0.1, callback=finite, help="How long.")] = 30.0,
    rate_hz: Annotated[
        float, typer.Option(min=1.0, max=1000.0, callback=finite, help="Observations per second.")
    ] = 30.0,
    profile: Annotated[
        str | None, typer.Option(help="The link. Default: bursts of losses, and three outages a minute.")
    ] = None,
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Let robot, draft policy and verifier run for long across a bad link; fails if anything is lost."""
    from adahi_ros.lab.bench.soak import soak as run_soak
    from adahi_ros.lab.link.link_profile import profile_named
    from adahi_ros.lab.reporting.soak_table import soak_table

    link = profile_named(profile) if profile is not None else None
    with progress() as bar:
        job = bar.add_task("soak", total=1.0, note="")
        found = run_soak(
            minutes,
            rate_hz,
            link,
            seed=seed,
            on_progress=lambda share, what: bar.update(job, completed=share, note=what),
        )
    console.print(soak_table(found.values()))
    write_json(json_file, {"command": command_line(), **found.values()})
    for fault in found.faults:
        say(f"failed: {fault}")
    if not found.passed:
        raise typer.Exit(1)


@app.command("compute")
def compute(
    task: TaskName,
    repetitions: Annotated[int, typer.Option(min=100, help="Of every policy, in turns.")] = 3000,
    checkpoints: Checkpoints = None,
    backend: Backend = "onnxruntime",
    json_file: JsonFile = None,
) -> None:
    """What a control step costs of draft, corrector and targets: weights, and time on this machine."""
    from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles
    from adahi_ros.lab.evaluation.step_costs import step_costs
    from adahi_ros.lab.reporting.tables import step_cost_table

    policies = PolicyFiles(folder_of(task, checkpoints), backend).load()
    with console.status("measuring"):
        costs = step_costs(policies, repetitions)
    console.print(step_cost_table(costs, f"{file_name(task)}, one robot, {repetitions} steps"))
    found = {name: asdict(cost) for name, cost in costs.items()}
    write_json(json_file, {"command": command_line(), "task": file_name(task), "steps": found})
