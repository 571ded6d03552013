# SPDX-License-Identifier: Apache-2.0
"""`adahi methods`: the implemented methods of papers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from rich.text import Text
from typer import Option

from adahi_lab.cli import options
from adahi_lab.cli.output import write_json
from adahi_ros.cli.terminal import console, say


def methods(
    figures: Annotated[
        bool, Option("--figures", help="The figures of papers, ours, and what makes them.")
    ] = False,
    json_file: options.JsonFile = None,
) -> None:
    """List the methods of papers: how near each is to its paper, how to run it, when, and its cost."""
    from adahi_lab.papers.literature import LITERATURE, known_methods
    from adahi_lab.reporting.tables import narrow_table

    known = known_methods()
    write_json(json_file, {"methods": [{**asdict(each), "run": each.run} for each in known]})
    if figures:
        columns = "method", "the paper", "here", "why they differ", "by"
        table = narrow_table("papers' figures and ours, on other policies, tasks and machines", columns, ())
        for each in known:
            if each.says:
                table.add_row(each.name, each.says, each.here, each.because, "; ".join(each.by))
        console.print(table)
        return
    for each in known:
        folder = "adahi_ros/" * (each in LITERATURE and not each.file.startswith("adahi_lab/"))
        console.print(Text.assemble((each.name, "bold"), f"  {each.paper}"))
        lines = (
            each.idea,
            f"{each.fidelity}: {each.differs}" if each.differs else each.fidelity,
            f"{each.run}  ({folder}{each.file})",
            f"use it: {each.use}",
            f"a step: {each.cost}",
            *(f"its figures: {command}" for command in each.by),
        )
        console.print(Text("".join(f"\n  {line}" for line in lines)[1:]))
    say("a step: ms on the robot, of ball, Meta-World and kitchen")
    say("on your machine: python -m adahi_lab.papers.method_cost TASK")
    say("what each did on these worlds: docs/research/methods.md, and --figures")
