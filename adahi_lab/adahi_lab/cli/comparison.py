# SPDX-License-Identifier: Apache-2.0
"""`adahi evaluate`, `adahi lab compare` and `adahi lab curve`: methods on the same episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from adahi_lab.cli import measuring, options
from adahi_lab.cli.calibration import Setup
from adahi_lab.cli.output import episode_bars, write_json
from adahi_lab.cli.task_options import TaskName, Workers, file_name
from adahi_ros.cli.fields import with_fields
from adahi_ros.cli.options import number
from adahi_ros.cli.terminal import command_line, console, say

if TYPE_CHECKING:
    from adahi_lab.evaluation.evaluate import Comparison
    from adahi_lab.figures import Figures


def comparison_figures(
    comparison: Comparison, episodes: int, figures: Mapping[str, object]
) -> dict[str, object]:
    """Return the figures of a comparison as they are written, with the weights that each method uses."""
    from adahi_lab.methods.methods import METHODS

    parameters = {}
    for name in figures:
        method = METHODS[name].on(comparison.task)
        policies = comparison.of_method(method).files.load()
        parameters[name] = {need: getattr(policies, need).signature.parameters for need in method.needs}
    return {
        "task": file_name(comparison.task),
        "seed": comparison.seed,
        "episodes": episodes,
        "draft_temperature": comparison.calibration.draft_temperature,
        "parameters": parameters,
        "methods": figures,
    }


COMPARED = "adahi,hybrid,draft,target,random,uncertainty"


@with_fields
def evaluate(
    task: TaskName,
    workers: Workers,
    methods: Annotated[
        list[str] | None,
        Option(
            "--methods",
            "--method",
            help="Separated by commas, or repeat the option. Also random_cool, oracle, plan_2, "
            "plan_4 and plan_8; any PROPOSER+GATE@THRESHOLD/RULE, such as corrector+age@7 or draft+random; "
            "and FILE.py:CLASS, your own gate or proposer. Alone, it is compared with the "
            f"default. {{task}} in a name is the task, {{checkpoints}} the folder. Default: best where "
            f"the task has plans and a recommendation, {COMPARED}.",
        ),
    ] = None,
    episodes: Annotated[int, Option(min=1, help="Per method, the same ones for each.")] = 600,
    against: Annotated[
        str | None,
        Option(help="Compare with this method, episode by episode. Default: target, else the first."),
    ] = None,
    swap: Annotated[
        int | None,
        Option(
            min=1,
            help="Give every episode the goal of another one at this step; only what is done afterwards is "
            "a success. For tasks with a goal that only the target gets. Default: never.",
        ),
    ] = None,
    drift: Annotated[
        float, number("Move each goal round the middle at this speed, m/s. For ball_instructed.", 0.0)
    ] = 0.0,
    push: Annotated[
        bool,
        Option(
            "--push/--no-push",
            help="With --swap: the verifier publishes a notice, and robots send a request.",
        ),
    ] = True,
    action_noise: Annotated[
        float, number("Noise on executed actions, a share of half their range.", 0.0, 1.0)
    ] = 0.0,
    sensor_noise: Annotated[
        float,
        number("Noise on places that robots measure, m. The target's has none.", 0.0, 1.0),
    ] = 0.0,
    delay: Annotated[
        int | None,
        Option(min=0, help="Control steps from every request to its reply. Default: no link; 0 with --loss."),
    ] = None,
    loss: Annotated[float, number("Share of round trips that are lost, below 1.", 0.0)] = 0.0,
    *,
    setup: Setup,
    json_file: options.JsonFile = None,
) -> None:
    """Compare methods on the same episodes, in process.

    With --delay or --loss every request has them, also an episode's first: the robot is held until it has a
    reply, and its world goes on.

    In the table, TR is the share of steps with a request. TSR (true skip ratio) is the share of the other
    steps with a draft that the target would have accepted; it is empty for plans.
    """
    from adahi_lab.evaluation.episodes import evaluation_episodes
    from adahi_lab.evaluation.evaluate import Comparison, evaluate_methods, reference_among
    from adahi_lab.evaluation.step_link import StepLink
    from adahi_lab.evaluation.swaps import Swap
    from adahi_lab.methods.file_methods import is_file_method
    from adahi_lab.methods.methods import for_task, parse_methods
    from adahi_lab.methods.recommended import with_best
    from adahi_lab.reporting.tables import method_table, paired_table

    if swap is not None and drift:
        raise ValueError(f"drift: {drift}, must be left out with --swap")
    swapped = Swap(swap, push) if swap else None
    link = StepLink(delay or 0, loss=loss) if loss or delay is not None else None
    files, seed = setup.files(task), setup.seed
    compared = with_best(COMPARED, task, files.folder)
    names = parse_methods(for_task(",".join(methods or [compared]), file_name(task), files.folder), own=True)
    if all(map(is_file_method, names)):
        names = parse_methods(",".join([compared, *names]), own=True)
    reference_among(names, against)
    found = setup.calibrated(task, files, workers, names)
    with episode_bars(names, episodes) as move:
        comparison = Comparison(task, files, found, seed, link, swapped, action_noise, drift, sensor_noise)
        figures = evaluate_methods(comparison, names, evaluation_episodes(episodes), workers, move, against)
    change = f", goals change at step {swap}, {'' if push else 'no '}push" if swap else ""
    change += f", goals move at {drift:g} m/s" if drift else ""
    change += f", action noise {action_noise:g}" if action_noise else ""
    change += f", sensor noise {sensor_noise:g} m" if sensor_noise else ""
    change += f", every reply {link.delay} steps late, {link.loss:g} of them lost" if link else ""
    console.print(method_table(figures, f"{file_name(task)}, {episodes} episodes, seed {seed}{change}"))
    paired = paired_table(figures)
    if paired is not None:
        say("")
        console.print(paired)
    written = comparison_figures(comparison, episodes, figures)
    if swapped is not None:
        written["swap"] = asdict(swapped)
    if link is not None:
        written["link"] = asdict(link)
    changes = {"action_noise": action_noise, "drift": drift, "sensor_noise_m": sensor_noise}
    written |= {name: value for name, value in changes.items() if value}
    write_json(json_file, written)


# First the tasks where the target knows what the robot cannot; one of the kitchens, which take longest.
STOOD_TASKS = "ball_instructed,swarm_instructed,ball_seen,metaworld,ball,swarm,kitchen"
NOT_STOOD = ("random", "random_cool", "oracle")  # random replaces any gate; no robot can know the oracle


def compare(
    workers: Workers,
    quick: Annotated[bool, Option("--quick", help="100 episodes per method and task.")] = False,
    tasks: measuring.Tasks = STOOD_TASKS,
    methods: Annotated[
        list[str] | None,
        Option(
            "--methods",
            "--method",
            help="As in 'adahi evaluate'. Default: target and all that a robot can run, with corrector_8, "
            "and goal_once and stored where a task has them.",
        ),
    ] = None,
    episodes: measuring.Episodes = None,
    out: measuring.RowsFile = Path("results/compare.json"),
    backend: options.Backend = "onnxruntime",
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Compare methods on several tasks: success, cost, and a random gate at the same rate."""
    from adahi_lab.evaluation.comparison import entries, measure, random_baseline, standings
    from adahi_lab.evaluation.episodes import evaluation_episodes
    from adahi_lab.methods.methods import METHODS, for_task, parse_methods
    from adahi_lab.reporting.tables import standing_table

    count = measuring.episode_count(episodes, quick, measuring.WHOLE_TASK)
    default = [name for name in METHODS if name not in NOT_STOOD]
    default += ["corrector_8", "goal_once", "stored"]
    given = ",".join(["target", *(methods or default)])
    compared = measuring.comparisons(tasks, seed, backend)
    names = {
        task: parse_methods(for_task(given, task, comparison.files.folder), own=True)
        for task, comparison in compared.items()
    }
    rows = measuring.rows_file(out, json_file)
    written: dict[str, object] = {}
    for task, comparison in compared.items():
        wanted, skipped = entries(comparison, names[task], evaluation_episodes(count))
        with measuring.row_bar(f"{task}: rows", 2 * len(wanted)) as done:
            found = measure(wanted, rows, workers, done)
            chances = [random_baseline(entry, row) for entry, row in zip(wanted, found, strict=True)]
            baselines = measure([entry for entry in chances if entry is not None], rows, workers, done)
        figures = standings(found, baselines)
        console.print(standing_table(figures, f"{task}, {count} episodes, seed {seed}"))
        for need in dict.fromkeys(tuple(values["needs"]) for values in figures.values()):
            who = ", ".join(METHODS[name].label for name in figures if tuple(figures[name]["needs"]) == need)
            say(f"{task}: {' and '.join(need) or 'unknown parts'}: {who}")
        measuring.say_skipped(task, skipped)
        written[task] = {"methods": figures, "skipped": skipped}
    say(f"rows: {out}")
    write_json(json_file, {"command": command_line(), "seed": seed, "episodes": count, "tasks": written})


