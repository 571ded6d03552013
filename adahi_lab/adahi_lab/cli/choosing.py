# SPDX-License-Identifier: Apache-2.0
"""`adahi choose`: which method and plan length fits a task."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from adahi_lab.cli import options
from adahi_lab.cli.calibration import Setup
from adahi_lab.cli.comparison import comparison_figures
from adahi_lab.cli.output import episode_bars, write_json
from adahi_lab.cli.task_options import TaskName, Workers, file_name
from adahi_ros.cli.terminal import console, say

BY_PLANS = "best,plan_2,plan_4,plan_8,corrector_8,corrector_16,adahi"
BY_DRAFTS = "adahi,hybrid,draft"


def choose(
    task: TaskName,
    workers: Workers,
    methods: Annotated[
        str | None,
        Option(
            help=f"Candidates. Default: {BY_PLANS}, trained intents and goal_once; {BY_DRAFTS} where it "
            "sends no plans."
        ),
    ] = None,
    episodes: Annotated[int, Option(min=1, help="Per method, the same ones for each.")] = 100,
    calibration: options.CalibrationFile = None,
    checkpoints: options.Checkpoints = None,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Recommend a method and a plan length: run candidates, and take the one with the fewest requests.

    In the table, TR is the share of steps with a request. TSR (true skip ratio) is the share of the other
    steps with a draft that the target would have accepted; it is empty for plans.
    """
    from adahi_lab.evaluation.choice import chosen
    from adahi_lab.evaluation.episodes import evaluation_episodes
    from adahi_lab.evaluation.evaluate import Comparison, evaluate_methods
    from adahi_lab.evaluation.loaded_policies import GOAL_ONCE, INTENTS, PLANS
    from adahi_lab.methods.methods import METHODS, for_task, parse_methods
    from adahi_lab.methods.recommended import has_plans, with_best
    from adahi_lab.reporting.tables import method_table
    from adahi_lab.tasks import make
    from adahi_ros.policies.backends import is_policy

    setup = Setup(calibration=calibration, checkpoints=checkpoints, seed=seed)
    files = setup.files(task)
    candidates = BY_PLANS if has_plans(files.folder) else BY_DRAFTS
    trained = [name for name in (*INTENTS, GOAL_ONCE) if is_policy(files.folder / PLANS / name)]
    candidates = ",".join((candidates, *trained))
    if not with_best("", task, files.folder):
        candidates = candidates.removeprefix("best,")
    names = parse_methods(for_task(methods or candidates, file_name(task), files.folder))
    found = setup.calibrated(task, files, workers, names)
    with episode_bars(names, episodes) as move:
        comparison = Comparison(task, files, found, seed)
        figures = evaluate_methods(comparison, names, evaluation_episodes(episodes), workers, move, None)
    policies = files.load()
    console.print(method_table(figures, f"{file_name(task)}, {episodes} episodes, seed {seed}"))
    choice = chosen(figures)
    say(choice.sentence)
    if GOAL_ONCE in names:
        reached = figures[GOAL_ONCE]["success_rate"]
        say(f"a robot that can be given the goal itself needs no server: goal_once has {reached:.3f}")
    if METHODS[choice.name].proposer in INTENTS:
        say(
            "without push, an intent misses a changed goal; proposer.steps bounds how long a robot acts by it"
        )
    elif policies.plans is not None and METHODS[choice.name].by_plans:
        actions, rate_hz = policies.plans.signature.horizon, make(task).spec.control_rate_hz
        say(
            f"on a robot, replies must take less than half of a plan: {0.5 * actions / rate_hz:.2g} s "
            f"({actions} actions at {rate_hz:g} Hz)"
        )
    write = comparison_figures(comparison, episodes, figures)
    write_json(json_file, {**write, "chosen": choice.name, "as_good": list(choice.as_good)})
