# SPDX-License-Identifier: Apache-2.0
"""`adahi calibrate`, and the calibration that other verbs use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adahi_ros.cli.lab.task_options import TASKS_THERE_ARE, Workers, file_name, folder_of, known_task
from adahi_ros.cli.options import (
    TEMPERATURES,
    Backend,
    Checkpoints,
    Incomplete,
    Instruction,
    JsonFile,
    Namespace,
    Overwrite,
    Seed,
    existing,
    finite,
    picture_file,
    policy_there,
    replaceable,
    share,
    tried,
)
from adahi_ros.cli.terminal import command_line, console, planned, say, write_json
from adahi_ros.core.assets import asset, is_shipped, shipped

if TYPE_CHECKING:
    from adahi_ros.gates.parameter_file import Calibration
    from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles


def calibrate(
    workers: Workers,
    task: Annotated[
        str | None,
        typer.Argument(help=f"{TASKS_THERE_ARE}; none with --bag."),
    ] = None,
    bag: Annotated[
        list[Path] | None,
        typer.Option(help="Instead of a task: bags of a robot, whose observations are taken as they were."),
    ] = None,
    contract: Annotated[
        str | None,
        typer.Option(help="Of --bag: a shipped contract's name, or a YAML file. Default: that of --params."),
    ] = None,
    draft: Annotated[
        Path | None, typer.Option(help="With --bag: the draft policy. Default: that of --params.")
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option(
            help="With --bag: the target policy. Default: the one beside the draft, else that of --params."
        ),
    ] = None,
    params: Annotated[
        Path | None,
        typer.Option(
            help="With --bag: parameter file of robot and verifier, such as that of 'adahi distill'. --out "
            "has what it says, and the thresholds."
        ),
    ] = None,
    instruction: Instruction = "",
    namespace: Namespace = "",
    incomplete: Incomplete = False,
    rate: Annotated[
        float | None,
        typer.Option(
            callback=share,
            help="Transmission rate to reach, between 0 and 1. Default: 0.6; where --params goes by plans, "
            "what has half of each plan gone by.",
        ),
    ] = None,
    rejection: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            callback=finite,
            help="Instead of a rate: set the threshold at this rejection probability.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Parameter file. Default: config/TASK.yaml.")] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Calibration episodes.")] = 200,
    smoothing: Annotated[
        float | None,
        typer.Option(
            min=1e-3,
            max=1.0,
            callback=finite,
            help="Weight of the newest action. Default: what ranks rejections best.",
        ),
    ] = None,
    normalization: Annotated[
        str | None,
        typer.Option(help="Of the deviation: std or average. Default: what ranks rejections best."),
    ] = None,
    draft_temperature: Annotated[
        float | None,
        typer.Option(help="At which the draft samples. Default: that of --params, else 1.", **TEMPERATURES),
    ] = None,
    checkpoints: Checkpoints = None,
    backend: Backend = "onnxruntime",
    picture: Annotated[
        Path | None, typer.Option(help="Picture to write. Default: results/calibration-TASK.png.")
    ] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    json_file: JsonFile = None,
) -> None:
    """Measure how deviation tells rejection; write thresholds as a ROS parameter file."""
    from adahi_ros.lab.calibration.bag_calibration import calibrate_bags
    from adahi_ros.lab.calibration.calibrate import Wanted, node_parameters
    from adahi_ros.lab.calibration.calibrate import calibrate as run
    from adahi_ros.lab.calibration.robot_file import RobotFile
    from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles
    from adahi_ros.lab.reporting.calibration_figure import draw_calibrations
    from adahi_ros.lab.reporting.tables import calibration_table

    if rate is not None and rejection is not None:
        raise ValueError(f"rate: {rate}, must be left out where rejection ({rejection}) is given")
    if bag:
        for option, value in (("task", task), ("rejection", rejection), ("checkpoints", checkpoints)):
            if value is not None:
                raise ValueError(f"{option}: {value}, must be left out where a bag is given")
        robot = RobotFile.absent()
        if params is not None:
            robot = RobotFile.read(existing("--params", params), namespace)
        else:
            for option, value in (("contract", contract), ("draft", draft)):
                if value is None:
                    raise ValueError(
                        f"{option}: none, must be given with a bag, or be in the file of --params"
                    )
        robot = robot.with_options(contract, draft, target, instruction)
        name = robot.robot_type
        for option, path in zip(("--draft", "--target"), robot.policies, strict=True):
            policy_there(option, path)
    elif instruction or params is not None:
        option, value = ("instruction", instruction) if instruction else ("params", params)
        raise ValueError(f"{option}: {str(value)!r}, must be left out where no bag is given")
    elif task is None:
        raise ValueError("task: none, must be given where no bag is")
    else:
        name = file_name(known_task(task))
    out = replaceable("--out", out if out is not None else Path("config") / f"{name}.yaml", overwrite)
    default = Path("results") / f"calibration-{name}.png"
    picture = picture_file("--picture", picture if picture is not None else default)
    tried("--out", out)
    verifier: dict[str, Any] = {}
    wanted = Wanted(rate, smoothing, normalization, draft_temperature, rejection)
    with console.status("calibrating") as status:

        def tell(line: str) -> None:
            status.update(f"calibrating: {line}")

        if bag:
            found, node, verifier = calibrate_bags(
                *(robot, bag, namespace, backend, wanted, seed),
                say if incomplete else None,
                planned(status),
                tell,
            )
        else:
            assert task is not None
            files = PolicyFiles(folder_of(task, checkpoints), backend)
            found = run(task, files, wanted, seed, episodes, workers, tell)
            node = node_parameters(
                task, f"{name}/draft" if checkpoints is None else str((checkpoints / "draft").resolve())
            )
    found.save(out, "deviation", command_line(), node, verifier)
    write_json(json_file, {"task": name, "seed": seed, "thresholds": found.thresholds, **found.figures})
    console.print(calibration_table(found))
    if "gate" in node:
        say("asks where {name} is above {threshold:.3g}".format(**node["gate"]))
    say(f"parameters: {out.resolve()}")
    if not bag and shipped(f"config/{name}.yaml") and not is_shipped(out):
        say(f"other verbs take them with --calibration {out}, else {asset(f'config/{name}.yaml')}")
    if "bins" in found.figures:
        draw_calibrations([found], picture)
        say(f"picture: {picture}")


def calibration_for(
    task: str,
    files: PolicyFiles,
    path: Path | None,
    rate: float | None,
    draft_temperature: float | None,
    seed: int,
    workers: int,
    methods: Sequence[str],
) -> Calibration:
    """Load a calibration for these methods; make it anew where the user asks for another rate or temperature.

    Where there is no file, a rate is all it takes; where no method has a threshold, not even that. That of a
    gate in a file of the user's own, which no calibration has, is searched for the rate of the others.

    Raises:
        ValueError: nobody gave a file or a rate, none is shipped, and a method has a threshold.
    """
    from adahi_ros.gates.parameter_file import Calibration, load_calibration
    from adahi_ros.lab.calibration.calibrate import Wanted
    from adahi_ros.lab.calibration.calibrate import calibrate as run
    from adahi_ros.lab.evaluation.loaded_policies import check_fits
    from adahi_ros.lab.methods.file_methods import is_file_method
    from adahi_ros.lab.methods.methods import METHODS, gates_of_methods

    name, policies = file_name(task), files.load()
    shipped_file = f"config/{name}.yaml"
    if path is None and not shipped(shipped_file):
        if rate is None and gates_of_methods(methods):
            raise ValueError(
                f"--calibration: none, must be given for {name}, of which none is shipped; or give --rate"
            )
        digests = policies.draft.digest, policies.target.digest
        found = Calibration(name, *digests, 0.5, "std", 1.0, 1.0, {})
        say(f"policies: {files.folder}")
    else:
        given = existing("--calibration", path) if path is not None else asset(shipped_file)
        found = load_calibration(given)
        say(f"policies: {files.folder}\ncalibration: {given}")
    if rate is None:
        check_fits(found, name, policies)
    unchanged = rate is None and draft_temperature in (None, found.draft_temperature)
    own = [method for method in gates_of_methods(methods) if is_file_method(method)]
    if unchanged and not own:
        return found
    drafting = not all(METHODS[method].by_plans for method in methods)
    every = [*METHODS, *methods] if policies.share_codes and drafting else methods
    wanted = Wanted.as_in(found, own if unchanged else every, rate, draft_temperature)
    with console.status("recalibrating") as status:
        made = run(
            *(task, files, wanted, seed),
            workers=workers,
            say=lambda line: status.update(f"recalibrating: {line}"),
        )
    return replace(found, thresholds={**made.thresholds, **found.thresholds}) if unchanged else made