def curve(
    against: Annotated[str, Argument(help="Link property to vary: delay, jitter, loss, outage.")],
    workers: Workers,
    quick: Annotated[bool, Option("--quick", help="50 episodes per point instead of 200.")] = False,
    tasks: measuring.Tasks = "ball_instructed",
    methods: Annotated[
        str, Option("--methods", "--method", help="As in 'adahi evaluate', separated by commas.")
    ] = "best,plan_8,adahi,hybrid",
    episodes: measuring.PointEpisodes = None,
    values: Annotated[
        str | None, Option(help="Values of the property, separated by commas. Default: a range.")
    ] = None,
    seconds: Annotated[bool, Option("--seconds", help="The values are seconds, not control steps.")] = False,
    delay: Annotated[int, Option(min=0, help="Control steps of a round trip, at least.")] = 1,
    between: Annotated[float, number("Mean control steps from one outage to the next.", 1.0)] = 40.0,
    out: measuring.RowsFile = Path("results/curves.json"),
    picture: Annotated[Path | None, options.picture("curve-AGAINST")] = None,
    backend: options.Backend = "onnxruntime",
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Draw success, requests and the age of information against delay, jitter, loss or outages of the link.

    Runs in process; time is counted in control steps. A robot that waits is held. A robot with plans
    requests the next plan ahead, and is held when its plan ends. A lost request is sent again.
    """
    from adahi_lab.evaluation.episodes import evaluation_episodes
    from adahi_lab.evaluation.link_curves import curves, links
    from adahi_lab.evaluation.step_link import StepLink
    from adahi_lab.methods.methods import parse_methods
    from adahi_lab.reporting.curve_figure import AXES, curve_table, draw_curves
    from adahi_lab.tasks import make

    names, given = parse_methods(methods, own=True), _numbers(values)
    link = StepLink(delay=delay, between=between)
    at = given if seconds and given else [getattr(each, against) for each in links(against, link, given)]
    picture = options.picture_or_default(picture, f"curve-{against}")
    count = measuring.episode_count(episodes, quick, measuring.POINT)
    compared = measuring.comparisons(tasks, seed, backend)
    rows = measuring.rows_file(out, json_file)
    found: dict[str, Mapping[str, Sequence[Figures]]] = {}
    for task, comparison in compared.items():
        rate_hz = make(comparison.task).spec.control_rate_hz
        across = links(against, link, given, rate_hz if seconds else None)
        with measuring.row_bar(f"{task}: rows", len(names) * len(across)) as done:
            found[task], skipped = curves(
                comparison, across, names, evaluation_episodes(count), rows, workers, done
            )
        title = f"{task} against {against}{' in s' * seconds}, {count} episodes, seed {seed}"
        console.print(curve_table(found[task], at, title, rate_hz))
        measuring.say_skipped(task, skipped)
    draw_curves(found, at, f"{against} (s)" if seconds else AXES[against], picture)
    say(f"rows: {out}\npicture: {picture}")
    settings = {"command": command_line(), "against": against, "values": at, "seed": seed, "episodes": count}
    write_json(json_file, {**settings, "tasks": found})


def _numbers(text: str | None) -> list[float] | None:
    """Return the numbers of a comma-separated list in ascending order.

    Raises:
        ValueError: an entry is no number.
    """
    if text is None:
        return None
    try:
        return sorted(float(each) for each in text.split(","))
    except ValueError:
        raise ValueError(f"values: {text!r}, must be numbers separated by commas") from None
