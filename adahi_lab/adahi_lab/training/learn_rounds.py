# SPDX-License-Identifier: Apache-2.0
"""Learning between episodes, in simulation: a robot runs, learns from corrections, and runs again."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.evaluation.episodes import evaluation_episodes, lesson_episodes
from adahi_lab.evaluation.evaluate import Comparison, outcome_figures, play_all
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.training.fitting import load_run, save_run
from adahi_lab.training.learn import LearningConfig, copy_policies
from adahi_lab.training.reservoir import MOST, R, Reservoir
from adahi_lab.training.staging import StagedFolder

FIRST_EPISODE = 700_000  # of the lessons; lower numbers are for correctors, gates and acceptance rules
STATE = "learning.training.safetensors"
MODEL, KEPT = "model.", "kept."  # prefixes of tensor names
Figures = dict[str, Any]
Say = Callable[[str], None]
N = TypeVar("N", bound=nn.Module)


@dataclass(frozen=True)
class Rounds:
    """How a robot learns in rounds.

    Attributes:
        rounds: their number.
        episodes: of each, to learn from.
        ask: name of a method, which decides when to request.
        explore: another such method for the episodes to learn from; '' for the same.
        rate: transmission rate to set gates to before each round; None keeps the thresholds of the
            first draft's calibration.
        evaluated: evaluation episodes, the same after every round; 0 for none.
        calibrated: episodes for a threshold search.
        most: replies to keep, see `Reservoir`.
        seed: of all draws.

    Raises:
        ValueError: a value is out of range; names field, value and range.
    """

    rounds: int = 10
    episodes: int = 20
    ask: str = "adahi"
    explore: str = ""
    rate: float | None = None
    evaluated: int = 100
    calibrated: int = 25
    most: int = MOST
    seed: int = 0

    def __post_init__(self) -> None:
        smallest = {"rounds": 1, "episodes": 1, "evaluated": 0, "calibrated": 1, "most": 1, "seed": 0}
        for name, least in smallest.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name}: {getattr(self, name)}, must be at least {least}")
        if self.rate is not None and not 0.0 < self.rate < 1.0:
            raise ValueError(f"rate: {self.rate}, must be between 0 and 1")

    def lessons(self, number: int) -> range:
        """Return the episodes to learn from in a round, counted from 0."""
        return lesson_episodes(self.episodes, FIRST_EPISODE + number * self.episodes)


class Learner(ABC, Generic[N, R]):
    """A learning policy on a robot, in a task.

    Args:
        task: what `make` takes.
        calibration: of the first draft.
        how: settings of the rounds.
        config: settings of the learning in a round.
        workers: processes that run episodes.
        network: that learns.
        kind: class of the rows that it learns from.

    Attributes:
        best: the lowest loss on held-out data so far; None before any.
    """

    def __init__(
        self,
        task: str,
        calibration: Calibration,
        how: Rounds,
        config: LearningConfig,
        workers: int,
        network: N,
        kind: type[R],
    ) -> None:
        self._task, self._calibration, self._how, self._config = task, calibration, how, config
        self._workers, self._network, self._kind = workers, network, kind
        self._reservoir: Reservoir[R] = Reservoir(how.most, how.seed)
        self.best: float | None = None

    @property
    def origin(self) -> Figures:
        """Everything that its results depend on, as JSON data."""
        calibration = {name: value for name, value in vars(self._calibration).items() if name != "figures"}
        config = {name: str(value) for name, value in asdict(self._config).items()}  # one may be infinite
        return {"task": self._task, "config": config, "calibration": calibration, **self.begin}

    @property
    @abstractmethod
    def begin(self) -> Figures:
        """Its first network and that network's training data, as JSON data."""

    def outcome(self, files: PolicyFiles, calibration: Calibration, method: str) -> Figures:
        """Return figures of evaluation episodes."""
        comparison = Comparison(self._task, files, calibration, self._how.seed)
        episodes = evaluation_episodes(self._how.evaluated)
        return {**outcome_figures(play_all(comparison, [method], episodes, self._workers)[method])}

    @abstractmethod
    def write(self, folder: Path, command: str) -> None:
        """Write the current network and its export into a folder of policies."""

    @abstractmethod
    def current_figures(self, files: PolicyFiles) -> Figures:
        """Return its current figures, by kind of evaluation; called once before each `learn`."""

    @abstractmethod
    def learn(self, files: PolicyFiles, number: int) -> Figures:
        """Run the episodes of a round, counted from 0, and learn; return figures."""

    def state(self) -> dict[str, Tensor]:
        """Return its state: the weights of its network, and its kept rows."""
        weights = {f"{MODEL}{name}": value.contiguous() for name, value in self._network.state_dict().items()}
        kept = {f"{KEPT}{name}": np.ascontiguousarray(each) for name, each in self._reservoir.state().items()}
        return weights | {name: torch.from_numpy(each) for name, each in kept.items()}

    def restore(self, state: dict[str, Tensor], last: Figures) -> None:
        """Restore a state and the figures of the last round.

        Raises:
            KeyError, RuntimeError: parts are missing, or do not match.
        """
        network = self._network
        network.load_state_dict({name: state[f"{MODEL}{name}"] for name in network.state_dict()})
        kept = {key.removeprefix(KEPT): each.numpy() for key, each in state.items() if key.startswith(KEPT)}
        self._reservoir.restore(kept, self._kind)
        if "update" in last:
            self.best = last["update"]["held_out"]["best"]


def learn_in_rounds(
    learner: Learner[Any, Any],
    begin: Path,
    out: Path,
    how: Rounds,
    command: str,
    say: Say = lambda line: None,
) -> Figures:
    """Learn in rounds, into a folder; return figures of every round, the first before any.

    The folder changes only at the end; a stopped run continues after its last complete round.

    Args:
        learner: learns.
        begin: folder of tokenizer, draft and target.
        out: folder to write, with the learned policy.
        how: settings of the rounds.
        command: noted in the checkpoint.
        say: called with the progress.

    Raises:
        ValueError: something does not fit; names it.
    """
    staged = StagedFolder(out)
    staged.begin()
    copy_policies(begin, staged.folder)
    recipe = json.loads(json.dumps({**learner.origin, "how": asdict(how)}))
    figures: list[Figures] = []
    state = staged.folder / STATE
    if state.is_file():
        tensors, figures = load_run(state, recipe)
        learner.restore(tensors, figures[-1])
        say(f"continues after round {len(figures) - 1}")
    files = PolicyFiles(staged.folder, "onnxruntime")
    for number in range(len(figures), how.rounds + 1):
        learner.write(staged.folder, command)
        found: Figures = {"round": number, "looks": learner.current_figures(files)}
        if number < how.rounds:
            found["update"] = learner.learn(files, number)
        figures.append(found)
        save_run(state, learner.state(), recipe, figures)
        say(line_of(found))
    staged.finish()
    return {**recipe, "rounds": figures}


def line_of(found: Figures) -> str:
    """Return the text about a round."""
    parts = [f"round {found['round']}"]
    for name, each in found["looks"].items():
        parts.append(f"{name} {each['success_rate']:.2f}, {each['calls_per_episode']:.1f} calls")
    if "update" in found:
        update = found["update"]
        parts.append(f"{update['new']} replies, {update['why'] or 'learned'}")
    return "; ".join(parts)
