# SPDX-License-Identifier: Apache-2.0
"""`adahi data simulate` and `adahi data from-bag`: what policies learn from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option

from adahi_lab.cli import options, task_options
from adahi_lab.cli.output import job_bar, write_json
from adahi_ros.cli.options import ContractName, Incomplete, Namespace, number
from adahi_ros.cli.terminal import command_line, console, say


def demos(
    task: task_options.TaskName,
    out: Annotated[Path, Option(help="File to write, safetensors.")],
    workers: task_options.Workers,
    episodes: Annotated[int | None, Option(min=1, help="Episodes to run. Default: 400.")] = None,
    action_noise: Annotated[
        float | None,
        number(
            "Noise executed, not recorded: share of half the range. Default: 0.1, with --method 0.", 0.0, 1.0
        ),
    ] = None,
    minari: Annotated[
        str | None,
        Option(help="Instead: human episodes of this Minari data set, 'D4RL/kitchen/complete-v2'."),
    ] = None,
    method: Annotated[
        str | None,
        Option(
            help="Instead: run this method, as in 'adahi evaluate', and record all episodes, failed ones "
            "among them. Then 'adahi data to-lerobot' makes a dataset for 'adahi train corrector'."
        ),
    ] = None,
    checkpoints: Annotated[
        Path | None, Option(help="With --method: folder of its policies. Default: the shipped one.")
    ] = None,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Record demonstrations of the simulated expert, convert human ones, or record a method's episodes."""
    from adahi_lab.tasks.demonstrations import NOISE
    from adahi_lab.tasks.minari_demonstrations import load_minari

    options.tried("--out", out)
    if method is not None:
        options.left_out(f"method ({method}) is given", minari=minari)
        how = task, checkpoints, method, 400 if episodes is None else episodes, action_noise or 0.0
        _record_method(*how, out, seed, workers, json_file)
        return
    options.left_out("--method is not given", checkpoints=checkpoints)
    if minari is not None:
        options.left_out(f"minari ({minari}) is given", episodes=episodes, action_noise=action_noise)
        recorded = load_minari(minari, task)
    else:
        recorded = task_options.recorded_now(
            task,
            400 if episodes is None else episodes,
            seed,
            NOISE if action_noise is None else action_noise,
            workers,
        )
    recorded.trajectories.save(out)
    kept, steps = len(recorded.trajectories), len(recorded.trajectories.observations)
    say(f"{out}: {kept} of {recorded.attempted} episodes were kept, {steps} steps")
    write_json(
        json_file, {"task": task, "seed": seed, "attempted": recorded.attempted, "kept": kept, "steps": steps}
    )


def _record_method(
    task: str,
    checkpoints: Path | None,
    method: str,
    episodes: int,
    action_noise: float,
    out: Path,
    seed: int,
    workers: int,
    json_file: Path | None,
) -> None:
    """Record episodes of one method.

    Raises:
        ValueError: there is no such method, or it cannot run.
    """
    from adahi_lab.evaluation.evaluate import Comparison
    from adahi_lab.methods.methods import METHODS, parse_methods
    from adahi_lab.training.recorded_rollouts import record_rollouts

    names = parse_methods(method)
    if len(names) != 1:
        raise ValueError(f"method: {method!r}, must be one")
    comparison = (
        Comparison.shipped(task, seed)
        if checkpoints is None
        else Comparison.of_folder(task, checkpoints, seed)
    )
    comparison = replace(comparison, action_noise=action_noise)
    with job_bar(f"{task}: episodes", episodes) as update:
        data, successes = record_rollouts(
            comparison, METHODS[names[0]], episodes, workers, lambda done: update(advance=done)
        )
    data.save(out)
    steps = len(data.observations)
    say(f"{out}: {episodes} episodes, of which {successes} succeeded, {steps} steps")
    write_json(
        json_file,
        {
            **{"task": task, "seed": seed, "method": names[0], "action_noise": action_noise},
            **{"kept": len(data), "steps": steps, "succeeded": successes},
        },
    )


def from_bag(
    bags: options.Bags,
    contract: ContractName,
    out: Annotated[Path, Option(help="Folder to write.")],
    namespace: Namespace = "",
    keep_failures: options.KeepFailures = False,
    incomplete: Incomplete = False,
    overwrite: Annotated[
        bool, Option("--overwrite", help="Replace the dataset that is in --out already.")
    ] = False,
) -> None:
    """Make a dataset from bags, with the observations that the robot's node would have."""
    from adahi_lab.datasets.bag_dataset import PICTURE, TRAJECTORIES, read_dataset
    from adahi_lab.reporting.bag_tables import dataset_table
    from adahi_lab.reporting.dataset_figure import draw_dataset
    from adahi_ros.contract.parsing import load_contract

    read = load_contract(contract)
    if read.cameras and not read.encoder:
        say("the dataset has no images: the contract has no encoder; use 'adahi data to-lerobot' for images")
    if (out / TRAJECTORIES).exists() and not overwrite:
        raise ValueError(f"--out: {out}, has a dataset already; must be another folder, or give --overwrite")
    options.tried("--out", out / TRAJECTORIES)
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
            say(f"{bag['path']}: no steps; for details run '{check}'")
    data, picture = dataset.trajectories, out / PICTURE
    say(f"{out}: {len(data)} episodes, {len(data.observations)} steps of {data.task}; picture: {picture}")
