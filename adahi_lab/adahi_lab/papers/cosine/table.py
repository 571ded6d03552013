# SPDX-License-Identifier: Apache-2.0
"""CoSine: several robots, several drafters and one verifier.

    .venv/bin/python -m adahi_lab.papers.cosine.table clock
    .venv/bin/python -m adahi_lab.papers.cosine.table drafters TASK FOLDER OUT [--episodes 240]
    .venv/bin/python -m adahi_lab.papers.cosine.table pair TASK OUT [--robots 8]
    .venv/bin/python -m adahi_lab.papers.cosine.table ray TASK OUT [--pass-ms 400]

All is compared with a general draft on as many nodes, and with a special draft at random. `clock` simulates
robots by a test clock, with made-up tokens: four drafters, each better at one of four kinds of task; the
general one is as good at all as these are on average. `drafters` trains a specialised draft for each of two
kinds, in about two minutes of a core. `pair` simulates the machines with the tokens of these drafts and their
target. `ray` runs them as actors on the
nodes of a Ray, which it starts here, or of the one at `--address`, where all nodes need the folder. A pass
lasts `--pass-ms`, to emulate a large target. Every chunk is the target's own, or the program ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
GENERAL_DRAFT, RANDOM = "a general draft, 4 tokens", "a special draft at random, 4 tokens"
WAYS: dict[str, Way] = {
    GENERAL_DRAFT: Way(),
    RANDOM: Way(),
    "no draft": Way(tokens=None),
    "routed": Way(routed=True),
    "routed, two fused": Way(routed=True, selected=2),
    "routed, fused, in a pipeline": Way(routed=True, selected=2, pipelined=True),
    "CoSine: also adaptive": COSINE,
}
app = typer.Typer(add_completion=False)
console = Console(width=130)


COLUMNS = ["tokens/s", "general", "special", "latency", "general", "special", "drafted", "accepted", "idle"]
COSTS = "A pass takes 1, and 0.005 for each token; a drafted token 0.1, and 0.01 for each request on a node"
NOTE = (
    "General, special: against the general draft, and a special one at random. Latency: of a chunk. Drafted, "
    "accepted: tokens per verification of a robot. Idle: of the verifier"
)


def compared(title: str, note: str, made: Mapping[str, Served], own: Sequence[list[int]]) -> Table:
    """Return the table of ways; end the program if a chunk is another than the target's own."""
    table, tokens = narrow_table(title, ["decoding"], COLUMNS, f"{note}. {NOTE}"), sum(map(len, own))
    plain = made[GENERAL_DRAFT], made[RANDOM]
    for name, served in made.items():
        if served.chunks != list(own):
            raise SystemExit(f"{name}: another chunk than the target's own")
        latency = float(np.mean(served.latencies_s))
        table.add_row(
            name,
            number(tokens / served.time_s, 1),
            *(f"{each.time_s / served.time_s - 1.0:+.0%}" for each in plain),
            number(latency, 1),
            *(f"{latency / np.mean(each.latencies_s) - 1.0:+.0%}" for each in plain),
            number(served.drafted / served.passes, 1),
            number(served.accepted / served.passes, 2),
            f"{served.idle_s / served.time_s:.0%}",
        )
    return table


@app.command()
def clock() -> None:
    """Simulate made-up chunks, for several numbers of robots."""
    for robots in ROBOTS:
        kinds = np.random.default_rng(SEED).integers(DRAFTERS, size=robots).tolist()

        def texts(acceptances: Sequence[Sequence[float]]) -> list[list[DraftedText]]:
            return [
                [MadeUpDrafts(LENGTH, own, seed=CHUNKS * robot + chunk) for chunk in range(CHUNKS)]
                for robot, own in enumerate(acceptances)
            ]

        special = texts([[INSIDE if kind == each else OUTSIDE for each in range(DRAFTERS)] for kind in kinds])
        general = texts([[(INSIDE + (DRAFTERS - 1) * OUTSIDE) / DRAFTERS] * DRAFTERS] * robots)
        made = {
            name: serve(general if name == GENERAL_DRAFT else special, way, Service(DRAFTERS))
            for name, way in WAYS.items()
        }
        title = f"{robots} robots by a test clock, {DRAFTERS} drafters, chunks of {LENGTH} tokens"
        note = f"{COSTS}. A drafter is right with {INSIDE} at its kind of task, else with {OUTSIDE}"
        console.print(compared(title, note, made, [list(range(LENGTH))] * (robots * CHUNKS)))


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

    def drafts(self, way: str) -> list[Path]:
        """Return the drafts of a way by its name, one for each node."""
        return [self.general] * KINDS if way == GENERAL_DRAFT else self.special

    def texts(self, way: str) -> list[list[DraftedText]]:
        """Return the chunks as the drafts of a way see them."""
        of = [self.policies[path] for path in self.drafts(way)]
        return [[PolicyDrafts(of, self.policies[self.target], *each) for each in own] for own in self.seen]

    @property
    def own(self) -> list[list[int]]:
        """The target's chunks."""
        return [own_chunk(text) for each in self.texts(GENERAL_DRAFT) for text in each]  # type: ignore[arg-type]


@app.command()
def pair(
    task: str,
    out: Path,
    robots: Annotated[int, typer.Option(min=2, help="Episodes, each of another robot")] = 8,
    chunks: Annotated[int, typer.Option(min=1, help="Of each robot, at most")] = 4,
) -> None:
    """Simulate the machines with the tokens of trained drafts."""
    trained = Trained.train(task, out, robots, chunks)
    own = trained.own
    title = f"{task}: {len(trained.seen)} robots by a test clock, {len(own)} chunks of {len(own[0])} tokens"
    made = {name: serve(trained.texts(name), way, Service(KINDS)) for name, way in WAYS.items()}
    console.print(compared(title, COSTS, made, own))


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
    ways = {name: way for name, way in WAYS.items() if way in (Way(), COSINE)}
    served: dict[str, Served] = {}
    with nodes_of(address, KINDS), job_bar(f"{task}: ways", len(ways)) as update:
        actors = RayService([trained.general, *trained.special], trained.target, service)
        for name, way in ways.items():
            served[name] = actors.serve(trained.drafts(name), trained.seen, len(own[0]), way)
            update(advance=1)
    simulated = {name: serve(trained.texts(name), way, service) for name, way in ways.items()}
    note = f"{COSTS}, by a pass of {pass_ms:g} ms"
    about = f"{len(trained.seen)} robots, {KINDS} drafters, {len(own)} chunks of {len(own[0])} tokens"
    for where, made in {
        f"on Ray, {actors.nodes} nodes": served,
        "the same by the test clock": simulated,
    }.items():
        console.print(compared(f"{task}, {where}: {about}", note, made, own))


if __name__ == "__main__":
    app()
