# SPDX-License-Identifier: Apache-2.0
"""One trial by one worker: train, evaluate; continues an earlier worker's state.

Its costs are seconds of a core and of a worker, and its price, over all its workers.
"""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from optuna import TrialPruned
from optuna.exceptions import ExperimentalWarning
from optuna.storages import RetryHeartbeatStaleTrialCallback
from optuna.trial import BaseTrial, Trial
from rich.progress import Progress

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.episodes import tuning_episodes
from adahi_lab.evaluation.evaluate import Comparison, outcome_figures, play_all
from adahi_lab.evaluation.loaded_policies import PLANS, Policies, PolicyFiles
from adahi_lab.figures import Figures
from adahi_lab.methods.methods import METHODS
from adahi_lab.tasks.demonstrations import collect_parallel
from adahi_lab.training.recipes import Recipe
from adahi_lab.training.staging import STATES
from adahi_lab.training.train import train_recipe
from adahi_lab.training.trainer import Stages, Write
from adahi_lab.tuning.search_space import Choices, Range, Space, Value, Varied
from adahi_ros.core.written_files import save_json

HOUR_S = 3600.0
COSTS = ("cpu_s", "wall_s", "cost")


@dataclass
class Meter:
    """Counts costs, added to those of earlier workers.

    Attributes:
        trial: stores the costs for later workers.
        price_per_hour: of this worker.
    """

    trial: Trial
    price_per_hour: float
    _before: dict[str, float] = field(init=False)
    _cpu: float = field(default_factory=time.process_time)
    _wall: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._before = {name: self.trial.user_attrs.get(name, 0.0) for name in COSTS}

    def note(self) -> None:
        """Note the costs so far.

        Raises:
            UpdateFinishedTrialError: another worker has the trial now.
        """
        wall = time.monotonic() - self._wall
        spent = time.process_time() - self._cpu, wall, wall / HOUR_S * self.price_per_hour
        for name, value in zip(COSTS, spent, strict=True):
            self.trial.set_user_attr(name, round(self._before[name] + value, 6))


warnings.filterwarnings("ignore", category=ExperimentalWarning)  # of heartbeats

CHECKPOINTS = "checkpoints"
TRAINED = "trained.json"  # beside the checkpoints when they are complete
DIGITS = 6  # of a threshold in a method's name
FIGURES = ("success_rate", "transmission_rate", "calls_per_episode")


@dataclass(frozen=True)
class Setting:
    """The settings of a trial.

    Attributes:
        values: of the recipe, by path.
        method: a key of `METHODS`.
        threshold: of its gate, where it has one.
        draft_temperature: at which the draft samples; None takes the calibration's.
    """

    values: dict[str, Value]
    method: str
    threshold: float | None
    draft_temperature: float | None

    @property
    def name(self) -> str:
        """The method's name, for use with the calibration of `calibrated`."""
        by_name = self.threshold is not None and METHODS[self.method].by_plans
        return f"{self.method}@{self.threshold}" if by_name else self.method

    def calibrated(self, base: Calibration, policies: Policies) -> Calibration:
        """Return a calibration of these policies, with this threshold and temperature."""
        gate = METHODS[self.name].calibrated
        temperature = self.draft_temperature
        return replace(
            base,
            draft=policies.draft.digest,
            target=policies.target.digest,
            draft_temperature=base.draft_temperature if temperature is None else temperature,
            thresholds={} if gate is None or self.threshold is None else {gate: self.threshold},
            figures={},
        )


def suggested(trial: BaseTrial, space: Space) -> Setting:
    """Return the settings of a trial."""

    def value(name: str, varied: Varied) -> Any:
        if isinstance(varied, Choices):
            return trial.suggest_categorical(name, varied.choices)
        if varied.whole:
            return trial.suggest_int(
                name, int(varied.low), int(varied.high), step=varied.step, log=varied.log
            )
        return trial.suggest_float(name, varied.low, varied.high, log=varied.log)

    def number(name: str, varied: Range | None) -> float | None:
        return None if varied is None else float(f"{value(name, varied):.{DIGITS}g}")

    values = {path: value(path, varied) for path, varied in space.vary.items()}
    method = trial.suggest_categorical("method", tuple(space.methods))
    threshold = number(f"threshold.{method}", space.methods[method])
    return Setting(values, method, threshold, number("draft_temperature", space.draft_temperature))


