# SPDX-License-Identifier: Apache-2.0
"""`adahi report BAG`: one interactive HTML file of a robot's runs that needs no network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from bokeh.embed import components
from bokeh.resources import Resources
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from adahi_lab.calibration.bag_run import BagRun, bag_run_figures
from adahi_lab.figures import Figures
from adahi_lab.reporting.observed import Observed, activations
from adahi_lab.reporting.run_holds import in_words
from adahi_lab.reporting.run_timeline import columns_of, marks_of, thinned, timeline
from adahi_lab.reporting.run_verdict import Check, in_a_sentence, period_of, verdict
from adahi_lab.reporting.tables import number
from adahi_ros.safety.intervention import Intervention

PARTS = PackageLoader("adahi_lab.reporting", ".")
LATENCIES = {
    "total_ms": "observation to action",
    "draft_ms": "draft",
    "verify_ms": "request to reply",
    "target_compute_ms": "of that, the target",
    "link_rtt_ms": "round trip on the link",
}
OF_THE_PLAN = {
    "age": "age, control steps",
    "correction": "correction, action units",
    "expected_error": "expected error, action scales",
    "requests_pending": "requests in flight",
}
ENDED = Intervention.DEACTIVATED.name.lower()  # of every run that a bag records to its end
MOST_RUNS = 12
MOST_ROWS = 500  # of a table
MOST_JUMPS = 10_000  # of the buttons from event to event


@dataclass(frozen=True)
class ReportedRun:
    """A run as a page shows it; `period_s` is of the control loop."""

    name: str
    run: BagRun
    observed: Observed
    period_s: float


@dataclass(frozen=True)
class _Shown:
    """A run's values for the template."""

    number: int
    name: str
    sentence: str
    checks: Sequence[Check]
    figures: Figures
    latencies: Mapping[str, object]
    plan: Figures
    episodes: Sequence[Figures]
    marks: Sequence[tuple[float, str]]
    names: Sequence[str]
    cameras: Sequence[str]
    timeline: Markup
    every: int


def reported(name: str, run: BagRun, observed: Observed, period_s: float | None = None) -> list[ReportedRun]:
    """Return the runs of a bag: one for each activation of the policy, numbered where there are several.

    Args:
        name: of the bag.
        run: its steps.
        observed: its other data.
        period_s: of the control loop; None takes the median between observations.
    """
    parts = activations(run, observed)
    names = [name] if len(parts) == 1 else [f"{name}, activation {n + 1}" for n in range(len(parts))]
    return [
        ReportedRun(each, *part, period_s or period_of(part[0]))
        for each, part in zip(names, parts, strict=True)
    ]


def write_bag_report(
    runs: Sequence[ReportedRun], title: str, command: str, path: Path, configuration: Mapping[str, str]
) -> None:
    """Write the page.

    Args:
        runs: to show, the first two side by side.
        title: of the page.
        command: that made the page, as text.
        path: of the file to write.
        configuration: contents of files by name, shown folded.

    Raises:
        ValueError: there are more runs than a page can show.
    """
    if not 1 <= len(runs) <= MOST_RUNS:
        raise ValueError(f"runs: {len(runs)}, must be 1 to {MOST_RUNS} on a page")
    figures_of = [bag_run_figures(each.run) for each in runs]
    script, divisions = components(
        {str(n): timeline(n, each.run, each.observed, each.period_s) for n, each in enumerate(runs)}
    )
    shown = [
        _shown(n, each, figures, Markup(divisions[str(n)]))
        for n, (each, figures) in enumerate(zip(runs, figures_of, strict=True))
    ]
    environment = Environment(loader=PARTS, autoescape=True, undefined=StrictUndefined)
    environment.filters["number"] = number
    environment.globals["script_of_page"] = lambda: Markup(_text("bag_report.js"))
    html = environment.get_template("bag_report.html.j2").render(
        title=title,
        command=command,
        runs=shown,
        configuration=configuration,
        most_rows=MOST_ROWS,
        bokeh=Markup(Resources(mode="inline", components=["bokeh"]).render_js()),
        figures=Markup(script),
        data=Markup(_data(runs)),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html)


def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text()


def _data(runs: Sequence[ReportedRun]) -> str:
    """Return other data of the page's script as JSON that is safe in a script element."""
    found = [
        {
            "name": each.name,
            "names": each.observed.names,
            "units": each.observed.units or ["action units"] * len(each.observed.names),
            "columns": list(columns_of(each.run, each.observed)),
            "marks": [at_s for at_s, _ in marks_of(each.run, each.observed)[:MOST_JUMPS]],
            "frames": [[f.time_s, f.camera, f.jpeg] for f in each.observed.frames],
        }
        for each in runs
    ]
    return json.dumps(found).replace("<", "\\u003c")


def _shown(n: int, each: ReportedRun, figures: Figures, division: Markup) -> _Shown:
    run, observed = each.run, each.observed
    marks = marks_of(run, observed)
    plan = figures["plan"] or {}
    interventions = sum(kind != ENDED for _, kind in observed.marks)
    checks = list(verdict(run, figures, interventions, each.period_s))
    return _Shown(
        n,
        each.name,
        in_words(observed.held) + in_a_sentence(run, checks, each.period_s),
        checks,
        figures,
        {label: figures[name] for name, label in LATENCIES.items() if figures[name]},
        {label: plan[name] for name, label in OF_THE_PLAN.items() if plan.get(name)},
        _episodes(run),
        marks,
        observed.names,
        sorted({frame.camera for frame in observed.frames}),
        division,
        thinned(len(run.steps)),
    )


def _episodes(run: BagRun) -> list[dict[str, object]]:
    results = {each.episode: each.success for each in run.episodes}
    found = []
    rows = enumerate(run.steps)
    for episode, group in groupby(rows, key=lambda row: row[1].episode):
        steps = list(group)
        found.append(
            {
                "number": episode,
                "start_s": float(run.times_s[steps[0][0]]),
                "end_s": float(run.times_s[steps[-1][0]]),
                "steps": len(steps),
                "requests": sum(step.transmitted for _, step in steps),
                "success": results.get(episode),
            }
        )
    return found
