# SPDX-License-Identifier: Apache-2.0
"""`adahi lab table` and `adahi lab figures`: the paper's evaluation, on our own code."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from adahi_lab.cli import measuring, options
from adahi_lab.cli.output import episode_bars, job_bar, write_json
from adahi_lab.cli.task_options import Workers
from adahi_ros.cli.terminal import command_line, console, say
from adahi_ros.core.assets import asset

if TYPE_CHECKING:
    from adahi_lab.evaluation.evaluate import Comparison
    from adahi_lab.figures import Figures

LITERATURE_TASKS = "kitchen,ball,metaworld"
ROWS, FIGURES, PAGE = "rows.json", "literature.json", "literature.md"
TABLE, PICTURES = "table.json", "figures.json"
ALL_TASKS = "kitchen,ball,swarm"
TableTasks = Annotated[
    str | None,
    Option(
        "--tasks",
        "--task",
        help="One, or several separated by commas. Default: kitchen,ball,swarm; --literature: "
        "kitchen,ball,metaworld.",
    ),
]
Folder = Annotated[
    Path | None, Option(help="Folder of the results. Default: results/paper; quick: results/quick.")
]


def results_folder(out: Path | None, quick: bool) -> Path:
    """Create the results folder before anything is measured; quick results do not replace the others.

    Raises:
        ValueError: there is something else of that name.
    """
    folder = out if out is not None else Path("results") / ("quick" if quick else "paper")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out: {folder}, must be a folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def configuration(names: list[str]) -> dict[str, str]:
    """Return the files that say how each task's policies were made and calibrated."""
    found = {}
    for name in names:
        for path in (f"recipes/{name}.yaml", f"recipes/{name}-plans.yaml", f"{name}.yaml"):
            with suppress(FileNotFoundError):  # not every task has a target that plans
                found[f"config/{path}"] = asset(f"config/{path}").read_text()
    return found


def methods_by_task(compared: dict[str, Comparison], methods: str | None) -> dict[str, list[str]]:
    """Return the named methods, as they are on each task; by default those that all tasks have.

    Raises:
        ValueError: a method does not exist.
    """
    from adahi_lab.methods.methods import for_task, on_every_task, parse_methods

    if methods is not None:
        return {
            task: parse_methods(for_task(methods, task, comparison.files.folder))
            for task, comparison in compared.items()
        }
    plans = all(comparison.files.load().plans is not None for comparison in compared.values())
    if not plans:
        say("plans are left out: not every one of these tasks has a target that plans")
    return dict.fromkeys(compared, on_every_task(plans))


def with_thresholds(
    comparison: Comparison, names: list[str], out: Path, workers: int
) -> tuple[Comparison, dict[str, str]]:
    """Return a comparison with all thresholds that methods need; and why some cannot run, by name.

    Raises:
        ValueError: no method can run.
    """
    from adahi_lab.calibration.thresholds import Thresholds
    from adahi_lab.methods.methods import METHODS

    thresholds = Thresholds(out, comparison, workers, say, command_line())
    skipped = {}
    for name in names:
        try:
            METHODS[name].threshold(thresholds.complete([name]).of_method(METHODS[name]).bench())
        except ValueError as error:
            skipped[name] = str(error)
    if len(skipped) == len(names):
        raise ValueError(next(iter(skipped.values())))
    return thresholds.complete([name for name in names if name not in skipped]), skipped


def table(
    workers: Workers,
    quick: Annotated[bool, Option("--quick", help="100 episodes per method and task.")] = False,
    literature: Annotated[
        bool,
        Option(
            "--literature",
            help="Measure the methods of 'adahi methods' instead; existing results are reused.",
        ),
    ] = False,
    tasks: TableTasks = None,
    methods: Annotated[
        str | None,
        Option(
            "--methods",
            "--method",
            help="Separated by commas, as in 'adahi evaluate'; {task} in one is the task, {checkpoints} the "
            "folder of its policies. Default: all but best.",
        ),
    ] = None,
    episodes: measuring.Episodes = None,
    out: Folder = None,
    backend: options.Backend = "onnxruntime",
    seed: options.Seed = 0,
) -> None:
    """Measure the paper's Table I on all tasks, or a table of the methods of papers."""
    from adahi_lab.evaluation.episodes import evaluation_episodes
    from adahi_lab.evaluation.evaluate import evaluate_methods
    from adahi_lab.reporting.tables import paper_table

    count = measuring.episode_count(episodes, quick, measuring.WHOLE_TASK)
    if literature and methods is not None:
        raise ValueError(f"methods: {methods!r}, must be left out where --literature is given")
    default = LITERATURE_TASKS if literature else ALL_TASKS
    compared = measuring.comparisons(default if tasks is None else tasks, seed, backend)
    if literature:
        out = results_folder(out, quick)
        about = {"seed": seed, "workers": workers, "configuration": configuration(list(compared))}
        measure_literature(compared, count, workers, out, about)
        return
    settings = configuration(list(compared))
    wanted = methods_by_task(compared, methods)
    out = results_folder(out, quick)
    options.tried("--out", out / TABLE)
    ready = {  # before hours of work
        task: with_thresholds(compared[task], names, out, workers) for task, names in wanted.items()
    }
    started = time.monotonic()
    found: dict[str, Figures] = {}
    for task, (comparison, skipped) in ready.items():
        started_s = time.monotonic()
        names = [name for name in wanted[task] if name not in skipped]
        with episode_bars([f"{task}, {name}" for name in names], count) as move:
            figures = evaluate_methods(
                comparison,
                names,
                evaluation_episodes(count),
                workers,
                lambda name, done: move(f"{task}, {name}", done),  # noqa: B023
            )
        found[task] = {"methods": figures, "skipped": skipped}
        say(f"{task}: {count} episodes of {len(names)} methods in {time.monotonic() - started_s:.0f} s")
        written = {
            "command": command_line(),
            "seed": seed,
            "episodes": count,
            "seconds": round(time.monotonic() - started, 1),
            "workers": workers,
            "tasks": found,
            "configuration": settings,
        }
        write_json(out / TABLE, written)  # after each task: a stopped run keeps its results
    console.print(paper_table({task: values["methods"] for task, values in found.items()}))
    for task, values in found.items():
        measuring.say_skipped(task, values["skipped"])
    say(f"took {time.monotonic() - started:.0f} s in {workers} processes")


