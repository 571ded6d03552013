# SPDX-License-Identifier: Apache-2.0
"""`adahi lab spot`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.table import Table
from typer import Option

from adahi_lab.cli import options
from adahi_lab.cli.output import write_json
from adahi_lab.figures import Figures
from adahi_ros.cli.options import number
from adahi_ros.cli.terminal import console, say

SHIPPED = "config/spot/made.json"


def spot(
    trace: Annotated[
        Path | None, Option(help=f"Prices and revocations: a JSON file. Default: {SHIPPED}.")
    ] = None,
    make: Annotated[Path | None, Option(help="Only make a trace from --seed, and write it here.")] = None,
    traces: Annotated[
        int,
        Option(min=1, max=1000, help="Instead of one trace, replay so many that are made, from --seed on."),
    ] = 1,
    trials: Annotated[int, Option(min=1, max=100_000, help="Trials to replay, without --search.")] = 200,
    search: Annotated[
        Path | None,
        Option(help="Replay the trials of this file of 'adahi lab tune --json', each as long as it took."),
    ] = None,
    work: Annotated[float, number("Mean work of a trial, in h of an instance of speed 1.", 0.1, 1e4)] = 40.0,
    startup: Annotated[float, number("Minutes until an instance works.", 0.0, 59.0)] = 6.0,
    checkpoint: Annotated[float, number("Minutes between saved states of a trial.", 1.0, 60.0)] = 15.0,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Choose spot instances by trend, and replay the costs of a search."""
    from adahi_lab.papers.spottune.spot import Predictor, Rules, by_trend
    from adahi_lab.papers.spottune.spot_costs import CHEAPEST, TREND, Search, costs, over_traces
    from adahi_lab.papers.spottune.spot_trace import load_trace, made_trace
    from adahi_ros.core.assets import asset

    if make is not None:
        made_trace(seed).save(make)
        say(f"trace: {make}")
        return
    if traces > 1:
        options.left_out(f"traces ({traces}) are made", trace=trace)
        market = [made_trace(seed + number) for number in range(traces)]
    else:
        market = [load_trace(trace or asset(SHIPPED))]
    rules = Rules(startup / 60.0, checkpoint / 60.0)
    replayed = Search(trials, work) if search is None else Search.measured(search, work)
    found = [costs(each, replayed, rules) for each in market]
    console.print(_table(found[0] if traces == 1 else None, over_traces(found)))
    if traces == 1:
        rates = found[0]["by"]
        best, kept = (rates[name]["performance_per_cost"] for name in (TREND, CHEAPEST))
        say(f"performance per cost by trend: {best:.2f} times on demand, {best / kept:.2f} times {CHEAPEST}")
    known = found[0]["prediction"]
    say(
        f"predicted an hour ahead: revocations, area under the curve {known['revocation_auc']:.2f}; "
        f"prices within {100 * known['price']:.1f} % ({100 * known['price_kept']:.1f} % if taken as constant)"
    )
    write_json(json_file, {"seed": seed, "traces": found})
    last = market[-1]
    row, fixed = by_trend(last, Predictor(last, last.periods), rules)(last.periods - 1, None)
    say(f"at the end of the trace, rent {last.types[row].name}, {'on demand' if fixed else 'spot'}")


def _table(one: Figures | None, shares: dict[str, tuple[float, float]]) -> Table:
    table = Table()
    table.add_column("rents")
    for heading in ("cost of a trial", "of on demand", "hours", "revocations"):
        table.add_column(heading, justify="right")
    for name, (share, half) in shares.items():
        if one is None:
            table.add_row(name, "", f"{share:.3f} ± {half:.3f}", "", "")
            continue
        each = one["by"][name]
        figures = f"{each['cost']:.3f}", f"{share:.3f}", f"{each['hours']:.1f}", f"{each['revocations']:.2f}"
        table.add_row(name, *figures)
    return table
