# SPDX-License-Identifier: Apache-2.0
"""`adahi report BAG`: one self-contained HTML file of a robot's run."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from adahi_ros.lab.calibration.bag_run import BagRun
from adahi_ros.lab.figures import Figures
from adahi_ros.lab.reporting.report import Picture
from adahi_ros.lab.reporting.style import SENT, SKIPPED, WITHOUT_REPLY, figure, share_below, titled
from adahi_ros.lab.reporting.tables import number
from adahi_ros.lab.reporting.trace_figure import draw_trace, trace_of

LATENCIES = {
    "total_ms": "observation to action",
    "draft_ms": "draft",
    "verify_ms": "request to reply",
    "target_compute_ms": "the target's share of that",
    "link_rtt_ms": "round trip on the link",
}
OF_THE_PLAN = {
    "age": "age, control steps",
    "correction": "correction, action units",
    "expected_error": "expected error, action scales",
    "requests_pending": "requests under way",
}


def _deviation(run: BagRun) -> Figure:
    drawn = figure(9.6, 3.2)
    axes = titled(drawn.add_subplot(), "what the gate saw", "time (s)", "action deviation")
    draw_trace(axes, trace_of(run.steps, run.times_s))
    return drawn


def _latency(run: BagRun) -> Figure:
    drawn = figure(9.6, 3.2)
    over_time, share = drawn.subplots(1, 2)
    total = np.array([step.total_ms for step in run.steps])
    verified = np.array([step.verified for step in run.steps])
    sent = np.array([step.transmitted for step in run.steps])
    titled(over_time, "latency of every action", "time (s)", "observation to action (ms)")
    titled(share, "the same, sorted", "observation to action (ms)", "share below")
    for mask, colour, label in (
        (~sent, SKIPPED, "skipped"),
        (verified, SENT, "sent, with a reply"),
        (sent & ~verified, WITHOUT_REPLY, "sent, no reply in time"),
    ):
        if mask.any():
            over_time.plot(run.times_s[mask], total[mask], ".", color=colour, markersize=3, label=label)
            share.plot(*share_below(total[mask]), color=colour, label=label)
    over_time.set_yscale("log")
    share.set_xscale("log")
    over_time.legend(fontsize=7.5)
    return drawn


def _rate(run: BagRun) -> Figure:
    """Draw how much was sent, and how much of it in vain, second by second."""
    drawn = figure(9.6, 2.6)
    axes = titled(drawn.add_subplot(), "transmissions and fallbacks", "time (s)", "share of steps")
    edges = np.arange(0.0, run.times_s[-1] + 2.0, 1.0)
    sent = np.array([step.transmitted for step in run.steps])
    fell_back = np.array([step.reason != 0 for step in run.steps])
    rows = [(run.times_s >= low) & (run.times_s < high) for low, high in pairwise(edges)]
    rows = [inside for inside in rows if inside.any()]
    middle = [run.times_s[inside].mean() for inside in rows]
    for mask, colour, label in ((sent, SENT, "transmitted"), (fell_back, WITHOUT_REPLY, "fell back")):
        axes.plot(middle, [mask[inside].mean() for inside in rows], ".-", color=colour, label=label)
    axes.set_ylim(-0.03, 1.05)
    axes.legend(fontsize=7.5)
    return drawn


def _link(run: BagRun) -> Figure:
    drawn = figure(9.6, 2.6)
    rtt, loss = drawn.subplots(1, 2)
    times_s = [sample.time_s for sample in run.link]
    titled(rtt, "round trip", "time (s)", "ms").plot(times_s, [sample.rtt_ms for sample in run.link])
    titled(loss, "missed and lost", "time (s)", "share of requests")
    loss.plot(times_s, [sample.misses for sample in run.link], label="no reply by the deadline")
    loss.plot(times_s, [sample.loss for sample in run.link], label="a packet lost, it seems")
    loss.legend(fontsize=7.5)
    return drawn


def _plan(run: BagRun) -> Figure:
    """Draw how old the plan was, with gaps where there was none, and when the next one was asked for."""
    drawn = figure(9.6, 2.6)
    axes = titled(drawn.add_subplot(), "age of the plan", "time (s)", "control steps")
    age = np.array([step.plan_age if step.planned else np.nan for step in run.steps])
    sent = np.array([step.transmitted for step in run.steps])
    axes.plot(run.times_s, age, ".-", color=SKIPPED, markersize=3, label="of the plan gone by")
    asked = np.where(np.isnan(age[sent]), 0.0, age[sent])
    axes.plot(run.times_s[sent], asked, "^", color=SENT, markersize=4, label="a request was sent")
    axes.legend(fontsize=7.5)
    return drawn


def _picture(title: str, text: str, drawn: Figure) -> Picture:
    file = io.BytesIO()
    drawn.savefig(file, dpi=130, format="png")
    plt.close(drawn)
    return Picture(title, text, base64.b64encode(file.getvalue()).decode())


def _pictures(run: BagRun) -> Sequence[Picture]:
    pictures = [
        _picture("Deviation", "What the gate saw at every step, and its threshold.", _deviation(run)),
        _picture("Rates", "Over windows of one second.", _rate(run)),
        _picture("Latency", "From the observation that was received to the published action.", _latency(run)),
    ]
    if any(step.planned for step in run.steps):
        text = "How long ago the plan was asked for that was gone by; a gap is where there was none."
        pictures.append(_picture("Plan", text, _plan(run)))
    if run.link:
        pictures.append(_picture("Link", "As the draft policy estimated it.", _link(run)))
    return pictures


def write_bag_report(run: BagRun, figures: Figures, bag: Path, command: str, path: Path) -> None:
    """Write the report of a run.

    Args:
        run: from a bag.
        figures: `bag_run_figures` of it.
        bag: where it came from.
        command: that makes this, for people.
        path: of the file to write.
    """
    environment = Environment(
        loader=PackageLoader("adahi_ros.lab.reporting", "."), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["number"] = number
    told = figures["plan"] or {}
    html = environment.get_template("bag_report.html.j2").render(
        title=f"adahi: {bag.name}",
        bag=bag.name,
        command=command,
        figures=figures,
        latencies={label: figures[name] for name, label in LATENCIES.items() if figures[name]},
        plan={label: told[name] for name, label in OF_THE_PLAN.items() if told.get(name)},
        pictures=_pictures(run),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html)
