"""`adahi corrector`: a corrector of plans, of what a robot has recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adahi_ros.assets import asset, shipped
from adahi_ros.cli.options import (
    Backend,
    Bags,
    ContractName,
    Incomplete,
    JsonFile,
    Namespace,
    Overwrite,
    existing,
    finite,
    replaceable,
    tried,
)
from adahi_ros.cli.terminal import command_line, console, progress, say, write_json

app = typer.Typer(help="The corrector of a target's plans.", no_args_is_help=True)


@app.callback()
def _correctors() -> None:
    """Have Typer keep the verb's name though there is but one."""


@app.command("from-bag")
def from_bag(
    bags: Bags,
    contract: ContractName,
    out: Annotated[Path, typer.Option(help="Folder to write; that of the target, to be found with it.")],
    target: Annotated[
        Path | None,
        typer.Option(
            help="Whose plans are corrected. Default: the target in --out, or else in "
            "checkpoints/ROBOT_TYPE/plans."
        ),
    ] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="Has the corrector's. Default: config/recipes/ROBOT_TYPE-plans.yaml.")
    ] = None,
    held_out: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, callback=finite, help="Share of the episodes that tell how good it is."
        ),
    ] = 0.2,
    namespace: Namespace = "",
    incomplete: Incomplete = False,
    backend: Backend = "onnxruntime",
    seed: Annotated[int | None, typer.Option(min=0, help="Replaces the recipe's.")] = None,
    overwrite: Overwrite = False,
    json_file: JsonFile = None,
) -> None:
    """Train a corrector on a robot's bags alone: no simulation, whatever the robot was following.

    The target plans for every recorded observation. Bags of episodes that failed are as good.
    """
    from adahi_ros.bags.dataset import read_dataset
    from adahi_ros.bags.replay import check_sizes
    from adahi_ros.contract.parsing import load_contract
    from adahi_ros.evaluation.train_corrector import train_on_recordings
    from adahi_ros.networks.fitting import Run
    from adahi_ros.policy.backends import load_policy
    from adahi_ros.policy.recipe import CORRECTOR, load_recipe
    from adahi_ros.tasks import goal_is_for_target

    read = load_contract(contract)
    tried("--out", replaceable("--out", out / f"{CORRECTOR}.json", overwrite))
    recipe = _recipe_of(read.robot_type, recipe)
    how = load_recipe(recipe).corrector
    if how is None:
        raise ValueError(f"--recipe: {recipe}, says nothing of a corrector; must have a part 'corrector'")
    where = _target_of(read.robot_type, out, target)
    policy = load_policy(where, backend)
    say(f"target: {where}")
    with console.status("reading") as status:
        recorded = read_dataset(
            bags,
            read,
            namespace,
            True,
            lambda path: status.update(f"reading {path}"),
            say if incomplete else None,
        ).trajectories
    check_sizes(policy.signature, recorded)
    chosen = how.seed if seed is None else seed
    with progress() as bar:
        planned = bar.add_task("episodes planned for", total=len(recorded), note="")
        fitted = bar.add_task(CORRECTOR, total=how.fit.steps, note="")
        trained = train_on_recordings(
            policy,
            recorded,
            how,
            out,
            Run(chosen, on_step=lambda step, loss: bar.update(fitted, completed=step, note=f"{loss:.4g}")),
            {"command": command_line(), "target": policy.digest},
            held_out,
            lambda more: bar.advance(planned, more),
            with_goal=not goal_is_for_target(read.robot_type),
        )
    found = trained.figures
    held = found["held_out"]
    say(f"{out / CORRECTOR}: {found['examples']:,} examples of {found['episodes']} episodes")
    say(
        f"{held['episodes']} episodes held out: plans are {held['plan_error']:.3f} action scales from fresh "
        f"ones, corrected {held['error']:.3f} (it expects {held['expected_error']:.3f})"
    )
    write_json(json_file, {"task": recorded.task, "seed": chosen, **found})


def _recipe_of(robot_type: str, recipe: Path | None) -> Path:
    if recipe is not None:
        return existing("--recipe", recipe)
    name = f"config/recipes/{robot_type}-plans.yaml"
    if not shipped(name):
        raise ValueError(f"--recipe: none, must be given: none of plans of {robot_type!r} is shipped")
    return asset(name)


def _target_of(robot_type: str, out: Path, target: Path | None) -> Path:
    from adahi_ros.policy.backends import is_policy

    if target is not None:
        return target
    if is_policy(out / "target"):
        return out / "target"
    name = f"checkpoints/{robot_type}/plans"
    if not shipped(name):
        raise ValueError(f"--target: none, must be given: none that plans for {robot_type!r} is shipped")
    return asset(name) / "target"
