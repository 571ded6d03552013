# SPDX-License-Identifier: Apache-2.0
"""PipeInfer and DSI: how long a chunk of tokens takes while drafts of it are verified.

    .venv/bin/python -m adahi_lab.papers.pipeinfer.table clock

Simulates machines by a test clock, for made-up chunks with any rate of acceptance; the table of papers/tokens
does so for the chunks of a draft and its target. Every way gives the target's own chunk, or the program ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import typer
from rich.console import Console

from adahi_lab.papers.pipeinfer.pipelined_clock import INSTANCES, UNBOUNDED, pipelined
from adahi_lab.papers.tokens.run_clock import Decoded, Machines, alone, speculative
from adahi_lab.papers.tokens.texts import MadeUpText, Text, own_chunk
from adahi_lab.papers.tokens.token_pair import CLUSTER, TOKENS_PER_RUN
from adahi_lab.reporting.tables import narrow_table, number

SEED, LENGTH, REPEATS = 11, 64, 8
ACCEPTANCES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
LATENCIES = (0.02, 0.1, 0.25, 0.5, 0.75, 1.0)  # of the draft; DSI's are from 0.01 to 1
LOOKAHEADS = (1, 2, 5, 10)
app = typer.Typer(add_completion=False)
console = Console(width=130)


@app.callback()
def command() -> None:
    """Simulate PipeInfer and DSI."""


def checked(text: Text, made: Sequence[Decoded]) -> None:
    """End the program if a way gives another chunk than the target's own."""
    own = own_chunk(text)
    for each in made:
        if each.tokens != own:
            raise SystemExit(f"another chunk: {each.tokens}, must be {own}")


def total(made: Sequence[Decoded]) -> float:
    """Return the time for all chunks."""
    return sum(each.time_s for each in made)


@app.command()
def clock() -> None:
    """Simulate made-up chunks: PipeInfer's pipeline, then DSI's instances."""
    title = f"PipeInfer by a test clock: {CLUSTER.stages} machines of 11 layers, chunks of {LENGTH} tokens"
    note = (
        f"A pass takes 1, a drafted token 0.02; {TOKENS_PER_RUN} drafted tokens a run. Times are for a "
        f"chunk, means of {REPEATS}. Speed-up: against plain speculation. Void: passes that were stopped, of "
        "all; saved: layers that these did not pass, of all; not stopped: time where void passes go on"
    )
    columns = [
        "alone",
        "speculative",
        "PipeInfer",
        "speed-up",
        "passes",
        "void",
        "saved",
        "not stopped",
    ]
    table = narrow_table(title, ["acceptance"], columns, note)
    for acceptance in ACCEPTANCES:
        texts = [MadeUpText(LENGTH, acceptance, seed) for seed in range(REPEATS)]
        own = [alone(text, CLUSTER) for text in texts]
        plain = [speculative(text, TOKENS_PER_RUN, CLUSTER) for text in texts]
        piped = [pipelined(text, TOKENS_PER_RUN, CLUSTER, UNBOUNDED) for text in texts]
        read = [pipelined(text, TOKENS_PER_RUN, replace(CLUSTER, cancels=False), UNBOUNDED) for text in texts]
        for text, *made in zip(texts, own, plain, piped, read, strict=True):
            checked(text, made)
        passes = sum(each.passes for each in piped)
        table.add_row(
            f"{acceptance:.2f}",
            *(number(total(each) / REPEATS, 1) for each in (own, plain, piped)),
            number(total(plain) / total(piped), 2),
            number(passes / REPEATS, 0),
            f"{sum(each.void for each in piped) / passes:.0%}",
            f"{sum(each.saved for each in piped) / (passes * CLUSTER.stages * 11):.0%}",
            number(total(read) / REPEATS, 1),
        )
    console.print(table)
    instances()


def instances() -> None:
    """Simulate DSI on a grid, with plain speculation and none on the same chunks."""
    title = f"DSI by a test clock: {INSTANCES} instances of the target, chunks of {LENGTH} tokens"
    note = (
        "A pass takes 1. Rows: duration of a drafted token. Columns: acceptance. Cells: speed-up of DSI "
        "against the faster of plain speculation and no draft, each with the best of the lookaheads "
        f"{', '.join(map(str, LOOKAHEADS))} for which the instances are enough; means of {REPEATS} chunks"
    )
    table = narrow_table(title, ["draft"], [f"{each:.2f}" for each in ACCEPTANCES], note)
    slower = compared = 0
    for draft_s in LATENCIES:
        machines, cells = Machines(lanes=INSTANCES, draft_s=draft_s), []
        batches = [each for each in LOOKAHEADS if math.ceil(1.0 / (each * draft_s)) <= INSTANCES]
        for acceptance in ACCEPTANCES:
            best: dict[str, float] = {}
            for batch in batches or [max(LOOKAHEADS)]:
                sums = {"alone": 0.0, "plain": 0.0, "DSI": 0.0}
                for seed in range(REPEATS):
                    text = MadeUpText(LENGTH, acceptance, seed)
                    made = (
                        alone(text, machines),
                        speculative(text, batch, machines),
                        pipelined(text, batch, machines, INSTANCES),
                    )
                    checked(text, made)
                    compared += 1
                    slower += made[2].time_s > min(made[0].time_s, made[1].time_s) + 1e-9
                    for name, each in zip(sums, made, strict=True):
                        sums[name] += each.time_s
                best = {name: min(value, best.get(name, math.inf)) for name, value in sums.items()}
            cells.append(number(min(best["alone"], best["plain"]) / best["DSI"], 2))
        table.add_row(f"{draft_s:g}", *cells)
    console.print(table)
    console.print(f"DSI was slower than the faster of the two in {slower} of {compared} chunks.")


if __name__ == "__main__":
    app()