def figures(
    workers: Workers,
    quick: Annotated[bool, Option("--quick", help="50 episodes per point instead of 200.")] = False,
    tasks: measuring.Tasks = ALL_TASKS,
    episodes: measuring.PointEpisodes = None,
    out: Folder = None,
    backend: options.Backend = "onnxruntime",
    seed: options.Seed = 0,
) -> None:
    """Draw the paper's Figure 2, and success against request rate."""
    from adahi_lab.evaluation.episodes import evaluation_episodes
    from adahi_lab.evaluation.sweep import episodes_run, fixed_methods, sweep, sweep_figures
    from adahi_lab.reporting.sweep_figure import area_table, draw_pictures

    count = measuring.episode_count(episodes, quick, measuring.POINT)
    compared = measuring.comparisons(tasks, seed, backend)
    out = results_folder(out, quick)
    options.tried("--out", out / PICTURES)
    found = {}
    for task, comparison in compared.items():
        policies = comparison.files.load()
        with job_bar(f"{task}: episodes", episodes_run(count, policies)) as update:
            found[task] = sweep(
                comparison,
                evaluation_episodes(count),
                workers,
                fixed=fixed_methods(policies),
                on_done=lambda name, more: update(advance=more),
            )
    measured = {task: sweep_figures(points) for task, points in found.items()}
    write_json(out / PICTURES, {"command": command_line(), "episodes": count, "tasks": measured})
    console.print(area_table(found))
    for picture in draw_pictures(compared, found, out):
        say(f"picture: {picture}")


def measure_literature(
    compared: dict[str, Comparison], count: int, workers: int, out: Path, about: dict[str, object]
) -> None:
    """Measure the table, print it, and write rows, figures and a page; existing rows are reused.

    Args:
        compared: by task.
        count: episodes per line and task.
        workers: processes.
        out: folder to write into.
        about: further entries of the file of figures.
    """
    from adahi_lab.calibration.thresholds import Thresholds
    from adahi_lab.evaluation.comparison import measure, standings
    from adahi_lab.evaluation.episodes import evaluation_episodes
    from adahi_lab.papers.literature import known_methods, lines
    from adahi_lab.papers.literature_table import line_entries, searched_last
    from adahi_lab.reporting.literature_rows import literature_markdown, literature_table

    known = known_methods()
    rows, table = measuring.rows_file(out / ROWS), lines(known)
    numbers = evaluation_episodes(count)
    found: dict[str, Figures] = {}
    for task, comparison in compared.items():
        thresholds = Thresholds(out, comparison, workers, say, command_line())
        task_rows: list[Figures] = []
        skipped: dict[str, str] = {}
        with measuring.row_bar(f"{task}: lines", len(table)) as done:
            # A search may take as long as all other lines.
            for some in searched_last(table, comparison, thresholds):
                wanted, left_out = line_entries(some, comparison, numbers, thresholds)
                task_rows += measure(wanted, rows, workers, done)
                skipped.update(left_out)
        found[task] = {"methods": standings(task_rows, []), "skipped": skipped}
    figures = {task: values["methods"] for task, values in found.items()}
    console.print(literature_table(table, figures, f"{count} episodes, seed {about['seed']}"))
    for task, values in found.items():
        measuring.say_skipped(task, values["skipped"])
    for each in known:
        if not each.lines:
            say(f"{each.name} has no line: {each.why}")
    (out / PAGE).write_text(literature_markdown(table, figures))
    write_json(out / FIGURES, {"command": command_line(), "episodes": count, **about, "tasks": found})
