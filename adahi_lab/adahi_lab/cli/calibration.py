# SPDX-License-Identifier: Apache-2.0
"""`adahi thresholds`, and the calibration that other verbs use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from adahi_lab.cli import options
from adahi_lab.cli.output import planned, write_json
from adahi_lab.cli.task_options import TASKS_THERE_ARE, Workers, file_name, folder_of, known_task
from adahi_ros.cli.options import Incomplete, Namespace, Overwrite, each_bag, is_shipped, number, replaceable
from adahi_ros.cli.terminal import command_line, console, say
from adahi_ros.core.assets import asset, shipped

if TYPE_CHECKING:
    from adahi_lab.calibration.parameter_file import Calibration
    from adahi_lab.evaluation.loaded_policies import PolicyFiles


def calibrate(
    workers: Workers,
    task: Annotated[str | None, Argument(help=f"{TASKS_THERE_ARE}; none with --bag.")] = None,
    bag: Annotated[
        list[Path] | None,
        Option(callback=each_bag, help="Instead of a task: bags of a robot, with its recorded observations."),
    ] = None,
    contract: Annotated[
        str | None,
        Option(help="Contract of --bag: a shipped one's name, or a YAML file. Default: that of --params."),
    ] = None,
    draft: Annotated[
        Path | None, Option(help="With --bag: the draft policy. Default: that of --params.")
    ] = None,
    target: Annotated[
        Path | None,
        Option(
            help="With --bag: the target policy. Default: the one beside the draft, else that of --params."
        ),
    ] = None,
    params: Annotated[
        Path | None,
        Option(
            help="With --bag: a robot's parameter file, such as that of 'adahi train corrector'. --out gets "
            "its values and the thresholds."
        ),
    ] = None,
    instruction: options.Instruction = "",
    namespace: Namespace = "",
    incomplete: Incomplete = False,
    rate: Annotated[
        float | None,
        Option(
            callback=options.share,
            help="Transmission rate to reach, between 0 and 1. Default: 0.6; with --params for plans, "
            "the rate that executes half of each plan; for intents, its gate stays.",
        ),
    ] = None,
    rejection: Annotated[
        float | None,
        number("Instead of a rate: set the threshold at this rejection probability.", 0.0, 1.0),
    ] = None,
    out: Annotated[Path | None, Option(help="Parameter file. Default: config/TASK.yaml.")] = None,
    episodes: Annotated[int, Option(min=1, help="Calibration episodes.")] = 200,
    searched: Annotated[int | None, Option(min=1, help="Episodes of each search. Default: all.")] = None,
    smoothing: Annotated[
        float | None,
        number("Weight of the newest action. Default: the best at ranking rejections.", 1e-3, 1.0),
    ] = None,
    normalization: Annotated[
        str | None,
        Option(help="Unit of the deviation: std or average. Default: the best at ranking rejections."),
    ] = None,
    draft_temperature: Annotated[
        float | None,
        number(
            "Sampling temperature of the draft. Default: that of --params, else 1.", *options.TEMPERATURES
        ),
    ] = None,
    checkpoints: options.Checkpoints = None,
    backend: options.Backend = "onnxruntime",
    picture: Annotated[Path | None, options.picture("calibration-TASK")] = None,
    seed: options.Seed = 0,
    overwrite: Overwrite = False,
    json_file: options.JsonFile = None,
) -> None:
    """Find each gate's threshold for a request rate, and write a ROS parameter file."""
    from adahi_lab.calibration.bag_calibration import calibrate_bags
    from adahi_lab.calibration.calibrate import Wanted, node_parameters
    from adahi_lab.calibration.calibrate import calibrate as run
    from adahi_lab.calibration.robot_file import RobotFile
    from adahi_lab.evaluation.loaded_policies import PolicyFiles
    from adahi_lab.reporting.calibration_figure import draw_calibrations
    from adahi_lab.reporting.tables import calibration_table

    if rejection is not None:
        options.left_out(f"rejection ({rejection}) is given", rate=rate)
    if bag:
        options.left_out(
            "a bag is given", task=task, rejection=rejection, checkpoints=checkpoints, searched=searched
        )
        robot = RobotFile.absent()
        if params is not None:
            robot = RobotFile.read(options.existing("--params", params), namespace)
        else:
            for option, value in (("contract", contract), ("draft", draft)):
                if value is None:
                    raise ValueError(
                        f"{option}: none, must be given with a bag, or be in the file of --params"
                    )
        robot = robot.with_options(contract, draft, target, instruction)
        name = robot.robot_type
        for option, path in zip(("--draft", "--target"), robot.policies, strict=True):
            options.policy_there(option, path)
    elif instruction or params is not None:
        option, value = ("instruction", instruction) if instruction else ("params", params)
        raise ValueError(f"{option}: {str(value)!r}, must be left out where no bag is given")
    elif task is None:
        raise ValueError("task: none, must be given where no bag is")
    else:
        name = file_name(known_task(task))
    out = replaceable("--out", out if out is not None else Path("config") / f"{name}.yaml", overwrite)
    picture = options.picture_or_default(picture, f"calibration-{name}")
    options.tried("--out", out)
    verifier: Mapping[str, object] = {}
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
            found = run(task, files, wanted, seed, episodes, workers, tell, searched)
            checkpoint = f"{name}/draft" if checkpoints is None else str((checkpoints / "draft").resolve())
            node = node_parameters(task, checkpoint, out.parent)
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


