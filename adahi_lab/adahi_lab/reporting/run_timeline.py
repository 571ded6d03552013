# SPDX-License-Identifier: Apache-2.0
"""The interactive timeline of a run: figures by Bokeh on one time axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, groupby

import numpy as np
from bokeh.layouts import column
from bokeh.models import (
    BoxAnnotation,
    ColumnDataSource,
    CrosshairTool,
    CustomJS,
    DataRange1d,
    HoverTool,
    LayoutDOM,
    Range1d,
    Span,
)
from bokeh.plotting import figure

from adahi_lab.calibration.bag_run import BagRun, Push, held_name, takeovers
from adahi_lab.evaluation.run_metrics import fell_back
from adahi_lab.reporting.observed import Observed
from adahi_ros.protocol.records import StepRecord

PLANNED, COMMANDED, MEASURED = "#999999", "#0072B2", "#009E73"
REPLIED, UNANSWERED, PLAIN = "#0072B2", "#D55E00", "#882255"
PERSON = "#E69F00"
ROWS = {"fallback": UNANSWERED, "safety": "#CC0000", "push": COMMANDED, "takeover": PERSON}  # from below
LANES = 4  # of requests that overlap
IN_WORDS = {"fallback limit": "held without a reply"}  # words for people of reasons to fall back
TOOLS = "xpan,xwheel_zoom,box_zoom,reset"
MOST_POINTS = 12_000  # of a figure: ten minutes at 20 Hz; the page stays below 5 MB
LONGEST_WAIT_S = 2.0  # drawn of a request without a reply


@dataclass(frozen=True)
class Request:
    """One request as drawn: sent and replied in s of the run; the reply's size is 0 without a reply."""

    sent_s: float
    end_s: float
    replied: bool
    target_ms: float
    up_bytes: int
    down_bytes: int


def requests_of(run: BagRun) -> list[Request]:
    """Pair the requests of a run with their replies.

    A robot that waits has the reply in the step of its request. With prefetching, a status has the newest
    reply since the last step and its round trip. It belongs to the request sent nearest to that time before.
    Older requests without a match got no reply.
    """
    ahead = any(step.planned or step.requests_pending for step in run.steps)
    done: list[Request] = []
    open_: list[tuple[float, StepRecord]] = []

    def unanswered(sent_s: float, step: StepRecord, end_s: float) -> Request:
        return Request(sent_s, min(end_s, sent_s + LONGEST_WAIT_S), False, 0.0, step.request_bytes, 0)

    def answered(sent_s: float, origin: StepRecord, step: StepRecord) -> Request:
        end_s = sent_s + step.verify_ms / 1000
        return Request(sent_s, end_s, True, step.target_compute_ms, origin.request_bytes, step.response_bytes)

    for at_s, step in zip(run.times_s.tolist(), run.steps, strict=True):
        if ahead and step.verified and open_:
            sent_s = at_s - step.verify_ms / 1000
            nearest = min(range(len(open_)), key=lambda row: abs(open_[row][0] - sent_s))
            done += [unanswered(*each, at_s) for each in open_[:nearest]]
            done.append(answered(*open_[nearest], step))
            del open_[: nearest + 1]
        if step.transmitted:
            sent_s = at_s + step.draft_ms / 1000
            if ahead:
                open_.append((sent_s, step))
            elif step.verified:
                done.append(answered(sent_s, step, step))
            else:
                done.append(unanswered(sent_s, step, at_s + step.total_ms / 1000))
    return done + [unanswered(*each, float(run.times_s[-1])) for each in open_]


