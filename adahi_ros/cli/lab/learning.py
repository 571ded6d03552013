# SPDX-License-Identifier: Apache-2.0
"""`adahi learn`, and `adahi train --from-corrections`: drafts that learn from what the target corrects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adahi_ros.cli.lab.task_options import (
    DemonstrationsFile,
    TaskName,
    Workers,
    demonstrations_of,
    file_name,
    folder_of,
)
from adahi_ros.cli.options import (
    CalibrationFile,
    Checkpoints,
    JsonFile,
    Overwrite,
    Seed,
    existing,
    finite,
    folder_named,
    picture_file,
    recipe_file,
    replaceable,
    share,
)
from adahi_ros.cli.terminal import command_line, console, progress, say, write_json
from adahi_ros.core.assets import asset, shipped

if TYPE_CHECKING:
    from adahi_ros.lab.training.learn import LearningConfig, Lessons

Steps = Annotated[int, typer.Option(min=1, max=1_000_000, help="Optimizer steps of an update.")]
Rehearsal = Annotated[
    float,
    typer.Option(
        min=0.0, max=1.0, callback=finite, help="Share of the loss that is of the old demonstrations."
    ),
]
Pull = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=1e6,
        callback=finite,
        help="Of a draft: weight of its divergence from what it was, at old demonstrations.",
    ),
]
Worse = Annotated[
    float,
    typer.Option(
        min=0.0,
        callback=finite,
        help="The loss on demonstrations held out may rise by this share at most.",
    ),
]
NoGuard = Annotated[bool, typer.Option("--no-guard", help="Take every update as it is, whatever it forgets.")]


@dataclass(frozen=True)
class Old:
    """What says what a draft had learned from.

    Attributes:
        name: of the task or kind of robot.
        recipe: file; None for the shipped one.
        demonstrations: file of `adahi demos`; None for none.
        dataset: folder of `adahi dataset from-bag`; None for none.
        workers: processes that record, where neither is given.
    """

    name: str
    recipe: Path | None
    demonstrations: Path | None
    dataset: Path | None
    workers: int

    def lessons(self, folder: Path) -> Lessons:
        """Return what the draft of a folder had learned from.

        Raises:
            ValueError: there is no recipe, or one without a draft of codes, or demonstrations do not fit.
        """
        from adahi_ros.lab.tasks.demonstrations import told_to_robots
        from adahi_ros.lab.training.learn import Lessons
        from adahi_ros.lab.training.recipes import load_recipe
        from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint, load_tokenizer

        recipe = load_recipe(recipe_file(self.recipe, self.name))
        if "draft" not in recipe.policies or recipe.policies["draft"].kind != "vqbet":
            raise ValueError("--recipe: must have a policy named draft, of the kind vqbet")
        sizes = load_checkpoint(folder / "draft").sizes
        how = asdict(recipe.demonstrations)
        data = demonstrations_of(self.name, self.demonstrations, self.dataset, **how, workers=self.workers)
        data = told_to_robots(data, self.name)
        fit = recipe.policies["draft"].fit
        return Lessons(data, load_tokenizer(folder), sizes.window_length, fit)


def learning_config(
    steps: int, rehearsal: float, pull: float, worse: float, no_guard: bool
) -> LearningConfig:
    """Return how to learn, of options."""
    from adahi_ros.lab.training.learn import LearningConfig

    return LearningConfig(rehearsal, pull, steps, float("inf") if no_guard else worse)


def learn_from_bags(
    bags: Sequence[Path],
    old: Old,
    checkpoints: Path | None,
    out: Path,
    contract: str | None,
    namespace: str,
    incomplete: bool,
    config: LearningConfig,
    most: int,
    seed: int,
) -> dict[str, Any]:
    """Have a draft learn from the corrections of bags; return the figures.

    Args:
        bags: of runs.
        old: what the draft had learned from.
        checkpoints: folder that it begins with; None for the shipped one.
        out: folder to write.
        contract: a shipped one's name, or a file; None for the task's.
        namespace: of the robot.
        incomplete: take what is whole of bags that were cut off.
        config: how it learns.
        most: corrections at most; of more, some are drawn.
        seed: of batches, and of these.
    """
    import torch

    from adahi_ros.contract.parsing import load_contract
    from adahi_ros.lab.calibration.bag_corrections import WHY, read_corrections
    from adahi_ros.lab.training.fitting import Run
    from adahi_ros.lab.training.learn import learn_from
    from adahi_ros.lab.training.policy_corrections import Corrections
    from adahi_ros.lab.training.reservoir import Reservoir
    from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint

    begin = checkpoints if checkpoints is not None else folder_named(old.name)
    read = load_contract(contract if contract is not None else old.name)
    if read.robot_type != old.name:
        raise ValueError(f"contract: of a robot {read.robot_type!r}, must be {old.name!r}, the task")
    checkpoint = load_checkpoint(begin / "draft")
    signature = checkpoint.sizes.signature(checkpoint.decoder.fingerprint)
    with console.status("reading"):
        found = read_corrections(
            *(bags, read, signature, checkpoint.decoder.range.sound, namespace), say if incomplete else None
        )
    for why, count in found.left_out.items():
        say(f"left out: {count} replies: {WHY[why]}")
    kept = Reservoir[Corrections](most, seed).add(found)
    lessons = old.lessons(begin)
    torch.set_num_threads(1)
    with progress() as bar:
        job = bar.add_task("draft", total=config.steps, note="")
        run = Run(seed, on_step=lambda step, loss: bar.update(job, completed=step, note=f"loss {loss:.4g}"))
        learned = learn_from(begin, out, lessons, kept, config, command_line(), run)
    figures, held_out = learned.figures, learned.figures["held_out"]
    likelihood = figures["log_likelihood"]
    say(
        f"{len(found)} replies, of which the draft's own stood in {found.acceptance:.2f}; their "
        f"log-likelihood {likelihood['before']:.2f}, now {likelihood['after']:.2f}"
    )
    say(f"loss on demonstrations held out {held_out['before']:.3f}, now {held_out['after']:.3f}")
    if not figures["share"]:
        bound = "" if held_out["bound"] is None else f"; the bound is {held_out['bound']:.3f}"
        say(f"{out}: the draft is as it was: {figures['why']}{bound}")
        return figures
    say(
        f"{out}: learned; thresholds of the draft before are not for this one: 'adahi calibrate' makes others"
    )
    return figures


def learn(
    task: TaskName,
    out: Annotated[
        Path,
        typer.Option(
            help="Folder to write: the draft that has learned, and all beside it. A run that was stopped "
            "goes on; what an earlier one made is replaced."
        ),
    ],
    workers: Workers,
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="So often it runs, and learns.")] = 10,
    episodes: Annotated[int, typer.Option(min=1, max=100_000, help="Of each round, to learn from.")] = 20,
    ask: Annotated[
        str,
        typer.Option(
            help="When it asks the target: a method that drafts, and the draft learns; or one of corrected "
            "plans, such as corrector_8, and the corrector does."
        ),
    ] = "adahi",
    explore: Annotated[
        str,
        typer.Option(
            help="When it does in the episodes to learn from, such as hybrid, at every step. Default: --ask."
        ),
    ] = "",
    rate: Annotated[
        float | None,
        typer.Option(
            callback=share,
            help="Set the threshold to this transmission rate in each round. Default: leave it.",
        ),
    ] = None,
    evaluated: Annotated[
        int, typer.Option(min=0, max=100_000, help="Episodes that each draft is looked at in.")
    ] = 100,
    steps: Steps = 300,
    rehearsal: Rehearsal = 0.5,
    pull: Pull = 0.0,
    worse: Worse = 0.02,
    no_guard: NoGuard = False,
    most: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Corrections that are kept; of more, some are drawn.")
    ] = 20_000,
    checkpoints: Checkpoints = None,
    calibration: CalibrationFile = None,
    recipe: Annotated[
        Path | None, typer.Option(help="Of the draft, or corrector. Default: that of config/recipes.")
    ] = None,
    demonstrations: DemonstrationsFile = None,
    picture: Annotated[
        Path | None, typer.Option(help="Picture to write. Default: results/learning-TASK.png.")
    ] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    json_file: JsonFile = None,
) -> None:
    """Learn between episodes, in simulation: run, learn from what the target corrected, and run again."""
    import torch

    from adahi_ros.gates.parameter_file import load_calibration
    from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles, check_fits
    from adahi_ros.lab.methods.methods import METHODS, parse_methods
    from adahi_ros.lab.reporting.learning_figure import draw_learning, learning_table
    from adahi_ros.lab.training.learn_corrector import CorrectorLearner
    from adahi_ros.lab.training.learn_draft import DraftLearner
    from adahi_ros.lab.training.learn_rounds import Learner, Rounds, learn_in_rounds
    from adahi_ros.lab.training.recipes import load_pupils

    name = file_name(task)
    how = Rounds(rounds, episodes, ask, explore, rate, evaluated, most=most, seed=seed)
    replaceable("--out", out / "draft.json", overwrite)
    picture = picture_file("--picture", picture or Path("results") / f"learning-{name}.png")
    begin = folder_of(task, checkpoints)
    file = f"config/{name}.yaml"
    if calibration is None and not shipped(file):
        raise ValueError(f"--calibration: none, must be given for {name}, of which none is shipped")
    found = load_calibration(existing("--calibration", calibration) if calibration else asset(file))
    check_fits(found, name, PolicyFiles(begin, "onnxruntime").load())
    torch.set_num_threads(1)
    config = learning_config(steps, rehearsal, pull, worse, no_guard)
    learner: Learner[Any, Any]
    if METHODS[parse_methods(ask)[0]].by_plans:
        if demonstrations is not None:
            raise ValueError(f"demos: {demonstrations}, must be left out where plans are corrected")
        pupils = load_pupils(recipe_file(recipe, f"{name}-plans")).corrector
        with console.status("lessons to rehearse"):
            learner = CorrectorLearner(task, begin, pupils, found, how, config, workers)
    else:
        lessons = Old(name, recipe, demonstrations, None, workers).lessons(begin)
        learner = DraftLearner(task, begin, lessons, found, how, config, workers)
    figures = learn_in_rounds(learner, begin, out, how, command_line(), say)
    write_json(json_file, figures)
    if evaluated:
        console.print(learning_table(figures))
        draw_learning({name: figures}, picture)
        say(f"picture: {picture}")
    say(f"{out}: learned; thresholds of a draft: adahi calibrate {task} --checkpoints {out} --out FILE")
