# SPDX-License-Identifier: Apache-2.0
"""`adahi lab committee`: several drafts, each specialised, in place of one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Option

from adahi_lab.cli import options
from adahi_lab.cli.learning import recipe_with_draft
from adahi_lab.cli.task_options import DemonstrationsFile, TaskName, Workers, demonstrations_of, folder_of
from adahi_ros.cli.options import Overwrite, replaceable
from adahi_ros.cli.terminal import command_line, say

SPLITS = ("fit", "goal")


def committee(
    task: TaskName,
    out: Annotated[Path, Option(help="Folder to write: drafts, and a copy of tokenizer and target.")],
    workers: Workers,
    members: Annotated[int, Option(min=1, help="How many drafts.")] = 2,
    split: Annotated[
        str,
        Option(
            help="How demonstrations are split: fit, to the draft that makes them likeliest; goal, by the "
            "target's goal."
        ),
    ] = "fit",
    fusion: Annotated[str, Option(help="How the drafts are combined: best, drawn, sum or product.")] = "best",
    checkpoints: options.Checkpoints = None,
    recipe: Annotated[
        Path | None,
        Option(help="Recipe of every draft. Default: config/recipes/TASK-committee.yaml, or TASK.yaml."),
    ] = None,
    demonstrations: DemonstrationsFile = None,
    overwrite: Overwrite = False,
) -> None:
    """Train several specialised drafts on the tokenizer of a target; the robot learns which one fits."""
    import torch

    from adahi_lab.papers.cosine.committee import CommitteeRules
    from adahi_lab.papers.cosine.train_committee import Lessons, by_fit, by_goal, train_committee
    from adahi_lab.tasks.demonstrations import seen_by_robots
    from adahi_lab.training.vqbet_files import load_tokenizer
    from adahi_ros.core.schema import checked

    if split not in SPLITS:
        raise ValueError(f"--split: {split!r}, must be one of {', '.join(SPLITS)}")
    rules: CommitteeRules = checked(CommitteeRules, {"fusion": fusion}, "--")
    replaceable("--out", out / "draft.yaml", overwrite)
    steps = recipe_with_draft(options.recipe_file(recipe, f"{task}-committee", task))
    beside = folder_of(task, checkpoints)
    data = demonstrations_of(task, demonstrations, None, **asdict(steps.demonstrations), workers=workers)
    for_robots = seen_by_robots(data, task)
    torch.set_num_threads(1)
    taught = Lessons(data, for_robots, load_tokenizer(beside), steps.window_length, steps.policies["draft"])
    who = by_goal(taught.data.goals, members) if split == "goal" else by_fit(taught, members, say)
    train_committee(out, taught, who, beside, rules, command_line(), say)
    say(f"{out}: trained; other verbs take it with --checkpoints {out}")