@dataclass(frozen=True)
class Ground:
    """The common basis of every trial of a search; picklable, to send it to workers.

    Attributes:
        task: what `make` takes.
        space: what is varied.
        base: folder of checkpoints; those not trained are used.
        calibration: its values are used where they are not varied.
        seed: of every evaluation; those of the training are the recipe's.
        out: folder of the search, which all workers share.
        command: noted in the checkpoints.
    """

    task: str
    space: Space
    base: Path
    calibration: Calibration
    seed: int
    out: Path
    command: str

    def folder(self, number: int) -> Path:
        """Return the folder of a trial, or of a later worker's attempt at it, by its number in the study."""
        return self.out / "trials" / f"{number:04d}"

    def demonstrations(self, recipe: Recipe) -> Trajectories:
        """Return a recipe's demonstrations; recorded once for all trials."""
        arguments = asdict(recipe.demonstrations)
        path = self.out / "demonstrations" / f"{'-'.join(map(str, arguments.values()))}.safetensors"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            collect_parallel(self.task, **arguments).trajectories.save(path)
        return Trajectories.load(path)


class Attempt:
    """A trial by one worker.

    Args:
        trial: of the study.
        ground: its basis.
        meter: counts its costs.
    """

    def __init__(self, trial: Trial, ground: Ground, meter: Meter) -> None:
        self._trial = trial
        self._ground = ground
        self._meter = meter
        self._setting = suggested(trial, ground.space)
        self._folder = ground.folder(trial.number)

    def run(self) -> float:
        """Return the objective.

        Raises:
            TrialPruned: its trend misses the best.
            ValueError: the recipe is invalid with these values.
            RuntimeError: a training diverged, or another worker has the trial.
        """
        if self._ground.space.train:
            self._take_over()
            if not (self._folder / TRAINED).is_file():
                self._train()
        folder = self._folder / CHECKPOINTS if self._ground.space.train else self._ground.base
        figures = self._measure(folder, self._ground.space.episodes)
        for name in FIGURES:
            self._trial.set_user_attr(name, figures[name])
        self._meter.note()
        return self._objective(figures)

    def _objective(self, figures: Figures) -> float:
        return float(figures["success_rate"] - self._ground.space.price * figures["transmission_rate"])

    def _take_over(self) -> None:
        """Begin with the earlier worker's state, or with the shipped checkpoints.

        The state is copied: if the earlier worker is still alive, the two do not write to one folder.
        """
        if self._folder.is_dir():
            return
        left = [
            self._ground.folder(number)
            for number in RetryHeartbeatStaleTrialCallback.retry_history(self._frozen)
        ]
        partial = self._folder.with_name(f".{self._folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        before = next((folder for folder in reversed(left) if folder.is_dir()), None)
        if before is None:
            shutil.copytree(self._ground.base, partial / CHECKPOINTS)
        else:
            shutil.copytree(before, partial)
        partial.rename(self._folder)

    @property
    def _frozen(self) -> Any:
        (found,) = (
            each for each in self._trial.study.get_trials(deepcopy=False) if each.number == self._trial.number
        )
        return found

    def _train(self) -> None:
        ground, space = self._ground, self._ground.space
        recipe = space.recipe_with(self._setting.values)
        out = self._folder / CHECKPOINTS / PLANS if space.plans else self._folder / CHECKPOINTS
        stages = Stages(space.stages.count, self._on_stage)
        with Progress(disable=True) as bar:
            trained = train_recipe(
                ground.task,
                recipe,
                out,
                ground.command,
                bar,
                ground.demonstrations(recipe),
                None if space.whole else list(space.train),
                stages=stages,
            )
        shutil.rmtree(self._folder / "stage", ignore_errors=True)
        save_json(self._folder / TRAINED, trained.figures)

    def _on_stage(self, name: str, done: int, write: Write) -> None:
        """Evaluate the last trained model; report the objective, and stop if the trend misses the best."""
        space = self._ground.space
        self._meter.note()
        if name != space.train[-1] or done >= space.stages.count or self._reported(done):
            return
        folder = self._folder / "stage"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._folder / CHECKPOINTS, folder, ignore=_trainings)
        into = folder / PLANS if space.plans else folder
        beside = self._folder / CHECKPOINTS / f"{PLANS}.training"
        training = beside if space.plans else self._folder / f"{CHECKPOINTS}.training"
        shutil.copytree(training, into, dirs_exist_ok=True, ignore=shutil.ignore_patterns(STATES))
        write(into)
        self._trial.report(self._objective(self._measure(folder, space.stages.episodes)), done)
        if self._trial.should_prune():
            self._meter.note()
            shutil.rmtree(self._folder)  # no worker continues it
            raise TrialPruned(f"stopped after part {done} of {space.stages.count}")

    def _reported(self, done: int) -> bool:
        return done in self._frozen.intermediate_values

    def _measure(self, folder: Path, episodes: int) -> Figures:
        ground, setting = self._ground, self._setting
        files = PolicyFiles(folder, "onnxruntime")
        calibration = setting.calibrated(ground.calibration, files.load())
        comparison = Comparison(ground.task, files, calibration, ground.seed)
        outcomes = play_all(comparison, [setting.name], tuning_episodes(episodes), workers=1)
        return outcome_figures(outcomes[setting.name])


def _trainings(folder: str, names: Sequence[str]) -> set[str]:
    return {name for name in names if name.endswith(".training")}
