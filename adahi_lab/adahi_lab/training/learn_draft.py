# SPDX-License-Identifier: Apache-2.0
"""A draft that learns in rounds, see `learn_rounds`."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from adahi_lab.calibration.calibrate import Wanted, calibrate
from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.methods.methods import gated
from adahi_lab.training.fitting import Run
from adahi_lab.training.learn import DRAFT, LearningConfig, Lessons, update
from adahi_lab.training.learn_rounds import Figures, Learner, Rounds
from adahi_lab.training.policy_corrections import Corrections, corrected_episodes
from adahi_lab.training.vqbet_files import save_with_export
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint
from adahi_ros.policies.vqbet.vqbet_network import VQBeT
from adahi_ros.policies.vqbet.vqbet_torch import load_network

FIXED, RATED, ALONE = "threshold as it was", "threshold at the rate", "draft alone"


class DraftLearner(Learner[VQBeT, Corrections]):
    """Learns from the codes in replies.

    Args:
        task: what `make` takes.
        begin: folder of its first checkpoint.
        lessons: of its earlier training.
        calibration: of the first draft.
        how: number of rounds, and when to request.
        config: how it learns.
        workers: processes that run episodes.

    Raises:
        ValueError: a method does not draft, or the checkpoint is unusable.
    """

    def __init__(
        self,
        task: str,
        begin: Path,
        lessons: Lessons,
        calibration: Calibration,
        how: Rounds,
        config: LearningConfig,
        workers: int = 1,
    ) -> None:
        self._explore = gated(how.explore or how.ask)
        gated(how.ask)  # raises if it does not draft
        self._checkpoint = load_checkpoint(begin / DRAFT)
        super().__init__(task, calibration, how, config, workers, load_network(self._checkpoint), Corrections)
        self._lessons, self._present = lessons, calibration

    @property
    def begin(self) -> Figures:
        """See `Learner`."""
        lessons = self._lessons
        return {
            "draft": self._checkpoint.digest(),
            "lessons": lessons.digest,
            "fit": asdict(lessons.config),
        }

    def write(self, folder: Path, command: str) -> None:
        """See `Learner`."""
        save_with_export(folder, DRAFT, self._network, {**self._checkpoint.training, "learned": command})

    def current_figures(self, files: PolicyFiles) -> Figures:
        """See `Learner`: with the first threshold, at the rate, and alone."""
        self._present = self._calibrated(files)
        if not self._how.evaluated:
            return {}
        looks = {FIXED: (self._calibration, self._how.ask), ALONE: (self._calibration, "draft")}
        if self._how.rate is not None:
            looks[RATED] = self._present, self._how.ask
        return {
            name: {
                **self.outcome(files, calibration, method),
                "threshold": calibration.thresholds.get(gated(method).gate),
            }
            for name, (calibration, method) in looks.items()
        }

    def _calibrated(self, files: PolicyFiles) -> Calibration:
        """Return a calibration of the current draft: to the rate, or with the existing thresholds."""
        first, how, rate = self._calibration, self._how, self._how.rate
        if rate is None:
            policies = files.load()
            return replace(first, draft=policies.draft.digest, target=policies.target.digest)
        wanted = Wanted.as_in(first, [how.ask, how.explore or how.ask], rate)
        return calibrate(self._task, files, wanted, how.seed, how.calibrated, self._workers)

    def learn(self, files: PolicyFiles, number: int) -> Figures:
        """See `Learner`."""
        seed = self._how.seed
        bench = Comparison(self._task, files, self._present, seed).bench()
        new, _ = corrected_episodes(bench, self._explore, seed, self._how.lessons(number))
        kept, run = self._reservoir.add(new), Run(seed + number)
        learned = update(self._network, self._lessons, kept, self._config, run, self.best)
        self._network, self.best = learned.model, learned.figures["held_out"]["best"]
        return {"new": len(new), **learned.figures}
