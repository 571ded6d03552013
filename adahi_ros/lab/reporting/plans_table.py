# SPDX-License-Identifier: Apache-2.0
"""Benefits of plans in process and across links, and their costs on the robot, in one table."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from adahi_ros.lab.figures import Figures
from adahi_ros.lab.methods.methods import METHODS
from adahi_ros.lab.reporting.tables import narrow_table, number

IN_PROCESS = "in one process"


def plans_table(
    task: str,
    figures: Mapping[str, Figures],
    conditions: Mapping[str, Figures],
    correctors: Figures | None,
    drifts: Mapping[str, float],
) -> Table:
    """Return success, calls, time per action and missed periods of each method, condition by condition.

    Below them: a corrector trained only on recordings, and the bounds of a threshold learned online.

    Args:
        task: name of the task.
        figures: by method, of `evaluate_methods`.
        conditions: by name, of `measure_conditions`; none where there is no link.
        correctors: of `compare_correctors`; None where they were not compared.
        drifts: of `guarantee`.
    """
    headings = ["suc-\ncess", "TR", "mean\nms", "p99\nms", "missed\nperiods"]
    promised = (
        f"A threshold that is learned online, in {drifts['drifts']} simulated drifts: the bound of "
        f"{drifts['bound']:g} on what goes wrong unasked held in {drifts['held']}, the worst was "
        f"{drifts['worst']:.3f}; the rate of requests was at most {drifts['furthest_from_rate']:.3f} off."
    )
    table = narrow_table(f"{task}: what plans bring", ("", "method"), headings, promised)
    for name, values in figures.items():
        shown = (number(values[each], 3) for each in ("success_rate", "transmission_rate"))
        table.add_row(
            IN_PROCESS if name == next(iter(figures)) else "", METHODS[name].label, *shown, "", "", ""
        )
    for condition, found in conditions.items():
        table.add_section()
        for row, (name, values) in enumerate(found["methods"].items()):
            latency = values["per_action_latency_ms"]
            table.add_row(
                condition if row == 0 else "",
                METHODS[name].label,
                number(values["success_rate"], 3),
                number(values["transmission_rate"], 3),
                number(latency["mean"], 1),
                number(latency["p99"], 1),
                f"{values['missed_periods']} of {values['steps']}",
            )
    if correctors is not None:
        table.add_section()
        for name, rates in correctors["methods"].items():
            for how, rate in rates.items():
                table.add_row(how.replace("_", " "), METHODS[name].label, number(rate, 3), "", "", "", "")
    return table