@dataclass(frozen=True)
class Setup:
    """The policies of a task, their thresholds and the seed of a run, by options."""

    rate: options.Rate = None
    draft_temperature: options.DraftTemperature = None
    calibration: options.CalibrationFile = None
    checkpoints: options.Checkpoints = None
    backend: options.Backend = "onnxruntime"
    seed: options.Seed = 0

    def files(self, task: str) -> PolicyFiles:
        """Return the policies; raises as `folder_of`."""
        from adahi_lab.evaluation.loaded_policies import PolicyFiles

        return PolicyFiles(folder_of(task, self.checkpoints), self.backend)

    def calibrated(self, task: str, files: PolicyFiles, workers: int, methods: Sequence[str]) -> Calibration:
        """Load a calibration for these methods; repeat it where another rate or temperature is asked for.

        Without a file, a rate is enough; without a method with a threshold, nothing is needed. The threshold
        of a gate in the user's own file is searched at the rate of the other gates.

        Raises:
            ValueError: no file or rate is given, none is shipped, and a method has a threshold.
        """
        from adahi_lab.calibration.calibrate import Wanted
        from adahi_lab.calibration.calibrate import calibrate as run
        from adahi_lab.calibration.parameter_file import load_calibration
        from adahi_lab.evaluation.loaded_policies import check_fits, uncalibrated
        from adahi_lab.methods.file_methods import is_file_method
        from adahi_lab.methods.methods import METHODS, gates_of_methods

        name, policies = file_name(task), files.load()
        file = options.calibration_file(self.calibration, name)
        needed = gates_of_methods(methods)
        if file is None and self.rate is None and needed:
            raise ValueError(
                f"--calibration: none, must be given for {name}, of which none is shipped; or give --rate"
            )
        found = load_calibration(file) if file else uncalibrated(name, policies)
        usual = self.calibration is None and self.rate is None
        if usual and not needed and found.draft != policies.draft.digest:
            file, found = None, uncalibrated(name, policies)  # the shipped one is for the shipped policies
        say(f"policies: {files.folder}" + (f"\ncalibration: {file}" if file else ""))
        if self.rate is None:
            check_fits(found, name, policies)
        unchanged = self.rate is None and self.draft_temperature in (None, found.draft_temperature)
        own = [method for method in needed if is_file_method(method)]
        if unchanged and not own:
            return found
        drafting = not all(METHODS[method].by_plans for method in methods)
        every = [*METHODS, *methods] if policies.share_codes and drafting else methods
        wanted = Wanted.as_in(found, own if unchanged else every, self.rate, self.draft_temperature)
        with console.status("recalibrating") as status:
            made = run(
                *(task, files, wanted, self.seed),
                workers=workers,
                say=lambda line: status.update(f"recalibrating: {line}"),
            )
        _say_thresholds(made, methods, set(found.thresholds) if unchanged else set())
        return replace(found, thresholds={**made.thresholds, **found.thresholds}) if unchanged else made


def _say_thresholds(made: Calibration, methods: Sequence[str], known: set[str]) -> None:
    """Print the thresholds that a search found for these methods; `known` ones are not used."""
    from adahi_lab.methods.methods import gates_of_methods

    rates = made.figures.get("measured_rates", {})
    for method, key in gates_of_methods(methods).items():
        if key not in known:
            rate = rates.get(key, made.transmission_rate)
            say(f"threshold found for {method}: {made.thresholds[key]:.6g}, at a request rate of {rate:.3f}")
