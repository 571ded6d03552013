# SPDX-License-Identifier: Apache-2.0
"""The style of pictures: colour-blind-safe (Okabe and Ito, 2008), readable in print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import Any
from zlib import crc32

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from adahi_lab.figures import Figures
from adahi_lab.methods.methods import METHODS


class Looks(dict[str, str]):
    """Looks of methods, by name; a method without a look always gets the same spare one.

    Args:
        known: looks of known methods.
        spare: for the others.
    """

    def __init__(self, known: Mapping[str, str], spare: Sequence[str]) -> None:
        super().__init__(known)
        self._spare = spare

    def __missing__(self, name: str) -> str:
        return self._spare[crc32(name.encode()) % len(self._spare)]


LOOKS = {  # colour and marker
    "adahi": ("#0072B2", "o"),
    "hybrid": ("#009E73", "s"),
    "draft": ("#D55E00", "v"),
    "target": ("#000000", "D"),
    "random": ("#E69F00", "X"),
    "uncertainty": ("#CC79A7", "P"),
    "random_cool": ("#E69F00", "*"),
    "oracle": ("#56B4E9", "^"),
    "distilled": ("#D55E00", "X"),
    "best": ("#882255", "*"),
    "plan_2": ("#777777", "$2$"),
    "plan_4": ("#777777", "$4$"),
    "plan_8": ("#777777", "$8$"),
}
SPARE_COLOURS = ("#117733", "#332288", "#AA4499", "#44AA99", "#999933")
COLOURS = Looks({name: colour for name, (colour, _) in LOOKS.items()}, SPARE_COLOURS)
MARKERS = Looks({name: marker for name, (_, marker) in LOOKS.items()}, "<>dphH8")
LABEL_WIDTH = 32  # characters of a line of a legend
LINES = {"random_cool": "--", "oracle": ":"}  # the others are solid
SKIPPED, SENT, WITHOUT_REPLY = "#56B4E9", "#D55E00", "#000000"


def figure(width_in: float, height_in: float) -> Figure:
    """Return an empty figure in the common style."""
    plt.rcParams.update(
        {
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "legend.framealpha": 0.9,
        }
    )
    return plt.figure(figsize=(width_in, height_in), layout="constrained")


def save(drawn: Figure, path: Path) -> None:
    """Write a figure as PNG (or what the suffix says) and forget it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(path, dpi=150)
    plt.close(drawn)


def titled(axes: Axes, title: str, x: str, y: str) -> Axes:
    """Name a plot and its axes."""
    axes.set_title(title, loc="left", fontsize=9.5, fontweight="bold")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return axes


@contextmanager
def panels(
    path: Path, titles: Iterable[str], x: str, y: str, size: tuple[float, float]
) -> Iterator[list[Axes]]:
    """Yield a plot for each title, of a size in inches, side by side; write them at the end."""
    names = list(titles)
    drawn = figure(size[0] * len(names), size[1])
    yield [titled(drawn.add_subplot(1, len(names), at), name, x, y) for at, name in enumerate(names, 1)]
    save(drawn, path)


def label_of(name: str) -> str:
    """Return the label of a method; a long one has several lines, so that a picture does not cut it."""
    return fill(METHODS[name].label, LABEL_WIDTH)


def mark_success(axes: Axes, name: str, x: float, figures: Figures, **looks: Any) -> None:
    """Mark a method's success rate at x, with its 95 % interval.

    Args:
        axes: to draw into.
        name: a key of `METHODS`.
        x: where.
        figures: of the method; with `success_rate`, `success_ci95`.
        looks: replace the method's colour, marker and label.
    """
    low, high = figures["success_ci95"]
    success = figures["success_rate"]
    spread = [[max(0.0, success - low)], [max(0.0, high - success)]]
    looks = {"color": COLOURS[name], "marker": MARKERS[name], "label": label_of(name), **looks}
    axes.errorbar(x, success, spread, capsize=3, linestyle="none", **looks)


def draw_success(axes: Axes, x: Sequence[float], rows: Sequence[Figures], **looks: Any) -> None:
    """Draw success rates with their 95 % interval against x, in the order of both; `looks` apply to the line.

    Args:
        axes: to draw into.
        x: where.
        rows: figures with `success_rate` and `success_ci95`.
        looks: `color` at least.
    """
    low, high = np.array([row["success_ci95"] for row in rows]).T
    axes.fill_between(x, low, high, color=looks["color"], alpha=0.12, linewidth=0)
    axes.plot(x, [row["success_rate"] for row in rows], **looks)


def curve_looks(name: str, label: str) -> dict[str, Any]:
    """Return the look of a method's curve."""
    line = {"linestyle": LINES.get(name, "-"), "label": label}
    return {"color": COLOURS[name], "marker": MARKERS[name], "markersize": 4, **line}


def share_below(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sorted values (N,), and for each the share of values up to it."""
    return np.sort(values), np.arange(1, len(values) + 1) / len(values)


def draw_latencies(axes: Axes, latencies_ms: Mapping[str, np.ndarray]) -> None:
    """Draw the share of actions below each latency, by method."""
    for name, values in latencies_ms.items():
        axes.plot(*share_below(values), color=COLOURS[name], label=label_of(name))
    axes.set_xscale("log")
    axes.legend(fontsize=7.5, loc="lower right")
