"""Garbage to everything that takes input: no crash, and no command outside of the safety envelope.

    .venv/bin/python benchmarks/garbage.py [--inputs 10000] [--seed 0] [--only N] [--json FILE]

Messages go to nodes that run, between good ones that must be answered; every command is checked against the
limits by arithmetic of its own. Files and bags go to what reads them; only errors that name what is wrong
may come out. Accelerations are counted that could be told, of commands far enough apart; a node without any
counts as a crash. Input N of a seed is always the same: `--only N` gives it alone. Ends with code 1 where
there was a crash, or a command outside.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

COLUMNS = ("inputs", "crashes", "named", "commands", "compared", "outside")
HEADS = ("inputs", "crashes", "errors named", "commands", "accelerations", "commands outside")
SHOWN = 20


def main(
    inputs: Annotated[int, typer.Option(min=1, help="How many.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Of all that is drawn.")] = 0,
    only: Annotated[int | None, typer.Option(min=0, help="Give this input alone.")] = None,
    out: Annotated[Path | None, typer.Option("--json", help="File to write, too.")] = None,
) -> None:
    """Give garbage, and print what became of it."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from garbage.outcome import Outcome
    from garbage.trial import run

    def say(outcome: Outcome) -> None:
        print(f"{outcome.kind:>14}: {outcome.inputs} inputs, {time.monotonic() - start:.0f} s", flush=True)

    start = time.monotonic()
    outcomes = run(range(inputs) if only is None else [only], seed, say)
    rows = [(outcome.kind, *map(_count, (vars(outcome)[name] for name in COLUMNS))) for outcome in outcomes]
    total = ("total", *(sum(row[column] for row in rows) for column in range(1, len(HEADS) + 1)))
    print()
    for row in (("kind", *HEADS), *rows, total):
        print("  ".join(f"{cell:>16}" for cell in row))
    faults = [fault for outcome in outcomes for fault in (*outcome.crashes, *outcome.outside)]
    for fault in faults[:SHOWN]:
        print(fault)
    if out is not None:
        out.write_text(
            json.dumps({"seed": seed, "kinds": [asdict(each) for each in outcomes]}, indent=2) + "\n"
        )
    raise typer.Exit(1 if faults else 0)


def _count(value: int | list[str]) -> int:
    return value if isinstance(value, int) else len(value)


if __name__ == "__main__":
    typer.run(main)
