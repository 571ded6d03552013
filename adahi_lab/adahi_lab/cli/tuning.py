# SPDX-License-Identifier: Apache-2.0
"""`adahi lab tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from adahi_lab.cli import options
from adahi_lab.cli.output import write_json
from adahi_lab.cli.task_options import TaskName, Workers, file_name, folder_of
from adahi_ros.cli.options import number
from adahi_ros.cli.terminal import command_line, console, say

INSTALL = "pip install -r requirements/tune.txt"


def tune(
    task: TaskName,
    workers: Workers,
    space: Annotated[Path, Option(help="What may vary: a YAML file, such as config/spaces/ball.yaml.")],
    trials: Annotated[int, Option(min=1, help="Total number of trials, including existing ones.")] = 20,
    storage: Annotated[
        str | None,
        Option(help="Store of the trials: a file, or a database's URL. Default: study.db in --out."),
    ] = None,
    out: Annotated[
        Path | None, Option(help="Folder that all workers share. Default: results/tune-TASK.")
    ] = None,
    checkpoints: options.Checkpoints = None,
    calibration: options.CalibrationFile = None,
    price_per_hour: Annotated[float, number("Price of one worker, for the table.", 0.0)] = 0.0,
    lost_after: Annotated[
        int, Option(min=1, help="Seconds without a heartbeat after which another worker takes the trial.")
    ] = 60,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Search recipes, methods and thresholds; workers may stop, and others may join."""
    from adahi_lab.evaluation.loaded_policies import PolicyFiles, calibration_in
    from adahi_lab.reporting.tuning_table import tuning_table
    from adahi_lab.tuning.search_space import load_space

    try:
        from adahi_lab.tuning.search import Plan, rows, run, without_password
        from adahi_lab.tuning.trial import Ground
        from adahi_lab.tuning.tuning_outcome import best_of, keep_best, search_figures
    except ModuleNotFoundError as error:
        raise RuntimeError(f"{error.name}: must be installed to tune: {INSTALL}") from None

    name = file_name(task)
    wanted = load_space(options.existing("--space", space), name)
    base = folder_of(task, checkpoints)
    out = out if out is not None else Path("results") / f"tune-{name}"
    out.mkdir(parents=True, exist_ok=True)
    given = storage if storage is not None else str(out / "study.db")
    url = given if "://" in given else f"sqlite:///{Path(given).resolve()}"
    policies = PolicyFiles(base, "onnxruntime").load()
    found = calibration_in(options.calibration_file(calibration, name), name, policies)
    shown = without_password(given) if given == url else given
    command = command_line().replace(given, shown)  # checkpoints keep the command, and others receive them
    ground = Ground(task, wanted, base.resolve(), found, seed, out.resolve(), command)
    plan = Plan(ground, url, name, trials, seed, price_per_hour, lost_after)
    say(f"trials: {shown}\ncheckpoints: {out.resolve()}")
    run(plan, min(workers, trials), say)  # more workers than trials would only wait
    ended = rows(plan.study())
    figures = search_figures(ended, ground)
    console.print(tuning_table(figures))
    write_json(json_file, figures)
    best = best_of(ended)
    if best is None:
        raise RuntimeError(f"{shown}: no trial came to its end")
    method = keep_best(best, ground)
    say(
        f"trial {best.number} was best; on other episodes: adahi evaluate {task} --methods {method} "
        f"--checkpoints {out / 'best/checkpoints'} --calibration {out / 'best' / name}.yaml"
    )
