# SPDX-License-Identifier: Apache-2.0
"""CoSine: several robots, several drafters and one verifier.

    .venv/bin/python benchmarks/collaborative_decoding.py clock
    .venv/bin/python benchmarks/collaborative_decoding.py drafters TASK FOLDER OUT [--episodes 240]
    .venv/bin/python benchmarks/collaborative_decoding.py pair TASK OUT [--robots 8]

`clock` simulates robots by a test clock, with made-up tokens: four drafters, each better at one of four kinds
of task. `drafters` trains a specialised draft for each of two kinds, in about two minutes of a core. `pair`
simulates the machines with the tokens of these drafts and their target. Every chunk is the target's own, or
the program ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from adahi_ros.lab.decoding.drafters import GENERAL, KINDS, train_drafters
from adahi_ros.lab.decoding.observed_chunks import by_robot, observed_chunks
from adahi_ros.lab.decoding.serving_clock import (
    COSINE,
    DraftedText,
    MadeUpDrafts,
    Served,
    Service,
    Way,
    serve,
)
from adahi_ros.lab.decoding.texts import PolicyDrafts, own_chunk
from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.tokens.token_policy import TokenPolicy

SEED, LENGTH, CHUNKS = 11, 32, 6
ROBOTS = (2, 8, 32, 128)
INSIDE, OUTSIDE, DRAFTERS = 0.8, 0.4, 4
WAYS: dict[str, Way] = {
    "no draft": Way(tokens=None),
    "plain: 4 tokens, a drafter at random": Way(),
    "routed": Way(routed=True),
    "routed, two fused": Way(routed=True, selected=2),
    "routed, fused, in a pipeline": Way(routed=True, selected=2, pipelined=True),
    "CoSine: also adaptive": COSINE,
}
PLAIN = "plain: 4 tokens, a drafter at random"
app = typer.Typer(add_completion=False)
console = Console(width=130)


def row(table: Table, name: str, served: Served, plain: Served, own: Sequence[list[int]]) -> None:
    """Add a way to a table; end the program if a chunk is another than the target's own."""
    if served.chunks != list(own):
        raise SystemExit(f"{name}: another chunk than the target's own")
    tokens = sum(map(len, own))
    latency, before = np.mean(served.latencies_s), np.mean(plain.latencies_s)
    table.add_row(
        name,
        number(tokens / served.time_s, 1),
        f"{plain.time_s / served.time_s - 1.0:+.0%}",
        number(float(latency), 1),
        f"{latency / before - 1.0:+.0%}",
        number(served.drafted / served.passes, 1),
        number(served.accepted / served.passes, 2),
        f"{served.idle_s / served.time_s:.0%}",
    )


COLUMNS = ["tokens/s", "against plain", "latency", "against plain", "drafted", "accepted", "idle"]
NOTE = (
    "A verification takes 1, and 0.005 for each token; a drafted token 0.1, and 0.01 for each request on a "
    "node. Latency: of a chunk. Drafted, accepted: tokens per verification of a robot. Idle: of the verifier"
)


@app.command()
def clock() -> None:
    """Simulate made-up chunks, for several numbers of robots."""
    for robots in ROBOTS:
        kinds = np.random.default_rng(SEED).integers(DRAFTERS, size=robots).tolist()
        texts: list[list[DraftedText]] = [
            [
                MadeUpDrafts(
                    LENGTH,
                    [INSIDE if kind == drafter else OUTSIDE for drafter in range(DRAFTERS)],
                    seed=CHUNKS * robot + chunk,
                )
                for chunk in range(CHUNKS)
            ]
            for robot, kind in enumerate(kinds)
        ]
        title = f"{robots} robots by a test clock, {DRAFTERS} drafters, chunks of {LENGTH} tokens"
        note = f"{NOTE}. A drafter is right with {INSIDE} at its kind of task, else with {OUTSIDE}"
        table = narrow_table(title, ["decoding"], COLUMNS, note)
        own = [list(range(LENGTH))] * (robots * CHUNKS)
        plain = serve(texts, WAYS[PLAIN], Service(DRAFTERS))
        for name, way in WAYS.items():
            row(table, name, serve(texts, way, Service(DRAFTERS)), plain, own)
        console.print(table)


@app.command()
def drafters(
    task: str,
    folder: Path,
    out: Path,
    episodes: Annotated[int, typer.Option(min=10, help="Demonstrated")] = 240,
) -> None:
    """Train specialised drafts, and a general one in the same way."""
    command = (
        f"python benchmarks/collaborative_decoding.py drafters {task} {folder} OUT --episodes {episodes}"
    )
    train_drafters(task, folder, out, episodes, command, console.print)


@app.command()
def pair(
    task: str,
    out: Path,
    robots: Annotated[int, typer.Option(min=2, help="Episodes, each of another robot")] = 8,
    chunks: Annotated[int, typer.Option(min=1, help="Of each robot, at most")] = 4,
) -> None:
    """Simulate the machines with the tokens of trained drafts."""
    names = [*(f"draft_{kind}" for kind in range(KINDS)), GENERAL, "target"]
    loaded = [load_policy(out / name, "onnxruntime") for name in names]
    policies = [each for each in loaded if isinstance(each, TokenPolicy)]
    *special, general, target = policies
    seen = by_robot(observed_chunks(task, general, target, robots, SEED), target)

    def texts(drafts: Sequence[TokenPolicy]) -> list[list[DraftedText]]:
        return [[PolicyDrafts(drafts, target, *each) for each in own[:chunks]] for own in seen]

    alone = texts([general])
    own = [own_chunk(text) for each in alone for text in each]  # type: ignore[arg-type]
    title = f"{task}: {len(seen)} robots by a test clock, {len(own)} chunks of {len(own[0])} tokens"
    table = narrow_table(title, ["decoding"], COLUMNS, NOTE)
    plain = serve(alone, Way(), Service(1))
    row(table, "one general draft, 4 tokens", plain, plain, own)
    for name, way in named_for_two(WAYS).items():
        row(table, name, serve(texts(special), way, Service(len(special))), plain, own)
    console.print(table)


def named_for_two(ways: Mapping[str, Way]) -> dict[str, Way]:
    """Return the ways that need several drafters, and no draft."""
    return {name: way for name, way in ways.items() if way != Way()} | {"a special draft at random": Way()}


if __name__ == "__main__":
    app()
