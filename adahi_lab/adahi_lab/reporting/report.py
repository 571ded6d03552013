# SPDX-License-Identifier: Apache-2.0
"""`adahi report`: one self-contained HTML file of a folder of results."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, UndefinedError

from adahi_lab.figures import Figures
from adahi_lab.methods.methods import METHODS
from adahi_lab.papers.paper_claims import better_than_adahi, check_claims
from adahi_lab.reporting.published_figures import NOT_REPORTED, REPORTED
from adahi_lab.reporting.tables import number
from adahi_ros.core.files import read_json

TABLE, PICTURES, REPORT = "table.json", "figures.json", "report.html"

TEXTS = {
    "rejection": (
        "Rejection against deviation",
        "How often the target rejects the primary code, in bins of equal count, and both fits (Figure 2).",
    ),
    "latency": (
        "Success against latency",
        "Latency on the link's profile, simulated from logged runs; or measured over DDS where that was "
        "given. Right: actions per second over windows of one second's worth of control steps (Figure 4).",
    ),
    "sweep": (
        "Success against transmission rate",
        "Every gate at every rate, with 95 % intervals. The oracle knows the true rejection probability; it "
        "is no upper bound.",
    ),
    "traces": ("Deviation along an episode", "What the gate saw; transmitted steps are marked."),
}


@dataclass(frozen=True)
class Picture:
    """A picture with its heading; `data` is a PNG in base64."""

    title: str
    text: str
    data: str


def _read(path: Path) -> Figures:
    try:
        value = read_json(path)
    except FileNotFoundError:
        return {}
    if not isinstance(value.get("tasks"), dict):
        raise ValueError(f"{path}: tasks: missing, must be figures by task")
    return value


def _render(folder: Path, table: Figures, drawn: Figures) -> str:
    methods = {task: found["methods"] for task, found in table.get("tasks", {}).items()}
    pictures = [
        Picture(*text, base64.b64encode((folder / f"{name}.png").read_bytes()).decode())
        for name, text in TEXTS.items()
        if (folder / f"{name}.png").is_file()
    ]
    environment = Environment(
        loader=PackageLoader("adahi_lab.reporting", "."), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["number"] = number
    return environment.get_template("report.html.j2").render(
        command=table.get("command", drawn.get("command")),
        seed=table.get("seed"),
        episodes=table.get("episodes"),
        title=f"adahi: {', '.join(sorted({*methods, *drawn.get('tasks', {})}))}",
        table=methods,
        labels={name: method.label for name, method in METHODS.items()},
        reported=REPORTED,
        nothing=NOT_REPORTED,
        claims={task: check_claims(figures) for task, figures in methods.items()},
        better={
            task: [METHODS[name].label for name in better_than_adahi(figures)]
            for task, figures in methods.items()
        },
        pictures=pictures,
        configuration={**table.get("configuration", {}), **drawn.get("configuration", {})},
    )


def write_report(folder: Path, path: Path) -> None:
    """Write the report of a folder of results.

    Args:
        folder: of `adahi lab table` and `adahi lab figures`.
        path: of the file to write.

    Raises:
        ValueError: the folder is empty, or has other contents than these verbs write.
    """
    table, drawn = _read(folder / TABLE), _read(folder / PICTURES)
    if not table and not drawn:
        raise ValueError(
            f"{folder}: neither {TABLE} nor {PICTURES}; run 'adahi lab table' or 'adahi lab figures' first"
        )
    try:
        html = _render(folder, table, drawn)
    except (LookupError, TypeError, ValueError, AttributeError, UndefinedError) as error:
        raise ValueError(f"{folder / TABLE}: not what 'adahi lab table' writes ({error!r})") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html)
