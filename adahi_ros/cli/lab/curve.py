# SPDX-License-Identifier: Apache-2.0
"""`adahi curve`: methods against what the link is like."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from adahi_ros.cli import options
from adahi_ros.cli.lab import measuring
from adahi_ros.cli.lab.task_options import Workers
from adahi_ros.cli.terminal import command_line, console, say, write_json


def curve(
    against: Annotated[str, Argument(help="What is changed of the link: delay, jitter, loss, outage.")],
    workers: Workers,
    quick: Annotated[bool, Option("--quick", help="50 episodes per point instead of 200.")] = False,
    tasks: measuring.Tasks = "ball_instructed",
    methods: Annotated[
        str, Option("--methods", "--method", help="As of 'adahi evaluate', separated by commas.")
    ] = "best,plan_8,adahi,hybrid",
    episodes: measuring.PointEpisodes = None,
    values: Annotated[
        str | None, Option(help="Of what is changed, separated by commas. Default: some to show it by.")
    ] = None,
    delay: Annotated[int, Option(min=0, help="Control steps of a round trip, at least.")] = 1,
    between: Annotated[float, options.number("Mean control steps from one outage to the next.", 1.0)] = 40.0,
    out: measuring.RowsFile = Path("results/curves.json"),
    picture: Annotated[Path | None, options.picture("curve-AGAINST")] = None,
    backend: options.Backend = "onnxruntime",
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Draw success and calls of methods against delay, jitter, loss or outages of the link, in process.

    In control steps, without a clock. A robot that waits is held meanwhile; one that goes on by plans asks
    ahead, and is held where its plan is over. What is lost is given up, and asked for anew.
    """
    from adahi_ros.lab.evaluation.episodes import evaluation_episodes
    from adahi_ros.lab.evaluation.link_curves import curves, links
    from adahi_ros.lab.evaluation.step_link import StepLink
    from adahi_ros.lab.methods.methods import parse_methods
    from adahi_ros.lab.reporting.curve_figure import curve_table, draw_curves

    names = parse_methods(methods, own=True)
    across = links(against, StepLink(delay=delay, between=between), _numbers(values))
    at = [getattr(link, against) for link in across]
    picture = options.picture_or_default(picture, f"curve-{against}")
    count = measuring.episode_count(episodes, quick, measuring.POINT)
    compared = measuring.comparisons(tasks, seed, backend)
    rows = measuring.rows_file(out, json_file)
    found: dict[str, Any] = {}
    for task, comparison in compared.items():
        with measuring.row_bar(f"{task}: rows", len(names) * len(across)) as done:
            found[task], skipped = curves(
                comparison, across, names, evaluation_episodes(count), rows, workers, done
            )
        title = f"{task} against {against}, {count} episodes, seed {seed}"
        console.print(curve_table(found[task], at, title))
        measuring.say_skipped(task, skipped)
    draw_curves(found, at, against, picture)
    say(f"rows: {out}\npicture: {picture}")
    told = {"command": command_line(), "against": against, "values": at, "seed": seed, "episodes": count}
    write_json(json_file, {**told, "tasks": found})


def _numbers(text: str | None) -> list[float] | None:
    """Return the numbers of a comma-separated list, the smallest first, as a curve is drawn.

    Raises:
        ValueError: one is none.
    """
    if text is None:
        return None
    try:
        return sorted(float(each) for each in text.split(","))
    except ValueError:
        raise ValueError(f"values: {text!r}, must be numbers separated by commas") from None
