# SPDX-License-Identifier: Apache-2.0
"""CoSine: several robots, several drafters and one verifier.

    .venv/bin/python -m adahi_lab.papers.cosine.table clock
    .venv/bin/python -m adahi_lab.papers.cosine.table drafters TASK FOLDER OUT [--episodes 240]
    .venv/bin/python -m adahi_lab.papers.cosine.table pair TASK OUT [--robots 8]
    .venv/bin/python -m adahi_lab.papers.cosine.table ray TASK OUT [--pass-ms 400]

`clock` simulates robots by a test clock, with made-up tokens: four drafters, each better at one of four kinds
of task. `drafters` trains a specialised draft for each of two kinds, in about two minutes of a core. `pair`
simulates the machines with the tokens of these drafts and their target. `ray` runs them as actors on the
nodes of a Ray, which it starts here, or of the one at `--address`, where all nodes need the folder. A pass
lasts `--pass-ms`, to emulate a large target. Every chunk is the target's own, or the program ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from adahi_lab.cli.output import job_bar
from adahi_lab.papers.cosine.drafters import GENERAL, KINDS, train_drafters
from adahi_lab.papers.cosine.serving import COSINE, DraftedText, Served, Service, Way
from adahi_lab.papers.cosine.serving_clock import MadeUpDrafts, PolicyDrafts, serve
from adahi_lab.papers.tokens.observed_chunks import Seen, by_robot, load_token_policy, observed_chunks
from adahi_lab.papers.tokens.texts import own_chunk
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.reporting.tables import narrow_table, number

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
PLAIN_ON_RAY = "plain: the general draft on both nodes, 4 tokens"
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
    command = f"python -m adahi_lab.papers.cosine.table drafters {task} {folder} OUT --episodes {episodes}"
    train_drafters(task, folder, out, episodes, command, console.print)


@dataclass(frozen=True)
class Trained:
    """The drafts and what robots see.

    Attributes:
        special, general: paths of specialised drafts, and of the one for all tasks.
        target: path of the target.
        seen: by robot, at the start of its chunks.
        policies: loaded, by path.
    """

    special: list[Path]
    general: Path
    target: Path
    seen: list[list[Seen]]
    policies: dict[Path, TokenPolicy]

    @classmethod
    def train(cls, task: str, out: Path, robots: int, chunks: int) -> Trained:
        """Load the drafts of a folder, and observe robots at a task."""
        special, general, target = (
            [out / f"draft_{kind}" for kind in range(KINDS)],
            out / GENERAL,
            out / "target",
        )
        policies = {path: load_token_policy(path) for path in (*special, general, target)}
        seen = by_robot(
            observed_chunks(task, policies[general], policies[target], robots, SEED), policies[target]
        )
        return cls(special, general, target, [own[:chunks] for own in seen], policies)

    def texts(self, drafts: Sequence[Path]) -> list[list[DraftedText]]:
        """Return the chunks as some drafts see them."""
        of = [self.policies[path] for path in drafts]
        return [[PolicyDrafts(of, self.policies[self.target], *each) for each in own] for own in self.seen]

    @property
    def own(self) -> list[list[int]]:
        """The target's chunks."""
        return [own_chunk(text) for each in self.texts([self.general]) for text in each]  # type: ignore[arg-type]


@app.command()
def pair(
    task: str,
    out: Path,
    robots: Annotated[int, typer.Option(min=2, help="Episodes, each of another robot")] = 8,
    chunks: Annotated[int, typer.Option(min=1, help="Of each robot, at most")] = 4,
) -> None:
    """Simulate the machines with the tokens of trained drafts."""
    trained = Trained.train(task, out, robots, chunks)
    own, special = trained.own, trained.special
    title = f"{task}: {len(trained.seen)} robots by a test clock, {len(own)} chunks of {len(own[0])} tokens"
    table = narrow_table(title, ["decoding"], COLUMNS, NOTE)
    plain = serve(trained.texts([trained.general]), Way(), Service(1))
    row(table, "one general draft, 4 tokens", plain, plain, own)
    for name, way in named_for_two(WAYS).items():
        row(table, name, serve(trained.texts(special), way, Service(len(special))), plain, own)
    console.print(table)


@app.command("ray")
def on_ray(
    task: str,
    out: Path,
    robots: Annotated[int, typer.Option(min=2, help="Episodes, each of another robot")] = 8,
    chunks: Annotated[int, typer.Option(min=1, help="Of each robot, at most")] = 4,
    pass_ms: Annotated[float, typer.Option(min=1.0, help="A pass of the target lasts so long")] = 400.0,
    address: Annotated[str, typer.Option(help="Of a Ray with nodes for drafters and verifier")] = "",
) -> None:
    """Run drafters and verifier as actors on the nodes of a Ray, and simulate the same."""
    from adahi_lab.papers.cosine.serving_ray import RayService, nodes_of

    trained = Trained.train(task, out, robots, chunks)
    own, unit_s = trained.own, 1e-3 * pass_ms
    service = Service(KINDS, 0.1 * unit_s, 0.01 * unit_s, unit_s, 0.005 * unit_s)
    ways = {
        PLAIN_ON_RAY: ([trained.general] * KINDS, Way()),
        "no draft": (trained.special, Way(tokens=None)),
        "routed, fused, in a pipeline, 4 tokens": (trained.special, replace(COSINE, tokens=4)),
        "CoSine: also adaptive": (trained.special, COSINE),
    }
    served: dict[str, Served] = {}
    with nodes_of(address, KINDS), job_bar(f"{task}: ways", len(ways)) as update:
        actors = RayService([trained.general, *trained.special], trained.target, service)
        for name, (drafts, way) in ways.items():
            served[name] = actors.serve(drafts, trained.seen, len(own[0]), way)
            update(advance=1)
    simulated = {name: serve(trained.texts(drafts), way, service) for name, (drafts, way) in ways.items()}
    note = (
        f"A pass lasts {pass_ms:g} ms, and 0.005 of that for each token; a drafted token 0.1 of it, and 0.01 "
        "for each request on a node. Latency: of a chunk, s. Drafted, accepted: tokens per verification of a "
        "robot. Idle: of the verifier"
    )
    about = f"{len(trained.seen)} robots, {KINDS} drafters, {len(own)} chunks of {len(own[0])} tokens"
    for where, made in {
        f"on Ray, {actors.nodes} nodes": served,
        "the same by the test clock": simulated,
    }.items():
        table = narrow_table(f"{task}, {where}: {about}", ["decoding"], COLUMNS, note)
        for name, each in made.items():
            row(table, name, each, made[PLAIN_ON_RAY], own)
        console.print(table)


def named_for_two(ways: Mapping[str, Way]) -> dict[str, Way]:
    """Return the ways that need several drafters, and no draft."""
    return {name: way for name, way in ways.items() if way != Way()} | {"a special draft at random": Way()}


if __name__ == "__main__":
    app()