def thinned(count: int) -> int:
    """Return n where every n-th of so many points is drawn, so that a page stays small."""
    return max(1, -(-count // MOST_POINTS))


def columns_of(run: BagRun, observed: Observed) -> dict[str, np.ndarray]:
    """Return the drawn and downloadable values of the steps, by name: (T,) each.

    Of long runs every n-th step, see `thinned`. Actions are in `planned_I`, `commanded_I` and `measured_I`,
    in action units; NaN where missing.
    """
    every = thinned(len(run.steps))
    steps, measured = run.steps[::every], observed.measured[::every].astype(np.float32)
    data: dict[str, np.ndarray] = {
        "time_s": run.times_s[::every],
        "episode": np.array([step.episode for step in steps]),
        "step": np.array([step.step for step in steps]),
        "transmitted": np.array([int(step.transmitted) for step in steps]),
        "verified": np.array([int(step.verified) for step in steps]),
        "reason": np.array([step.reason.name.lower() for step in steps], dtype=object),
        "plan_age": np.array([step.plan_age if step.planned else np.nan for step in steps]),
        "plan_left": np.array([step.plan_left if step.planned else np.nan for step in steps]),
        "score": np.array([step.score for step in steps]),
        "threshold": np.array([step.threshold for step in steps]),
        "total_ms": np.array([step.total_ms for step in steps]),
        "verify_ms": np.array([step.verify_ms for step in steps]),
    }
    for index in range(len(observed.names)):
        data[f"planned_{index}"] = _entry([step.planned_action for step in steps], index)
        data[f"commanded_{index}"] = _entry([step.action for step in steps], index)
        data[f"measured_{index}"] = measured[:, index]
    return data


def _entry(actions: list[tuple[float, ...]], index: int) -> np.ndarray:
    values = [action[index] if index < len(action) else np.nan for action in actions]
    return np.array(values, dtype=np.float32)


def marks_of(run: BagRun, observed: Observed) -> list[tuple[float, str]]:
    """Return the times of fallbacks, safety interventions, pushes and takeovers, s, and kinds; in order.

    Steps in a row that fell back for one reason are one mark, with their number.
    """
    marks = [(at_s, f"safety: {kind}") for at_s, kind in observed.marks]
    marks += [(each.time_s, _of_push(each)) for each in run.pushes]
    marks += [(at_s, f"takeover: a person drives for {to_s - at_s:.1f} s") for at_s, to_s in takeovers(run)]
    rows = zip(run.times_s.tolist(), run.steps, fell_back(run.steps), strict=True)
    for (fell, _, reason), group in groupby(rows, key=lambda row: (row[2], row[1].episode, row[1].reason)):
        if fell:
            at_s, *others = [at_s for at_s, _, _ in group]
            word, many = reason.name.lower().replace("_", " "), f"{1 + len(others)} steps"
            marks.append((at_s, f"fallback: {IN_WORDS.get(word, word)}, {many if others else '1 step'}"))
    return sorted(marks)


def _of_push(push: Push) -> str:
    what = f"push: assignment {push.revision}" if push.revision else "push: no assignment"
    return what if push.requested else f"{what}, no request"


def timeline(number: int, run: BagRun, observed: Observed, period_s: float) -> LayoutDOM:
    """Return the figures of a run, linked in time.

    The page's script finds the range by the name `range-NUMBER` and the steps by `steps-NUMBER`.

    Args:
        number: of the run on its page.
        run: its steps, link and times.
        observed: other data of its bag.
        period_s: of the control loop, to draw beside the latency.
    """
    data = columns_of(run, observed)
    steps = ColumnDataSource({**data, **_chosen(data)}, name=f"steps-{number}")
    end_s = float(run.times_s[-1]) + period_s
    times = Range1d(0.0, end_s, bounds=(-1.0, end_s + 1.0), name=f"range-{number}")
    cursor = CrosshairTool(overlay=Span(dimension="height", line_color="#666666", line_dash="dotted"))

    def plot(title: str, height: int, label: str, **options: object) -> figure:
        drawn = figure(
            title=title,
            height=height,
            sizing_mode="stretch_width",
            x_range=times,
            tools=TOOLS,
            active_scroll="xwheel_zoom",
            y_axis_label=label,
            **options,
        )
        drawn.add_tools(cursor)
        drawn.xaxis.visible = False
        drawn.toolbar.logo = None
        drawn.toolbar_location = None  # the tools still work; the first figure's bar serves all
        drawn.min_border_left, drawn.min_border_right = 60, 10
        drawn.title.text_font_size = "12px"
        return drawn

    joint = plot("action: planned, commanded, measured", 230, (observed.units or ("action units",))[0])
    joint.yaxis.name = f"unit-{number}"
    joint.toolbar_location = "above"
    joint.y_range = DataRange1d(range_padding=0.15, only_visible=True)
    planned = joint.line(
        "time_s", "planned", source=steps, color=PLANNED, line_dash="dashed", legend_label="planned"
    )
    for name, colour in (("commanded", COMMANDED), ("measured", MEASURED)):
        if name == "commanded" or np.isfinite(observed.measured).any():
            joint.line("time_s", name, source=steps, color=colour, line_width=1.5, legend_label=name)
    for from_s, to_s in takeovers(run):
        box = BoxAnnotation(left=from_s, right=to_s + period_s, fill_color=PERSON, fill_alpha=0.2)
        joint.add_layout(box)
    joint.legend.orientation, joint.legend.click_policy = "horizontal", "hide"
    _small_legend(joint)
    tips = [
        ("step", "@episode.@step"),
        ("planned", "@planned"),
        ("commanded", "@commanded"),
        ("measured", "@measured"),
        (f"{held_name(run.steps)} age", "@plan_age steps, @plan_left left"),
        ("reason", "@reason"),
    ]
    joint.add_tools(HoverTool(renderers=[planned], tooltips=tips, mode="vline"))

    figures = [joint, _requests(plot, run), _marks(plot, run, observed)]
    age = plot("gate", 130, "score")
    age.line("time_s", "score", source=steps, color=PLAIN, legend_label=run.steps[-1].gate)
    age.line("time_s", "threshold", source=steps, color="black", line_dash="dotted", legend_label="threshold")
    _small_legend(age)
    figures.append(age)
    if any(step.planned for step in run.steps) and run.steps[-1].gate != "age":
        plan = plot(f"age of the {held_name(run.steps)}", 110, "steps")
        plan.line("time_s", "plan_age", source=steps, color=PLAIN)
        figures.append(plan)
    latency = plot("latency of a step, and the control period", 130, "ms", y_axis_type="log")
    latency.yaxis.ticker.num_minor_ticks, latency.yaxis.ticker.desired_num_ticks = 0, 3
    latency.scatter("time_s", "total_ms", source=steps, size=3, color=COMMANDED)
    latency.line([0.0, end_s], [1000 * period_s] * 2, color="black", line_dash="dotted")
    figures.append(latency)
    if run.link:
        link = plot("round trip on the link, estimated", 110, "ms")
        samples = run.link[:: thinned(len(run.link))]
        link.line([each.time_s for each in samples], [each.rtt_ms for each in samples], color=PLAIN)
        figures.append(link)
    figures[-1].xaxis.visible = True
    figures[-1].xaxis.axis_label = "time (s)"
    figures[-1].height += 40
    if observed.frames:
        for each in figures:
            each.js_on_event("mousemove", CustomJS(code=f"window.pictureAt?.({number}, cb_obj.x)"))
    return column(*figures, sizing_mode="stretch_width", name=f"timeline-{number}")


def _small_legend(drawn: figure) -> None:
    drawn.legend.label_text_font_size, drawn.legend.padding = "11px", 3
    drawn.legend.background_fill_alpha = 0.6


def _chosen(data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    nothing = np.full(len(data["time_s"]), np.nan)
    return {name: data.get(f"{name}_0", nothing) for name in ("planned", "commanded", "measured")}


def _requests(plot: Callable[..., figure], run: BagRun) -> figure:
    found = requests_of(run)
    found = found[:: thinned(len(found))]
    lanes = count()
    data = {
        "sent": [each.sent_s for each in found],
        "end": [each.end_s for each in found],
        "lane": [-(next(lanes) % LANES) for _ in found],
        "took": [f"{1000 * (e.end_s - e.sent_s):.1f} ms" if e.replied else "no reply" for e in found],
        "target": [each.target_ms for each in found],
        "up": [each.up_bytes for each in found],
        "down": [each.down_bytes for each in found],
        "colour": [REPLIED if each.replied else UNANSWERED for each in found],
    }
    drawn = plot("requests, from sending to reply (orange: no reply)", 110, "")
    drawn.yaxis.visible = False
    bars = drawn.hbar(
        "lane", left="sent", right="end", height=0.7, color="colour", source=ColumnDataSource(data)
    )
    tips = [("took", "@took, of it the target @target{0.0} ms"), ("bytes", "@up up, @down down")]
    drawn.add_tools(HoverTool(renderers=[bars], tooltips=tips))
    return drawn


def _marks(plot: Callable[..., figure], run: BagRun, observed: Observed) -> figure:
    marks = marks_of(run, observed)
    marks = marks[:: thinned(len(marks))]
    source = ColumnDataSource(
        {
            "time_s": [at_s for at_s, _ in marks],
            "what": [what for _, what in marks],
            "y": [list(ROWS).index(what.partition(":")[0]) for _, what in marks],
            "colour": [ROWS[what.partition(":")[0]] for _, what in marks],
        }
    )
    drawn = plot("from below: where steps fell back, safety interventions, pushes, takeovers", 90, "")
    drawn.y_range = Range1d(-0.7, len(ROWS) - 0.3)
    drawn.yaxis.visible = False
    dots = drawn.scatter("time_s", "y", source=source, marker="triangle", size=9, color="colour")
    drawn.add_tools(HoverTool(renderers=[dots], tooltips=[("", "@what")]))
    return drawn
