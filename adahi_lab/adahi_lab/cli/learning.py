# SPDX-License-Identifier: Apache-2.0
"""`adahi train policy --from-corrections`: learning from the target's corrections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from adahi_lab.cli import options, task_options
from adahi_lab.cli.output import fit_bar
from adahi_lab.figures import Figures
from adahi_ros.cli.options import Incomplete, Namespace
from adahi_ros.cli.terminal import command_line, console, say
from adahi_ros.core.registry import argument

if TYPE_CHECKING:
    from adahi_lab.datasets.trajectories import Trajectories
    from adahi_lab.training.learn import LearningConfig, Lessons
    from adahi_lab.training.recipes import Recipe

PersonWeight = Annotated[
    int,
    Option(min=1, max=1000, help="How often a person's action counts, compared with the target's."),
]


def old_lessons(
    name: str,
    recipe: Path | None,
    demonstrations: Path | None,
    dataset: Path | None,
    workers: int,
    folder: Path,
    beside: Sequence[Trajectories] = (),
) -> Lessons:
    """Return what the draft of a folder has learned from.

    Args:
        name: of the task or kind of robot.
        recipe: file; None for the shipped one.
        demonstrations: file of `adahi data simulate`; None for none.
        dataset: folder of `adahi data from-bag`; None for none.
        workers: processes that record, where neither is given.
        folder: of the draft.
        beside: further episodes.

    Raises:
        ValueError: there is no recipe, or one without a draft of codes, or demonstrations do not fit.
    """
    from adahi_lab.datasets.trajectories import Trajectories
    from adahi_lab.tasks.demonstrations import seen_by_robots
    from adahi_lab.training.learn import Lessons
    from adahi_lab.training.vqbet_files import load_tokenizer
    from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint

    steps = recipe_with_draft(options.recipe_file(recipe, name))
    sizes = load_checkpoint(folder / "draft").sizes
    data = task_options.demonstrations_of(
        name, demonstrations, dataset, **asdict(steps.demonstrations), workers=workers
    )
    if beside:
        data = Trajectories.joined([data, *beside])
    fit = steps.policies["draft"].fit
    return Lessons(seen_by_robots(data, name), load_tokenizer(folder), sizes.window_length, fit)


def recipe_with_draft(file: Path) -> Recipe:
    """Read a recipe that has a draft of codes.

    Raises:
        ValueError: it has none, or is no recipe.
    """
    from adahi_lab.training.recipes import load_recipe

    recipe = load_recipe(file)
    if "draft" not in recipe.policies or recipe.policies["draft"].kind != "vqbet":
        raise ValueError("--recipe: must have a policy named draft, of the kind vqbet")
    return recipe


@dataclass(frozen=True)
class Learning:
    """How a policy learns from corrections, by options."""

    steps: int = argument(300, "Optimizer steps of an update.", 1, 1_000_000)
    rehearsal: float = argument(0.5, "Share of the old demonstrations in the loss.", 0.0, 1.0)
    worse: float = argument(
        0.02, "Largest allowed rise of the loss on held-out demonstrations, as a share.", 0.0
    )
    no_guard: Annotated[bool, Option("--no-guard", help="Accept every update, whatever it forgets.")] = False
    most: int = argument(20_000, "Largest number of corrections; more are subsampled.", 1, 10_000_000)

    def config(self, person_weight: int = 4) -> LearningConfig:
        """Return the settings of the learning."""
        from adahi_lab.training.learn import LearningConfig

        worse = float("inf") if self.no_guard else self.worse
        return LearningConfig(self.rehearsal, self.steps, worse, person_weight)


@dataclass(frozen=True)
class CorrectedRuns:
    """Where a draft that learns from bags begins, and how they are read, by options."""

    checkpoints: Annotated[
        Path | None, Option(help="With --from-corrections: folder to start from. Default: the shipped one.")
    ] = None
    contract: Annotated[
        str | None, Option(help="Contract of these bags: a shipped one's name, or a file. Default: TASK's.")
    ] = None
    namespace: Namespace = ""
    incomplete: Incomplete = False


def learn_from_bags(
    bags: Sequence[Path],
    name: str,
    old: Callable[[Path], Lessons],
    out: Path,
    runs: CorrectedRuns,
    config: LearningConfig,
    most: int,
    seed: int,
) -> Figures:
    """Train a draft on the corrections in bags, the target's and a person's; return the figures.

    Args:
        bags: of runs.
        name: of the task or kind of robot.
        old: what the draft of a folder has learned from.
        out: folder to write.
        runs: where it begins, and how bags are read.
        config: how it learns.
        most: largest number of corrections; more are subsampled.
        seed: of batches, and of these.
    """
    import torch

    from adahi_lab.calibration.bag_corrections import WHY, read_corrections
    from adahi_lab.training.fitting import Run
    from adahi_lab.training.learn import learn_from
    from adahi_lab.training.rows import sampled
    from adahi_ros.contract.parsing import load_contract
    from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint

    begin = runs.checkpoints if runs.checkpoints is not None else options.folder_named(name)
    read = load_contract(runs.contract if runs.contract is not None else name)
    if read.robot_type != name:
        raise ValueError(f"contract: of a robot {read.robot_type!r}, must be {name!r}, the task")
    checkpoint = load_checkpoint(begin / "draft")
    signature = checkpoint.signature
    with console.status("reading"):
        found = read_corrections(
            *(bags, read, signature, checkpoint.decoder.range.sound, runs.namespace),
            say if runs.incomplete else None,
        )
    for why, count in found.left_out.items():
        say(f"left out: {count} replies: {WHY[why]}")
    kept = sampled(found, most, seed)
    lessons = old(begin)
    torch.set_num_threads(1)
    with fit_bar("draft", config.steps) as on_step:
        run = Run(seed, on_step=on_step)
        learned = learn_from(begin, out, lessons, kept, config, command_line(), run)
    figures, held_out = learned.figures, learned.figures["held_out"]
    likelihood = figures["log_likelihood"]
    person = int(found.person.sum())
    stood = "" if found.acceptance is None else f", of which the draft's own stood in {found.acceptance:.2f}"
    drove = f"; {person} actions of a person, each counted {config.person_weight} times" if person else ""
    say(
        f"{len(found) - person} replies{stood}{drove}; their "
        f"log-likelihood {likelihood['before']:.2f}, now {likelihood['after']:.2f}"
    )
    say(f"loss on demonstrations held out {held_out['before']:.3f}, now {held_out['after']:.3f}")
    if not figures["share"]:
        bound = "" if held_out["bound"] is None else f"; the bound is {held_out['bound']:.3f}"
        say(f"{out}: the draft is as it was: {figures['why']}{bound}")
        return figures
    say(f"{out}: learned; old thresholds do not fit this draft: 'adahi thresholds' makes new ones")
    return figures
