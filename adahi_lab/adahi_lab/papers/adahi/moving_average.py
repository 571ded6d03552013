# SPDX-License-Identifier: Apache-2.0
"""ADAHI with a real moving average beside its shipped form, against a random gate at the same rate.

    .venv/bin/python -m adahi_lab.papers.adahi.moving_average TASK [--episodes N]

With a smoothing factor of 1 the average is the last executed action alone. Beside it and the shipped factor
stand 0.3 and the factor below 1 that ranks rejections best. Each threshold is searched for the shipped rate,
on calibration episodes. p is of McNemar's exact test, on the same evaluation episodes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from adahi_lab.calibration.calibrate import (
    SMOOTHINGS,
    Wanted,
    calibrate,
    deviations,
    rank_correlation,
)
from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.evaluation.episodes import calibration_episodes, evaluation_episodes
from adahi_lab.evaluation.evaluate import Comparison, outcome_figures, paired_with, play_all

AVERAGED = 0.3


def rankings(comparison: Comparison, episodes: int) -> dict[float, float]:
    """Return the rank correlation of deviation and rejection by smoothing factor, on hybrid inference."""
    made = comparison.calibration
    numbers = calibration_episodes(episodes)
    log = play_all(replace(comparison, seed=0), ["hybrid"], numbers, 1)["hybrid"].log
    scale = comparison.files.load().draft.action_scale
    columns = np.arange(log.active.shape[1])
    return {
        smoothing: rank_correlation(log, deviations(log, scale, smoothing, made.normalization), columns)
        for smoothing in SMOOTHINGS
    }


def with_smoothing(comparison: Comparison, smoothing: float, episodes: int) -> Calibration:
    """Return the calibration with another smoothing factor, its threshold for the same rate."""
    made = comparison.calibration
    if smoothing == made.smoothing:
        return made
    wanted = replace(Wanted.as_in(made, ["adahi"]), smoothing=smoothing)
    return calibrate(comparison.task, comparison.files, wanted, 0, episodes)


def main(
    task: Annotated[str, typer.Argument(help="The task, such as 'ball'.")],
    episodes: Annotated[int, typer.Option(min=1, help="Evaluation episodes.")] = 600,
    calibrated: Annotated[int, typer.Option(min=5, help="Episodes of each threshold search.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of the evaluation.")] = 11,
) -> None:
    """Compare smoothing factors of ADAHI's average, and a random gate at the same rate."""
    comparison = Comparison.shipped(task, seed)
    ranks = rankings(comparison, calibrated)
    below = max((each for each in SMOOTHINGS if each < 1.0), key=lambda each: ranks[each])
    numbers = evaluation_episodes(episodes)
    chance = play_all(comparison, ["random"], numbers, 1)["random"]
    rows: list[dict[str, Any]] = []
    for smoothing in sorted({1.0, comparison.calibration.smoothing, below, AVERAGED}, reverse=True):
        made = with_smoothing(comparison, smoothing, calibrated)
        outcome = play_all(replace(comparison, calibration=made), ["adahi"], numbers, 1)["adahi"]
        against = paired_with(outcome.success, "random", chance.success)
        figures = outcome_figures(outcome)
        rows.append(
            {"smoothing": smoothing, "rank": ranks[smoothing], "against": against}
            | {"threshold": made.threshold("deviation"), **figures}
        )
    rows.append({"smoothing": None, "rank": None, "threshold": None, "against": None})
    rows[-1] |= outcome_figures(chance)
    table = Table(title=f"{task}, {episodes} episodes, seed {seed}")
    for heading in ("smoothing", "rank correlation", "threshold", "TR", "success", "against random", "p"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*cells(row))
    Console().print(table)


def cells(row: dict[str, Any]) -> list[str]:
    """Return a row of the table."""
    against, (low, high) = row["against"], row["success_ci95"]
    paired = ["", ""]
    if against is not None:
        p = against["p"]
        paired = [
            f"+{against['only_this']:.0f} -{against['only_other']:.0f}",
            "< .001" if p < 1e-3 else f"{p:.3f}",
        ]
    first = ["random", "", ""]
    if row["smoothing"] is not None:
        first = [f"{row['smoothing']:g}", f"{row['rank']:.3f}", f"{row['threshold']:.4f}"]
    rate = [f"{row['transmission_rate']:.3f}", f"{row['success_rate']:.3f} ({low:.3f} to {high:.3f})"]
    return [*first, *rate, *paired]


if __name__ == "__main__":
    typer.run(main)
