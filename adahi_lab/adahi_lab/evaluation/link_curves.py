# SPDX-License-Identifier: Apache-2.0
"""Success and calls of methods against properties of the link, in process and in control steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adahi_lab.evaluation.comparison import Entry, Rows, entries, measure
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.step_link import StepLink
from adahi_lab.figures import Figures

AGAINST: Mapping[str, tuple[float, ...]] = {
    "delay": (0, 1, 2, 3, 4, 6, 8, 10),
    "jitter": (0, 2, 4, 6, 8),
    "loss": (0.0, 0.05, 0.1, 0.2, 0.3, 0.5),
    "outage": (0.0, 2.0, 5.0, 10.0, 20.0, 40.0),
}
"""Fields of a `StepLink`, each with its default values."""
WHOLE = ("delay", "jitter")  # control steps
IN_TIME = (*WHOLE, "outage")


def links(
    against: str, link: StepLink, values: Sequence[float] | None = None, rate_hz: float | None = None
) -> list[StepLink]:
    """Return links that differ in one field.

    Args:
        against: a key of `AGAINST`.
        link: their other fields.
        values: of the field; None for its default ones.
        rate_hz: control steps per second, where the values are seconds; None where they are control steps.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """
    if against not in AGAINST:
        raise ValueError(f"against: {against!r}, must be one of {', '.join(AGAINST)}")
    chosen = AGAINST[against] if values is None else values
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"values: {list(chosen)}, must be at least one, each different")
    if rate_hz is not None:
        if against not in IN_TIME or values is None:
            raise ValueError(f"--seconds: must be with --values of {' or '.join(IN_TIME)}")
        chosen = [round(value * rate_hz) if against in WHOLE else value * rate_hz for value in chosen]
        if len(set(chosen)) < len(chosen):
            raise ValueError(f"values: {list(values)} s, must differ by a control step of {1 / rate_hz:g} s")
    changes: list[dict[str, Any]] = [
        {against: int(value) if against in WHOLE and value % 1 == 0 else value} for value in chosen
    ]
    return [replace(link, **change) for change in changes]


def curves(
    comparison: Comparison,
    across: Sequence[StepLink],
    names: Sequence[str],
    episodes: Sequence[int],
    rows: Rows,
    workers: int,
    on_row: Callable[[Entry, bool], None] = lambda entry, measured: None,
) -> tuple[dict[str, list[Figures]], dict[str, str]]:
    """Measure each method across each link, on the same episodes.

    Args:
        comparison: what on what.
        across: the links.
        names: keys of `METHODS`.
        episodes: their numbers.
        rows: existing ones; new ones are added.
        workers: processes.
        on_row: see `measure`.

    Returns:
        By method its rows, in the order of the links; and by name why some methods cannot run.
    """
    wanted: list[Entry] = []
    for link in across:
        found, skipped = entries(replace(comparison, link=link), names, episodes)
        wanted += found
    measured = measure(wanted, rows, workers, on_row)
    by_method: dict[str, list[Figures]] = {name: [] for name in names if name not in skipped}
    for entry, row in zip(wanted, measured, strict=True):
        by_method[entry.name].append(row)
    return by_method, skipped
