# SPDX-License-Identifier: Apache-2.0
"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.table import Table

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.evaluation.metrics import MARGIN, Paired, holm
from adahi_lab.evaluation.step_costs import StepCost
from adahi_lab.figures import Figures
from adahi_lab.methods.methods import METHODS
from adahi_lab.reporting.published_figures import NOT_REPORTED, REPORTED

RATES = (
    "TR: share of steps with a request. TSR (true skip ratio): share of the other steps with a draft "
    "that the target would have accepted."
)
HELD = "Held: share of steps in which the robot stood still because it waited for a reply."


def number(value: float | None, digits: int = 3) -> str:
    """Format a figure with so many decimals; empty without a figure."""
    return "" if value is None else f"{value:.{digits}f}"


def narrow_table(title: str, names: Sequence[str], headings: Sequence[str], caption: str = "") -> Table:
    """Return an empty compact table: columns of names, and of figures.

    A long name continues on the next line; figures are not cut.
    """
    table = Table(
        title=title,
        caption=caption or None,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    for name in names:
        table.add_column(name, overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def _refusals(figures: Mapping[str, Figures], task: str = "") -> list[str]:
    return [
        f"{task} {METHODS[name].label} {each['refused']}".strip()
        for name, each in figures.items()
        if each.get("refused")
    ]


def _caption(refusals: Sequence[str]) -> str | None:
    """Return the caption of a table; None without refusals."""
    return f"refused, being no action: {', '.join(refusals)}" if refusals else None


def step_cost_table(costs: Mapping[str, StepCost], title: str) -> Table:
    """Return weights and time of a step by policy."""
    table = narrow_table(title, ["policy"], ["weights", "median ms", "p99 ms"])
    for name, cost in costs.items():
        table.add_row(name, f"{cost.parameters:,}", number(cost.median_ms), number(cost.p99_ms))
    return table


def method_table(figures: Mapping[str, Figures], title: str) -> Table:
    """Return success, TR and TSR of each method, with calls, time and MSE or, if measured, latency.

    At most eighty columns wide; a caption explains TR, TSR and held.
    """
    measured = [
        ("success", lambda f: number(f["success_rate"])),
        ("95 %", lambda f: "{:.2f}-{:.2f}".format(*f["success_ci95"])),
        ("TR", lambda f: number(f["transmission_rate"])),
        ("TSR", lambda f: number(f["true_skip_ratio"])),
    ]
    if all("per_action_latency_ms" in f for f in figures.values()):
        measured += [
            ("action\nmean ms", lambda f: number(f["per_action_latency_ms"]["mean"], 2)),
            ("action\np95 ms", lambda f: number(f["per_action_latency_ms"]["p95"], 2)),
            ("verify\np50 ms", lambda f: number((f["verify_rtt_ms"] or {}).get("p50"), 2)),
            ("fell\nback", lambda f: str(f["fallbacks"])),
        ]
    else:
        measured += [
            ("calls/\nepisode", lambda f: number(f["calls_per_episode"], 1)),
            ("steps to\nsuccess", lambda f: number(f["steps_to_success"], 1)),
            ("held", lambda f: number(f["held_share"])),
            ("MSE", lambda f: number(f["mse"])),
        ]
    held = HELD if any(figure.get("held_share") for figure in figures.values()) else None
    notes = "\n".join(filter(None, (RATES, held, _caption(_refusals(figures)))))
    table = narrow_table(title, ["method"], [heading for heading, _ in measured], notes)
    for name, values in figures.items():
        table.add_row(METHODS[name].label, *(show(values) for _, show in measured))
    return table


def paired_table(figures: Mapping[str, Figures]) -> Table | None:
    """Return the comparison of each method with the reference, by episodes; None without one."""
    pairs = {name: values["against"] for name, values in figures.items() if values.get("against")}
    if not pairs:
        return None
    reference = METHODS[next(iter(pairs.values()))["method"]].label
    headings = ("it alone", "that alone", "p", "no worse,\np", "is")
    table = narrow_table(f"against {reference}", ("method",), headings)
    for name, found in zip(pairs, _together(pairs.values()), strict=True):
        alone = str(found.only_this), str(found.only_other)
        both = probability(found.p), probability(found.no_worse)
        table.add_row(METHODS[name].label, *alone, *both, found.verdict)
    table.caption = (
        f"p: McNemar's exact test; no worse: by less than {MARGIN:g}, Tango's one-sided score test; both "
        "adjusted for all rows by Holm"
    )
    return table


def _together(pairs: Iterable[Figures]) -> list[Paired]:
    """Return comparisons with p values that are adjusted for their number."""
    found = [_paired(pair) for pair in pairs]
    adjusted = zip(holm([each.p for each in found]), holm([each.no_worse for each in found]), strict=True)
    return [each._replace(p=p, no_worse=least) for each, (p, least) in zip(found, adjusted, strict=True)]


def standing_table(figures: Mapping[str, Figures], title: str) -> Table:
    """Return the standings of methods, at most eighty columns wide: see `evaluation.standing.standings`."""
    headings = ("suc-\ncess", "95 %", "vs\nref", "ran-\ndom", "vs\nit", "TR", "calls", "kB", "weights")
    table = narrow_table(title, ("method",), headings)
    for name, values in figures.items():
        baseline, sent = values["random"], values["bytes_per_episode"]
        table.add_row(
            METHODS[name].label,
            number(values["success_rate"]),
            "{:.2f}-{:.2f}".format(*values["success_ci95"]),
            _sign(values["against"]),
            "" if baseline is None else number(baseline["success_rate"]),
            "" if baseline is None else _sign(baseline["against"]),
            number(values["transmission_rate"]),
            number(values["calls_per_episode"], 1),
            "?" if sent is None else number((sent["up"] + sent["down"]) / 1e3, 1),
            "?" if values["weights_on_robot"] is None else f"{values['weights_on_robot']:,}",
        )
    reference = next((f["against"]["method"] for f in figures.values() if f["against"]), None)
    table.caption = (
        f"vs: + better, - worse, = no worse, ? undecided, each at 5 %; ref: "
        f"{'none' if reference is None else METHODS[reference].label}; random: a random gate in the gate's "
        "place, at the same rate. calls, kB of requests and replies: per episode; weights: on the robot"
    )
    return table


SIGNS = {"better": "+", "worse": "-", "no worse": "=", "undecided": "?"}


def _sign(pair: Figures | None) -> str:
    return "" if pair is None else SIGNS[_paired(pair).verdict]


def _paired(pair: Figures) -> Paired:
    return Paired(**{name: pair[name] for name in Paired._fields if name in pair})  # earlier ones have fewer


def probability(p: float) -> str:
    """Format the p of a test; it is never 0."""
    return number(p) if p >= 0.0005 else "< .001"


def paper_table(tasks: Mapping[str, Mapping[str, Figures]]) -> Table:
    """Return the paper's Table I beside ours, at most eighty columns wide.

    Args:
        tasks: figures by task and method.
    """
    headings = ("success", "95 %", "paper", "TR", "TSR", "first\ncode", "paper", "MSE", "paper")
    table = narrow_table("Table I, ours beside the paper's", ("method",), headings)
    table.caption = _caption([each for task, methods in tasks.items() for each in _refusals(methods, task)])
    for task, methods in tasks.items():
        table.add_section()
        table.add_row(f"[bold]{task}[/]")
        for name, figures in methods.items():
            theirs = REPORTED.get(task, {}).get(name, NOT_REPORTED)
            table.add_row(
                METHODS[name].label,
                number(figures["success_rate"]),
                "{:.2f}-{:.2f}".format(*figures["success_ci95"]),
                number(theirs.success_rate),
                number(figures["transmission_rate"]),
                number(figures["true_skip_ratio"], 2),
                number(figures["true_skip_ratio_primary"], 2),
                number(theirs.true_skip_ratio),
                number(figures["mse"], 2),
                number(theirs.mse, 2),
            )
    return table


def calibration_table(calibration: Calibration) -> Table:
    """Return the results of a calibration."""
    figures = calibration.figures
    table = Table(
        title=f"{calibration.task}: calibration", title_justify="left", box=box.SIMPLE, show_header=False
    )
    rows = {
        "deviation": f"normalization {calibration.normalization}, smoothing {calibration.smoothing}",
        **(_rejections(figures) if "rank_correlation" in figures else {}),
        **{
            f"threshold, {gate} gate": f"{value:.4f}, TR {figures['measured_rates'].get(gate, 1 - value):.3f}"
            for gate, value in calibration.thresholds.items()
        },
    }
    if "rank_correlation" in figures:
        rows["rejection probability there"] = number(figures["rejection_at_threshold"])
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _rejections(figures: Figures) -> dict[str, str]:
    """Return the figures of rejected codes, where there are codes."""
    return {
        "actions": f"{figures['actions']:,} on {figures['episodes']} episodes",
        "rank correlation with rejection": number(figures["rank_correlation"]),
        "the same, held out": number(figures.get("rank_correlation_held_out")),
        **{
            f"{kind} fit": "P = {slope:.3f} {of} {intercept:+.3f}, R2 {r2:.3f}".format(
                of="d" if kind == "linear" else "ln d", **figures[kind]
            )
            for kind in ("linear", "logarithmic")
        },
    }
