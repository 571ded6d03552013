# SPDX-License-Identifier: Apache-2.0
"""Compares ways to send camera images, as measured by `lab/bench/cameras.py`: a table and a picture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from matplotlib.lines import Line2D
from rich.table import Table

from adahi_lab.figures import Figures
from adahi_lab.methods.methods import METHODS
from adahi_lab.reporting.style import COLOURS, figure, mark_success, save, titled
from adahi_lab.reporting.tables import narrow_table, number

MARKERS = "osv^D*PX"  # of the views, in their order


def cameras_table(figures: Figures) -> Table:
    """Return success, rates, bytes and times of each view and method, at most eighty columns wide.

    Args:
        figures: of `wireless.cameras.measure_cameras`.
    """
    headings = ["suc-\ncess", "95 %", "TR", "kept", "bytes\nup", "down", "JPEG\nms", "read\nms"]
    table = narrow_table(_title(figures), ("target sees", "method"), headings, "\n".join(_notes(figures)))
    for view, methods in figures["views"].items():
        first, times = next(iter(methods)), figures["image_ms"][view]
        for name, values in methods.items():
            table.add_row(
                _label(view) if name == first else "",
                METHODS[name].label,
                number(values["success_rate"], 2),
                "{:.2f}-{:.2f}".format(*values["success_ci95"]),
                number(values["transmission_rate"], 2),
                number(values["acceptance"], 2),
                *(number(values[way], 0) for way in ("request_bytes", "response_bytes")),
                *(number(times[end], 2) if name == first else "" for end in ("robot", "verifier")),
            )
    return table


def _title(figures: Figures) -> str:
    return f"{figures['task']}: what the target sees of the camera, {figures['episodes']} episodes each"


def _notes(figures: Figures) -> Iterator[str]:
    rows, columns = figures["image_size"]
    yield "kept: codes; bytes, means: of a verification's messages, as DDS gets them"
    yield "ms, medians: the robot makes a JPEG, the verifier features of it"
    yield f"raw frames, which no node offers: that request, {rows * columns * 3} bytes for each JPEG"
    same = "bit for bit those of features" if figures["raw_as_features"] else "NOT those of features"
    yield f"raw frames: actions and verdicts are {same}"


def _label(view: str) -> str:
    """Return the display name of a view: jpeg_50 has that quality, jpeg_800_bytes that budget."""
    kind, _, rest = view.partition("_")
    if kind != "jpeg":
        return {"raw": "raw frames", "none": "nothing"}.get(view, view)
    value, _, unit = rest.partition("_")
    return f"JPEG {value} B" if unit else f"JPEG {value}"


def draw_cameras(figures: Figures, path: Path) -> None:
    """Draw success against the bytes of a verification: a colour per method, a marker per view.

    Args:
        figures: of `wireless.cameras.measure_cameras`.
        path: to write.
    """
    drawn = figure(7.2, 4.0)
    axes = titled(drawn.add_subplot(), _title(figures), "bytes of a verification's request", "success rate")
    markers = dict(zip(figures["views"], MARKERS, strict=False))
    for view, methods in figures["views"].items():
        for name, values in methods.items():
            if values["request_bytes"] is not None:
                mark_success(axes, name, values["request_bytes"], values, marker=markers[view], label=None)
    axes.set_xscale("log")
    axes.set_ylim(-0.03, 1.05)
    names = list(next(iter(figures["views"].values())))
    handles = [Line2D([], [], color=COLOURS[name], label=METHODS[name].label) for name in names]
    handles += [
        Line2D([], [], color="#555555", marker=marker, linestyle="none", label=_label(view))
        for view, marker in markers.items()
    ]
    drawn.legend(handles=handles, fontsize=7.5, loc="outside right upper", frameon=False)
    save(drawn, path)
