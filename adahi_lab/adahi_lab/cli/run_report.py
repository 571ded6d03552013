# SPDX-License-Identifier: Apache-2.0
"""`adahi report`: one HTML file from bags of runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adahi_lab.cli.options import JsonFile, tried
from adahi_lab.cli.output import write_json
from adahi_ros.cli.options import Incomplete, Namespace, each_bag
from adahi_ros.cli.terminal import command_line, say

if TYPE_CHECKING:
    from adahi_lab.figures import Figures


def report(
    bags: Annotated[
        list[Path], typer.Argument(callback=each_bag, help="Bags with draft_status, side by side.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="File to write. Default: BAG.html beside the first bag.")
    ] = None,
    contract: Annotated[
        str | None,
        typer.Option(
            help="Of the bags: a shipped contract's name, or a YAML file. With it the page names the joints "
            "and shows measured positions and camera images."
        ),
    ] = None,
    namespace: Namespace = "",
    incomplete: Incomplete = False,
    json_file: JsonFile = None,
) -> None:
    """Write one HTML file: an interactive timeline of runs, with a verdict."""
    path = out if out is not None else bags[0].with_name(f"{bags[0].name}.html")
    report_bags(bags, tried("--out", path), contract, namespace, incomplete, json_file)
    say(f"report: {path}, {path.stat().st_size / 1e6:.1f} MB")


def report_bags(
    bags: list[Path],
    path: Path,
    contract: str | None = None,
    namespace: str = "",
    incomplete: bool = False,
    json_file: Path | None = None,
) -> None:
    """Write the page of bags, and print one line per bag."""
    from adahi_lab.calibration.bag_run import bag_run_figures, read_run
    from adahi_lab.reporting.bag_report import ReportedRun, reported, write_bag_report
    from adahi_lab.reporting.observed import read_observed
    from adahi_lab.reporting.run_timeline import IN_WORDS
    from adahi_ros.contract.parsing import contract_path, load_contract

    loaded = None if contract is None else load_contract(contract)
    configuration = {} if contract is None else {f"contract {contract}": contract_path(contract).read_text()}
    runs: list[ReportedRun] = []
    figures: dict[str, Figures] = {}
    for bag in bags:
        run = read_run(bag, namespace, say if incomplete else None)
        found = figures[bag.name] = bag_run_figures(run)
        observed = read_observed(bag, run, loaded, namespace, (lambda loss: None) if incomplete else None)
        runs += reported(bag.name, run, observed, None if loaded is None else loaded.period_s)
        reasons = [f"{count} {IN_WORDS.get(name, name)}" for name, count in found["fallbacks"].items()]
        fallbacks = ", ".join(reasons) or "none"
        say(
            f"{bag}: {found['steps']} steps in {found['duration_s']:.1f} s, "
            f"TR {found['transmission_rate']:.3f}, fell back: {fallbacks}, "
            f"p95 {found['total_ms']['p95']:.2f} ms"
        )
    write_json(json_file, next(iter(figures.values())) if len(bags) == 1 else {"runs": figures})
    title = f"adahi: {', '.join(bag.name for bag in bags)}"
    write_bag_report(runs, title, command_line(), path, configuration)
