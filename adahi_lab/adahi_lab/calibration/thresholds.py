# SPDX-License-Identifier: Apache-2.0
"""Thresholds that a calibration lacks: searched on demand and stored, because a search takes minutes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from adahi_lab.calibration import calibrate
from adahi_lab.calibration.parameter_file import Calibration, load_calibration
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.methods.methods import gates_of_methods

SEED = "seed"  # of the episodes on which they were searched


class Thresholds:
    """Thresholds of a task's calibration, and those searched for the same rate.

    Args:
        folder: stores them as a calibration, TASK.yaml; it need not exist. Thresholds of other policies,
            another rate or seed are replaced.
        comparison: task and policies, with the calibration.
        workers: processes to search in.
        say: called with a description of each search.
        command: that is noted in the file.

    Raises:
        ValueError: the file is of another kind.
    """

    def __init__(
        self,
        folder: Path,
        comparison: Comparison,
        workers: int,
        say: Callable[[str], None],
        command: str = "",
    ) -> None:
        self._path = folder / f"{comparison.calibration.task}.yaml"
        self._comparison, self._workers, self._say, self._command = comparison, workers, say, command
        kept = load_calibration(self._path) if self._path.exists() else None
        if kept is None or self._as_kept(kept.thresholds) != kept:
            kept = comparison.calibration
        # Calibrated thresholds take precedence: the file may be older.
        self._thresholds = {**kept.thresholds, **comparison.calibration.thresholds}

    def _as_kept(self, thresholds: dict[str, float]) -> Calibration:
        return replace(
            self._comparison.calibration, thresholds=thresholds, figures={SEED: self._comparison.seed}
        )

    def missing(self, names: Sequence[str]) -> list[str]:
        """Return the methods that need a threshold search."""
        return [name for name, gate in gates_of_methods(names).items() if gate not in self._thresholds]

    def complete(self, names: Sequence[str]) -> Comparison:
        """Return the comparison, its calibration with a threshold for the gate of each of these methods.

        Raises:
            ValueError: one cannot be searched.
        """
        missing = self.missing(names)
        if missing:
            on = self._comparison
            made = calibrate.calibrate(
                on.task,
                on.files,
                calibrate.Wanted.as_in(on.calibration, missing),
                on.seed,
                calibrate.EPISODES,
                self._workers,
                lambda line: self._say(f"{on.task}: {line}"),
            )
            self._thresholds = {**made.thresholds, **self._thresholds}
            kept = self._as_kept(self._thresholds)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            kept.save(self._path, next(iter(kept.thresholds)), self._command)
        calibration = replace(self._comparison.calibration, thresholds=self._thresholds)
        return replace(self._comparison, calibration=calibration)
