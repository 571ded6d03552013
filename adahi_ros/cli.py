"""The command `adahi`: one verb per job."""

from __future__ import annotations

import json
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from adahi_ros.assets import asset

# Everything heavier than these is imported by the verb that needs it, so that `--help` is quick.

ROS = ("rclpy", "adahi_msgs", "lifecycle_msgs", "trajectory_msgs", "diagnostic_msgs", "sensor_msgs")

app = typer.Typer(
    name="adahi",
    help="Hybrid inference for robots: draft on the robot, verify on a server, only when it must.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
console = Console()

DEFAULT_RATE = 0.6
STOPPED = 130  # what shells expect after Ctrl-C
PATIENT_DEADLINE_S = 10.0  # a busy machine must not change what a run without a clock does


def known_task(name: str) -> str:
    """Return the name of a task, or raise the registry's error before anything is loaded."""
    from adahi_ros.tasks import make

    return make(name).spec.name


TaskName = Annotated[str, typer.Argument(help="The task, such as 'ball'.", callback=known_task)]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random draw.")]
JsonFile = Annotated[
    Path | None, typer.Option("--json", dir_okay=False, help="Write the figures to this file.")
]
Checkpoints = Annotated[
    Path | None, typer.Option(help="Folder with tokenizer, draft and target. Default: the shipped one.")
]
Backend = Annotated[str, typer.Option(help="Inference backend: onnxruntime or torch.")]


def progress() -> Progress:
    """Return a progress bar, which shows itself only on a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        transient=True,
    )


def show_step(bar: Progress, job: TaskID, step: int) -> None:
    """Move a bar on."""
    bar.update(job, completed=step)


def say(line: str) -> None:
    """Print a line as it is, whatever brackets its paths have and however long they are."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def write_json(path: Path | None, value: dict[str, Any]) -> None:
    """Write figures where the user asked for them."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=2) + "\n")
        say(f"figures: {path}")


def command_line() -> str:
    """Return what the user typed, for files that say where they came from."""
    return shlex.join(["adahi", *sys.argv[1:]])


def folder_of(task: str, checkpoints: Path | None) -> Path:
    """Return the folder of a task's checkpoints."""
    return checkpoints if checkpoints is not None else asset(f"checkpoints/{task}")


@app.command()
def demos(
    task: TaskName,
    out: Annotated[Path, typer.Option(help="File to write, safetensors.")],
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to run.")] = 400,
    action_noise: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Noise executed, not recorded: share of half the range.")
    ] = 0.1,
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Record the scripted expert."""
    from adahi_ros.tasks import make, make_expert
    from adahi_ros.tasks.demonstrations import collect

    world = make(task)
    with progress() as bar:
        job = bar.add_task(f"{task}: expert", total=world.spec.max_steps, note="")
        recorded = collect(
            world,
            make_expert(task),
            episodes,
            seed,
            action_noise,
            lambda step, most: bar.update(job, completed=step),
        )
    recorded.trajectories.save(out)
    kept, steps = len(recorded.trajectories), len(recorded.trajectories.observations)
    say(f"{out}: {kept} of {recorded.attempted} episodes succeeded and were kept, {steps} steps")
    write_json(
        json_file, {"task": task, "seed": seed, "attempted": recorded.attempted, "kept": kept, "steps": steps}
    )


@app.command()
def train(
    task: TaskName,
    out: Annotated[Path | None, typer.Option(help="Folder to write. Default: checkpoints/TASK.")] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="Training recipe. Default: config/recipes/TASK.yaml.")
    ] = None,
    demonstrations: Annotated[
        Path | None,
        typer.Option("--demos", help="File of 'adahi demos'. Default: record as the recipe says."),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(help="Train these policies alone, comma-separated, on the tokenizer there."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Replaces every model's seed of the recipe.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Train tokenizer, draft and target. A run that was stopped goes on where it was."""
    from adahi_ros.evaluation.train import train_recipe
    from adahi_ros.policy.recipe import load_recipe
    from adahi_ros.trajectories import Trajectories

    out = out if out is not None else Path("checkpoints") / task
    steps = load_recipe(recipe if recipe is not None else asset(f"config/recipes/{task}.yaml"))
    data = Trajectories.load(demonstrations) if demonstrations is not None else None
    chosen = [name.strip() for name in only.split(",")] if only is not None else None
    with progress() as bar:
        summary = train_recipe(task, steps, out, command_line(), bar, data=data, only=chosen, seed=seed)
    for name, figures in summary["models"].items():
        say(
            f"{name}: {figures['parameters']:,} weights, loss {figures['loss']:.4g}, "
            f"{figures['seconds']:.0f} s"
        )
    say(f"{out}: trained; loss curves in {out / 'losses.png'}")
    write_json(json_file, summary)


@app.command()
def calibrate(
    task: TaskName,
    rate: Annotated[
        float | None, typer.Option(help="Transmission rate to reach, between 0 and 1. Default: 0.6.")
    ] = None,
    rejection: Annotated[
        float | None, typer.Option(help="Instead of a rate: set the threshold at this rejection probability.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Parameter file. Default: config/TASK.yaml.")] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Calibration episodes.")] = 200,
    smoothing: Annotated[
        float | None,
        typer.Option(help="Weight of the newest action. Default: what ranks rejections best."),
    ] = None,
    normalization: Annotated[str, typer.Option(help="Of the deviation: std or average.")] = "std",
    draft_temperature: Annotated[float, typer.Option(help="At which the draft samples.")] = 1.0,
    checkpoints: Checkpoints = None,
    backend: Backend = "onnxruntime",
    picture: Annotated[
        Path | None, typer.Option(help="Picture to write. Default: results/calibration-TASK.png.")
    ] = None,
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Measure how deviation tells rejection; write thresholds as a ROS parameter file."""
    from adahi_ros.evaluation.calibrate import calibrate as run
    from adahi_ros.evaluation.calibration_figure import draw_calibration
    from adahi_ros.evaluation.tables import calibration_table

    if rate is not None and rejection is not None:
        raise ValueError(f"rate: {rate}, must be left out where rejection ({rejection}) is given")
    out = out if out is not None else Path("config") / f"{task}.yaml"
    policies = load_policies(folder_of(task, checkpoints), backend)
    with console.status("calibrating") as status:
        found = run(
            task,
            policies,
            DEFAULT_RATE if rate is None else rate,
            seed,
            episodes,
            smoothing,
            normalization,
            draft_temperature,
            rejection,
            lambda line: status.update(f"calibrating: {line}"),
        )
    found.save(out, "deviation", command_line())
    picture = picture if picture is not None else Path("results") / f"calibration-{task}.png"
    draw_calibration(found, picture)
    console.print(calibration_table(found))
    say(f"parameters: {out}\npicture: {picture}")
    write_json(json_file, {"task": task, "seed": seed, "thresholds": found.thresholds, **found.figures})


def load_policies(folder: Path, backend: str) -> Any:
    """Load the draft and the target of a folder."""
    from adahi_ros.evaluation.evaluate import Policies
    from adahi_ros.policy.backends import load_policy

    return Policies(load_policy(folder / "draft", backend), load_policy(folder / "target", backend))


@app.command()
def export(
    task: TaskName,
    checkpoints: Checkpoints = None,
) -> None:
    """Write NAME.onnx beside each policy, for robots without torch."""
    from adahi_ros.policy.checkpoint import load_checkpoint
    from adahi_ros.policy.onnx_export import export as write_onnx

    folder = folder_of(task, checkpoints)
    for name in ("draft", "target"):
        checkpoint = load_checkpoint(folder / name)
        path = checkpoint.weights.with_suffix(".onnx")
        write_onnx(checkpoint, path)
        say(f"{path}: {path.stat().st_size / 1e3:.0f} kB")


Rate = Annotated[float | None, typer.Option(help="Recalibrate every gate to this transmission rate first.")]
DraftTemperature = Annotated[
    float | None, typer.Option(help="At which the draft samples; recalibrates the gates.")
]
CalibrationFile = Annotated[
    Path | None, typer.Option(help="File of 'adahi calibrate'. Default: config/TASK.yaml.")
]


def calibration_for(
    task: str,
    policies: Any,
    path: Path | None,
    rate: float | None,
    draft_temperature: float | None,
    seed: int,
) -> Any:
    """Load a calibration; make it anew where the user asks for another rate or temperature."""
    from adahi_ros.evaluation.calibrate import EPISODES
    from adahi_ros.evaluation.calibrate import calibrate as run
    from adahi_ros.speculation.parameter_file import load_calibration

    found = load_calibration(path if path is not None else asset(f"config/{task}.yaml"))
    made_for = (found.task, found.draft, found.target)
    if rate is None and made_for != (task, policies.draft.digest, policies.target.digest):
        raise ValueError(
            f"calibration: made for other policies or another task ({found.task}); run "
            f"'adahi calibrate {task}' for these or pass --rate"
        )
    if rate is None and draft_temperature in (None, found.draft_temperature):
        return found
    with console.status("recalibrating") as status:
        return run(
            task,
            policies,
            found.transmission_rate if rate is None else rate,
            seed,
            EPISODES,
            found.smoothing,
            found.normalization,
            found.draft_temperature if draft_temperature is None else draft_temperature,
            say=lambda line: status.update(f"recalibrating: {line}"),
        )


def report(
    task: str, seed: int, episodes: int, found: Any, policies: Any, figures: dict[str, Any]
) -> dict[str, Any]:
    """Return the figures of a comparison as they are written."""
    return {
        "task": task,
        "seed": seed,
        "episodes": episodes,
        "draft_temperature": found.draft_temperature,
        "parameters": {"draft": policies.draft.spec.parameters, "target": policies.target.spec.parameters},
        "methods": figures,
    }


@app.command()
def evaluate(
    task: TaskName,
    methods: Annotated[
        str, typer.Option("--methods", "--method", help="One, or several separated by commas.")
    ] = "adahi,hybrid,draft,target,random,uncertainty",
    episodes: Annotated[int, typer.Option(min=1, help="Per method, the same ones for each.")] = 600,
    rate: Rate = None,
    draft_temperature: DraftTemperature = None,
    calibration: CalibrationFile = None,
    checkpoints: Checkpoints = None,
    backend: Backend = "onnxruntime",
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Compare methods on the same episodes, in process."""
    from adahi_ros.evaluation.evaluate import evaluate_method, held_out
    from adahi_ros.evaluation.methods import parse_methods
    from adahi_ros.evaluation.tables import method_table
    from adahi_ros.tasks import make

    names = parse_methods(methods)
    policies = load_policies(folder_of(task, checkpoints), backend)
    found = calibration_for(task, policies, calibration, rate, draft_temperature, seed)
    expert = held_out(task, seed)
    figures = {}
    with progress() as bar:
        for name in names:
            job = bar.add_task(f"{name}: steps", total=make(task).spec.max_steps, note="")
            figures[name] = evaluate_method(
                name,
                task,
                policies,
                found,
                seed,
                range(episodes),
                expert,
                partial(show_step, bar, job),
            )
            bar.update(job, note=f"success {figures[name]['success_rate']:.3f}")
    console.print(method_table(figures, f"{task}, {episodes} episodes, seed {seed}"))
    write_json(json_file, report(task, seed, episodes, found, policies, figures))


@app.command()
def demo(
    task: TaskName,
    methods: Annotated[
        str, typer.Option("--methods", "--method", help="One, or several separated by commas.")
    ] = "adahi,hybrid,draft,target,random",
    episodes: Annotated[int, typer.Option(min=1, help="Per method, the same ones for each.")] = 20,
    real_time: Annotated[
        bool, typer.Option("--real-time", help="Run at the task's rate instead of as fast as answers come.")
    ] = False,
    deadline_s: Annotated[
        float | None,
        typer.Option(
            help="For the target's answer, s. Default: one control period; 10 where the world waits."
        ),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Picture to write. Default: results/demo-TASK.png.")
    ] = None,
    rate: Rate = None,
    draft_temperature: DraftTemperature = None,
    calibration: CalibrationFile = None,
    checkpoints: Checkpoints = None,
    backend: Backend = "onnxruntime",
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Run robot, draft policy and target verifier as three processes over DDS."""
    from adahi_ros.evaluation.evaluate import expert_error, held_out
    from adahi_ros.evaluation.live_view import LiveView
    from adahi_ros.evaluation.methods import METHODS, parse_methods
    from adahi_ros.evaluation.repeat import repeated_true_skip_ratio
    from adahi_ros.evaluation.run_figure import draw_run
    from adahi_ros.evaluation.run_metrics import run_figures
    from adahi_ros.evaluation.tables import method_table
    from adahi_ros.nodes.dds_run import run_over_dds
    from adahi_ros.speculation.controller import Controller
    from adahi_ros.speculation.verifier import TargetVerifier
    from adahi_ros.tasks import make

    names = parse_methods(methods)
    folder = folder_of(task, checkpoints).resolve()
    policies = load_policies(folder, backend)
    found = calibration_for(task, policies, calibration, rate, draft_temperature, seed)
    expert = held_out(task, seed)
    if deadline_s is None:
        deadline_s = 1 / make(task).spec.control_rate_hz if real_time else PATIENT_DEADLINE_S
    runs, figures = {}, {}
    for name in names:
        method = METHODS[name]
        config = found.controller(method.gate)
        draft = {
            "checkpoint": str(folder / "draft"),
            "backend": backend,
            "gate.name": config.gate.name,
            "gate.threshold": config.gate.threshold,
            "deviation.smoothing": config.smoothing,
            "deviation.normalization": config.normalization,
            "draft_temperature": config.draft_temperature,
            "deadline_s": deadline_s,
        }
        target = {"checkpoint": str(folder / "target"), "backend": backend, "rule": method.rule}
        with LiveView(console, name, episodes) as view:
            runs[name] = run_over_dds(task, draft, target, seed, range(episodes), not real_time, view.show)
        verifier = TargetVerifier(policies.target, method.rule)
        figures[name] = {
            "gate": config.gate.name,
            "threshold": config.gate.threshold,
            **run_figures(runs[name]),
            "true_skip_ratio": repeated_true_skip_ratio(runs[name], task, policies, found, method, seed),
            "mse": expert_error(Controller(policies.draft, config), verifier, seed, expert),
        }
        say(
            f"{method.label}: {sum(e.success for e in runs[name].episodes)} of {episodes} episodes "
            f"succeeded, {figures[name]['transmitted']} of {figures[name]['steps']} steps transmitted"
        )
    console.print(method_table(figures, f"{task} over DDS, {episodes} episodes, seed {seed}"))
    picture = picture if picture is not None else Path("results") / f"demo-{task}.png"
    draw_run(task, seed, runs, figures, picture)
    say(f"picture: {picture}")
    write_json(json_file, report(task, seed, episodes, found, policies, figures))


def main() -> None:
    """Run the command; errors that a user can mend are one line, not a traceback."""
    try:
        app()
    except KeyboardInterrupt:  # a second Ctrl-C, while the first was being obeyed
        sys.exit(STOPPED)
    except SystemExit as leaving:
        if leaving.code == STOPPED:
            Console(stderr=True).print("adahi: stopped", highlight=False)
        raise
    except ModuleNotFoundError as error:
        needed = "a sourced ROS 2 with adahi_msgs built, or 'make setup'"
        fault = f"{error.name}: not installed; this needs {needed}" if error.name in ROS else str(error)
        Console(stderr=True).print(f"[bold red]adahi:[/] {escape(fault)}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except (ValueError, OSError, RuntimeError) as error:
        Console(stderr=True).print(
            f"[bold red]adahi:[/] {escape(str(error))}", highlight=False, soft_wrap=True
        )
        sys.exit(2)
