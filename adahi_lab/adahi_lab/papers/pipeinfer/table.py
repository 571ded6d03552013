# SPDX-License-Identifier: Apache-2.0
"""PipeInfer and DSI: how long a chunk of tokens takes while drafts of it are verified.

    .venv/bin/python -m adahi_lab.papers.pipeinfer.table clock

Simulates machines by a test clock, for made-up chunks with any rate of acceptance; the table of papers/tokens
does so for the chunks of a draft and its target. Every way gives the target's own chunk, or the program ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import typer
from rich.console import Console

from adahi_lab.papers.pipeinfer.pipelined_clock import INSTANCES, UNBOUNDED, pipelined
from adahi_lab.papers.pipeinfer.token_runs import CUTOFF, NO_CUTOFF, Cutoff
from adahi_lab.papers.tokens.run_clock import Decoded, Machines, alone, speculative
from adahi_lab.papers.tokens.texts import MadeUpText, SampledText, Text, by_last
from adahi_lab.papers.tokens.token_pair import CLUSTER, TOKENS_PER_RUN, check_own
from adahi_lab.reporting.tables import narrow_table, number
from adahi_ros.core.proposal import softmax

SEED, LENGTH, REPEATS = 11, 64, 8
ACCEPTANCES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
LATENCIES = (0.02, 0.1, 0.25, 0.5, 0.75, 1.0)  # of the draft; DSI's are from 0.01 to 1
LOOKAHEADS = (1, 2, 5, 10)
CUTOFFS = {
    "no cutoff": NO_CUTOFF,
    "0.05 + 0.05 a run": CUTOFF,
    "0.1": Cutoff(0.1),
    "0.5": Cutoff(0.5),
    "0.5 - 0.01 a token": Cutoff(0.5, decay=0.01),
}
WORDS, NOISES = 16, (0.0, 0.5, 1.0, 2.0, 4.0)
LINKS = (0.0125, 0.125, 0.5)  # one way between two machines
app = typer.Typer(add_completion=False)
console = Console(width=130)


@app.callback()
def command() -> None:
    """Simulate PipeInfer and DSI."""


def work(texts: Sequence[Text], way: Callable[..., Decoded], *how: object) -> np.ndarray:
    """Return time, passes, void passes and saved layers of a way, for each text.

    Raises:
        ValueError: it gives another chunk than the target's own.
    """
    made = [way(text, *how) for text in texts]
    check_own([each.tokens for each in made], texts)
    return np.array([[each.time_s, each.passes, each.void, each.saved] for each in made])


def mean_work(texts: Sequence[Text], way: Callable[..., Decoded], *how: object) -> np.ndarray:
    """Return the mean of `work`."""
    mean: np.ndarray = work(texts, way, *how).mean(axis=0)
    return mean


@app.command()
def clock() -> None:
    """Simulate made-up chunks: PipeInfer's pipeline, then DSI's instances."""
    title = f"PipeInfer by a test clock: {CLUSTER.stages} machines of 11 layers, chunks of {LENGTH} tokens"
    note = (
        f"A pass takes 1, a drafted token 0.02; {TOKENS_PER_RUN} drafted tokens a run, with the cutoff "
        f"0.05 + 0.05 a run. Times are for a chunk, means of {REPEATS}. Speed-up: against plain speculation. "
        "Void: passes that were stopped, of all; saved: layers that these did not pass, of all; not stopped: "
        "time where void passes go on"
    )
    columns = "alone", "speculative", "PipeInfer", "speed-up", "passes", "void", "saved", "not stopped"
    table = narrow_table(title, ["acceptance"], columns, note)
    settings = [*CUTOFFS, *(f"link {each:g}" for each in LINKS)]
    note = (
        "Cells: speed-up against plain speculation with the same link, and passes for a chunk. A run: added "
        "to the cutoff with each run since a token was last verified; a token: subtracted with each below "
        "the cutoff since then. The draft's confidence is on average the acceptance. Link: one way between "
        "two machines, with the cutoff 0.05 + 0.05 a run"
    )
    parts = narrow_table("PipeInfer's cutoff, and a link", ["acceptance"], settings, note)
    for acceptance in ACCEPTANCES:
        texts = [MadeUpText(LENGTH, acceptance, seed) for seed in range(REPEATS)]
        own, plain = mean_work(texts, alone, CLUSTER), mean_work(texts, speculative, TOKENS_PER_RUN, CLUSTER)
        here = TOKENS_PER_RUN, CLUSTER, UNBOUNDED
        piped = {each: mean_work(texts, pipelined, *here, each) for each in CUTOFFS.values()}
        time, passes, void, saved = piped[CUTOFF]
        read = mean_work(texts, pipelined, TOKENS_PER_RUN, replace(CLUSTER, cancels=False), UNBOUNDED, CUTOFF)
        table.add_row(
            f"{acceptance:.2f}",
            *(number(each, 1) for each in (own[0], plain[0], time)),
            number(plain[0] / time, 2),
            number(passes, 0),
            f"{void / passes:.0%}",
            f"{saved / (passes * CLUSTER.stages * CLUSTER.layers):.0%}",
            number(read[0], 1),
        )
        cells = [(plain[0], each) for each in piped.values()]
        for link_s in LINKS:
            far = replace(CLUSTER, link_s=link_s)
            plainly = mean_work(texts, speculative, TOKENS_PER_RUN, far)
            cells.append((plainly[0], mean_work(texts, pipelined, TOKENS_PER_RUN, far, UNBOUNDED, CUTOFF)))
        parts.add_row(f"{acceptance:.2f}", *(f"{own / each[0]:.2f} ({each[1]:.0f})" for own, each in cells))
    console.print(table)
    console.print(parts)
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
            texts = [MadeUpText(LENGTH, acceptance, seed) for seed in range(REPEATS)]
            own, best = work(texts, alone, machines)[:, 0], np.full(3, np.inf)
            for batch in batches or [max(LOOKAHEADS)]:
                plain = work(texts, speculative, batch, machines)[:, 0]
                piped = work(texts, pipelined, batch, machines, INSTANCES)[:, 0]
                compared += REPEATS
                slower += int((piped > np.minimum(own, plain) + 1e-9).sum())
                best = np.minimum(best, [own.mean(), plain.mean(), piped.mean()])
            cells.append(number(min(best[:2]) / best[2], 2))
        table.add_row(f"{draft_s:g}", *cells)
    console.print(table)
    sampled()
    console.print(f"DSI was slower than the faster of the two in {slower} of {compared} chunks.")


def sampled() -> None:
    """Simulate DSI on sampled tokens, by the rule that keeps the target's distribution, and by equality."""
    machines, batch = Machines(lanes=2, layers=CLUSTER.layers, layer_s=1 / CLUSTER.layers), 5
    title = f"DSI on sampled tokens by a test clock: 2 instances, chunks of {LENGTH} tokens of {WORDS} words"
    note = (
        f"A pass takes 1, a drafted token 0.1; {batch} drafted tokens a run. Rows: noise in the draft's "
        "logits. Kept: share of drafted tokens that speculative sampling keeps; equal: that equal a sample "
        f"of the target. Times are for a chunk, means of {REPEATS}, by speculative sampling. Itself: an "
        "instance stops only by what it has read. Not stopped: void passes go on"
    )
    columns = "kept", "equal", "speculative", "DSI", "speed-up", "itself", "not stopped", "by equality"
    table = narrow_table(title, ["noise"], columns, note)
    rng = np.random.default_rng(SEED)
    logits, noise = (rng.normal(size=(LENGTH, WORDS, WORDS)) for _ in range(2))
    draws, q = rng.random((REPEATS, LENGTH, 3)), softmax(2.0 * logits, 1.0)
    for scale in NOISES:
        p = softmax(2.0 * logits + scale * noise, 1.0)
        of_draft, own = by_last(p), by_last(q)
        texts, equal = ([SampledText(of_draft, own, each, by) for each in draws] for by in (False, True))
        ways = machines, replace(machines, shares=False), replace(machines, cancels=False)
        made = [mean_work(texts, pipelined, batch, each, machines.lanes)[0] for each in ways]
        made.append(mean_work(equal, pipelined, batch, machines, machines.lanes)[0])
        plain = mean_work(texts, speculative, batch, machines)[0]
        shares = np.minimum(p, q).sum(axis=-1).mean(), (p * q).sum(axis=-1).mean()
        cells = [number(each, 2) for each in shares] + [number(each, 1) for each in (plain, *made)]
        table.add_row(f"{scale:g}", *cells[:4], number(plain / made[0], 2), *cells[4:])
    console.print(table)


if __name__ == "__main__":
    app()
