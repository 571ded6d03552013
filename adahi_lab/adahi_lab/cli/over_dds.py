# SPDX-License-Identifier: Apache-2.0
"""`adahi demo`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from adahi_lab.cli import options
from adahi_lab.cli.calibration import Setup
from adahi_lab.cli.comparison import comparison_figures
from adahi_lab.cli.output import own_name, write_json
from adahi_lab.cli.run_report import report_bags
from adahi_lab.cli.task_options import TaskName, Workers, file_name
from adahi_ros.cli.fields import with_fields
from adahi_ros.cli.options import number
from adahi_ros.cli.terminal import console, say

START_S = 10.0  # three processes that find each other
LOCKSTEP_DEADLINE_S = 10.0  # a busy machine must not change what a run without a clock does

if TYPE_CHECKING:
    from adahi_lab.figures import Figures
    from adahi_ros.protocol.records import StepRecord


@with_fields
def demo(
    task: TaskName,
    workers: Workers,
    methods: Annotated[
        str | None,
        Option(
            "--methods",
            "--method",
            help="One, or several separated by commas. Default: best,adahi,plan_8,hybrid where a method is "
            "recommended and the checkpoints have plans; adahi,hybrid,draft,target,random elsewhere.",
        ),
    ] = None,
    episodes: Annotated[
        int,
        Option(
            min=1,
            help="Per method, the same ones for each. Methods that never wait run in real "
            "time, about 4 s per episode on ball and swarm.",
        ),
    ] = 10,
    real_time: Annotated[
        bool,
        Option(
            "--real-time",
            help="Run at the task's rate, not as fast as replies arrive. Methods that never wait always do.",
        ),
    ] = False,
    lockstep: Annotated[
        bool,
        Option(
            "--lockstep",
            help="The world waits for every command, also of methods that never wait: the run is "
            "bit-identical to that of 'adahi evaluate'.",
        ),
    ] = False,
    deadline_s: Annotated[
        float | None,
        number(
            "For the target's reply, s. Default: one control period; 10 where the world waits.", 0.001, 60.0
        ),
    ] = None,
    cut_s: Annotated[
        float,
        number(
            "Cut the link once per episode, for this long, s: the verifier is suspended. All in real time.",
            0.0,
            60.0,
        ),
    ] = 0.0,
    picture: Annotated[Path | None, options.picture("demo-TASK")] = None,
    report: Annotated[
        bool, Option("--report", help="Record a bag of each method, and write an interactive report.")
    ] = False,
    *,
    setup: Setup,
    json_file: options.JsonFile = None,
) -> None:
    """Run a simulated robot, its policy and the verifier as three processes over DDS.

    In the table, TR is the share of steps with a request. TSR (true skip ratio) is the share of the other
    steps with a draft that the target would have accepted; it is empty for plans.
    """
    from adahi_lab.evaluation.episodes import evaluation_episodes
    from adahi_lab.evaluation.evaluate import Comparison, Run, expert_error, held_out
    from adahi_lab.evaluation.repeated_run import repeated_true_skip_ratio
    from adahi_lab.evaluation.run_metrics import run_figures
    from adahi_lab.methods.dds_method import goes_ahead, node_parameters
    from adahi_lab.methods.methods import METHODS, for_task, on_task, parse_methods
    from adahi_lab.methods.recommended import default_methods
    from adahi_lab.nodes.dds_run import contract_of, run_over_dds
    from adahi_lab.nodes.domain import exclusive_domain
    from adahi_lab.reporting.live_view import LiveView
    from adahi_lab.reporting.run_figure import draw_run
    from adahi_lab.reporting.tables import method_table
    from adahi_lab.tasks import make

    real_time = real_time or cut_s > 0.0
    if lockstep and real_time:
        raise ValueError("lockstep: True, must be left out where --real-time or --cut-s is given")
    files, seed, name_of_files = setup.files(task), setup.seed, file_name(task)
    folder = files.folder
    chosen = methods or default_methods(task, folder)
    names = parse_methods(for_task(chosen, name_of_files, folder), on_air=True)
    numbers = evaluation_episodes(episodes)
    picture = options.picture_or_default(picture, f"demo-{name_of_files}")
    found = setup.calibrated(task, files, workers, names)
    spec = make(task).spec
    rate_hz = spec.control_rate_hz
    compared = Comparison(task, files, found, seed)
    ways = {name: on_task(name, task) for name in names}
    benches = {name: compared.of_method(way).bench() for name, way in ways.items()}
    for name, way in ways.items():
        way.threshold(benches[name])
    # A world that waits only for commands would run away from a robot that waits for no reply.
    by_clock = {name: real_time or (goes_ahead(name, task) and not lockstep) for name in names}
    at_most_s = START_S * len(names) + episodes * sum(by_clock.values()) * spec.max_steps / rate_hz
    say(f"{task}: {', '.join(names)}; {episodes} episodes each, at most {max(1, round(at_most_s / 60))} min")
    runs, figures = {}, {}
    bags, contract = _bags(picture, name_of_files, names) if report else {}, task
    with exclusive_domain() as domain:  # one for all methods, so that 'adahi watch' can stay open
        watch = f"{own_name()} watch --domain {domain}"
        say(f"robot, draft policy and target verifier are starting; watch it: {watch}")
        expert = held_out(task, seed, workers)
        for name, method in ways.items():
            wait_s = deadline_s or (1 / rate_hz if by_clock[name] else LOCKSTEP_DEADLINE_S)
            draft, target = node_parameters(name, task, files, found, wait_s, not by_clock[name])
            contract = contract_of(task, draft)
            with LiveView(console, name, episodes) as view:
                runs[name] = run_over_dds(
                    task,
                    draft,
                    target,
                    seed,
                    numbers,
                    not by_clock[name],
                    view.show,
                    domain=domain,
                    bag=bags.get(name),
                    cut_s=cut_s,
                )
            figures[name] = {
                "gate": draft["gate.name"],
                "threshold": draft["gate.threshold"],
                **run_figures(runs[name], rate_hz),
                "true_skip_ratio": None  # a plan has no codes to keep
                if method.by_plans
                else repeated_true_skip_ratio(runs[name], benches[name], method, seed),
                "mse": expert_error(Run(METHODS[name], compared, numbers), expert),
            }
            say(
                f"{method.label}: {sum(e.success for e in runs[name].episodes)} of {episodes} episodes "
                f"succeeded, {figures[name]['transmitted']} of {figures[name]['steps']} steps transmitted"
                f"{_aged(runs[name].steps)}{_crossed(figures[name])}"
            )
    console.print(method_table(figures, f"{name_of_files} over DDS, {episodes} episodes, seed {seed}"))
    if cut_s:
        lost = [
            f"{ways[name].label} {sum(not e.success for e in run.episodes)}" for name, run in runs.items()
        ]
        say(f"the link was cut for {cut_s:g} s in each of {episodes} episodes; failed: {', '.join(lost)}")
    write_json(json_file, comparison_figures(compared, episodes, figures))
    draw_run(task, runs, figures, picture)
    say(f"picture: {picture}")
    if bags:
        page = picture.with_name(f"demo-{name_of_files}.html")
        report_bags(list(bags.values()), page, contract)
        say(f"report: {page}")
    say(f"next: {own_name()} evaluate {task}  # more methods, in one process and without ROS")
    say(f"      {own_name()} methods  # what each method does, and what it costs the robot")
    say("      docs/how_to/run_lerobot.md    # your own policy on your own arm")


def _bags(picture: Path, task: str, names: Sequence[str]) -> dict[str, Path]:
    """Return where the bag of each method goes: a new folder beside the picture."""
    folder = picture.with_name(f"demo-{task}-{datetime.now():%Y%m%d-%H%M%S}")
    return {name: folder / re.sub(r"[^\w.-]+", "_", name) for name in names}


def _aged(steps: Sequence[StepRecord]) -> str:
    """Return the greatest age of the plans or intents of a run; empty where there are none."""
    from adahi_lab.calibration.bag_run import held_name

    ages = [step.plan_age for step in steps if step.planned]
    return f", {held_name(steps)}s at most {max(ages)} steps old" if ages else ""


def _crossed(figures: Figures) -> str:
    up, down = figures["bytes_up_per_action"], figures["bytes_down_per_action"]
    if up is None or down is None:  # no emulated link
        return ""
    return f"; per action {up:.0f} bytes crossed the link to the server, {down:.0f} back"
