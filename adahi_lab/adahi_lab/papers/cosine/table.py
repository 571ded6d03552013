# SPDX-License-Identifier: Apache-2.0
"""CoSine: several robots, several drafters and one verifier.

    .venv/bin/python -m adahi_lab.papers.cosine.table clock
    .venv/bin/python -m adahi_lab.papers.cosine.table drafters TASK FOLDER OUT [--episodes 240]
    .venv/bin/python -m adahi_lab.papers.cosine.table pair TASK OUT [--robots 8]
    .venv/bin/python -m adahi_lab.papers.cosine.table ray TASK OUT [--pass-ms 400]
    .venv/bin/python -m adahi_lab.papers.cosine.table nodes TASK OUT [--pass-ms 400]

All is compared with a general draft on as many nodes, and with a special draft at random. `clock` simulates
robots by a test clock, with made-up tokens: four drafters, each better at one of four kinds of task; the
general one is as good at all as these are on average. `drafters` trains a specialised draft for each of two
kinds, in about two minutes of a core. `pair` simulates the machines with the tokens of these drafts and their
target. `ray` runs them as actors on the nodes of a Ray, which it starts here, or of the one at `--address`,
where all nodes need the folder. `nodes` runs each drafter and the verifier as a ROS node in a process of its
own; robots are clients of the verifier. A pass lasts `--pass-ms`, to emulate a large target. Every chunk is
the target's own, or the program ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
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
from adahi_lab.papers.tokens.observed_chunks import by_robot, load_token_policy, observed_chunks
from adahi_lab.papers.tokens.texts import own_chunk
from adahi_lab.papers.tokens.token_pair import DRAFT_S, Simulated, check_own
from adahi_lab.papers.tokens.token_pair import Chunks as PairChunks
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
REAL = {name: way for name, way in WAYS.items() if way in (Way(), COSINE)}
"""Those that run in real time."""
Robots = Annotated[int, typer.Option(min=2, help="Episodes, each of another robot")]
Chunks = Annotated[int, typer.Option(min=1, help="Of each robot, at most")]
PassMs = Annotated[float, typer.Option(min=1.0, help="A pass of the target lasts so long")]
app = typer.Typer(add_completion=False)
console = Console(width=130)


COLUMNS = ["tokens/s", "general", "special", "latency", "general", "special", "drafted", "accepted", "idle"]
OF_NODES = 6  # of these are known of nodes
COSTS = "A pass takes 1, and 0.005 for each token; a drafted token 0.1, and 0.01 for each request on a node"
NOTE = "General, special: against the general draft, and a special one at random. Latency: of a chunk"
DRAFTED_NOTE = ". Drafted, accepted: tokens per verification of a robot. Idle: of the verifier"


def compared(title: str, note: str, made: Mapping[str, Served], own: Sequence[list[int]]) -> Table:
    """Return the table of ways; end the program if a chunk is another than the target's own."""
    columns = COLUMNS if made[GENERAL_DRAFT].passes else COLUMNS[:OF_NODES]
    note = f"{note}. {NOTE}{DRAFTED_NOTE if columns is COLUMNS else ''}"
    table, tokens = narrow_table(title, ["decoding"], columns, note), sum(map(len, own))
    plain = made[GENERAL_DRAFT], made[RANDOM]
    for name, served in made.items():
        if served.chunks != list(own):
            raise SystemExit(f"{name}: another chunk than the target's own")
        latency, passes = float(np.mean(served.latencies_s)), max(served.passes, 1)
        row = (
            number(tokens / served.time_s, 1),
            *(f"{each.time_s / served.time_s - 1.0:+.0%}" for each in plain),
            number(latency, 1),
            *(f"{latency / np.mean(each.latencies_s) - 1.0:+.0%}" for each in plain),
            number(served.drafted / passes, 1),
            number(served.accepted / passes, 2),
            f"{served.idle_s / served.time_s:.0%}",
        )
        table.add_row(name, *row[: len(columns)])
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


class Trained:
    """The drafts of a folder, and what robots see at a task.

    Attributes:
        target: path of the target.
        signature: of the target.
        seen: by robot, at the start of its chunks.

    Args:
        task: a key of the tasks.
        out: the folder.
        robots: episodes, each of another robot.
        chunks: of each robot, at most.
    """

    def __init__(self, task: str, out: Path, robots: int, chunks: int) -> None:
        self._special, self._general = [out / f"draft_{kind}" for kind in range(KINDS)], out / GENERAL
        self.target, paths = out / "target", (*self._special, self._general, out / "target")
        self._policies = {path: load_token_policy(path) for path in paths}
        draft, target = self._policies[self._general], self._policies[self.target]
        seen = by_robot(observed_chunks(task, draft, target, robots, SEED), target)
        self.signature, self.seen = target.signature, [own[:chunks] for own in seen]

    def drafts(self, way: str) -> list[Path]:
        """Return the drafts of a way by its name, one for each node."""
        return [self._general] * KINDS if way == GENERAL_DRAFT else self._special

    def texts(self, way: str) -> list[list[DraftedText]]:
        """Return the chunks as the drafts of a way see them."""
        of = [self._policies[path] for path in self.drafts(way)]
        return [[PolicyDrafts(of, self._policies[self.target], *each) for each in own] for own in self.seen]

    @cached_property
    def own(self) -> list[list[int]]:
        """The target's chunks."""
        return [own_chunk(text) for each in self.texts(GENERAL_DRAFT) for text in each]  # type: ignore[arg-type]


@app.command()
def pair(
    task: str,
    out: Path,
    robots: Robots = 8,
    chunks: Chunks = 4,
) -> None:
    """Simulate the machines with the tokens of trained drafts."""
    trained = Trained(task, out, robots, chunks)
    own = trained.own
    title = f"{task}: {len(trained.seen)} robots by a test clock, {len(own)} chunks of {len(own[0])} tokens"
    made = {name: serve(trained.texts(name), way, Service(KINDS)) for name, way in WAYS.items()}
    console.print(compared(title, COSTS, made, own))


def ways(chunks: PairChunks) -> dict[str, Simulated]:
    """Return CoSine, with drafts that are trained where they are missing; see `Clock`.

    A pass and a drafted token last as long for any number of robots.
    """
    folder, target = chunks.out / "drafters", chunks.target
    if not folder.is_dir():
        unfinished = folder.with_suffix(".partial")
        command = f"python -m adahi_lab.papers.cosine.table drafters {chunks.task} {chunks.folder} OUT"
        train_drafters(chunks.task, chunks.folder, unfinished, 240, command, print)
        unfinished.rename(folder)
    drafters = [load_token_policy(folder / f"draft_{kind}") for kind in range(KINDS)]
    texts = [[PolicyDrafts(drafters, target, *each) for each in own] for own in by_robot(chunks.seen, target)]
    given: list[list[DraftedText]] = [list(own) for own in texts]
    free = Service(len(drafters), DRAFT_S, 0.0, 1.0, 0.0)
    made = serve(given, replace(COSINE, selected=len(drafters)), free)
    check_own(made.chunks, [text for own in texts for text in own])
    actions, count = target.codec.chunk_length, len(made.chunks)
    time = float(np.mean(made.latencies_s)) / actions
    return {"CoSine": Simulated(time, made.passes / count / actions, 1.0, made.accepted / made.passes)}


def in_real_time(
    title: str, trained: Trained, pass_ms: float, served: Callable[[list[Path], Way, Service], Served]
) -> None:
    """Print the table of ways by `served`, of drafts on machines, and that of the same by the test clock.

    A drafted token lasts a tenth of a pass.
    """
    service, own, real = Service(KINDS, 1e-4 * pass_ms, 0.0, 1e-3 * pass_ms, 0.0), trained.own, {}
    with job_bar(f"{title}: ways", len(REAL)) as update:
        for name, way in REAL.items():
            real[name] = served(trained.drafts(name), way, service)
            update(advance=1)
    simulated = {name: serve(trained.texts(name), way, service) for name, way in REAL.items()}
    note = f"A pass waits for {service.pass_s:g} s, a drafted token of a group for {service.draft_s:g} s"
    about = f"{len(trained.seen)} robots, {KINDS} drafters, {len(own)} chunks of {len(own[0])} tokens"
    for where, made in ((title, real), ("the same by the test clock", simulated)):
        console.print(compared(f"{where}: {about}", note, made, own))


@app.command("ray")
def on_ray(
    task: str,
    out: Path,
    robots: Robots = 8,
    chunks: Chunks = 4,
    pass_ms: PassMs = 400.0,
    address: Annotated[str, typer.Option(help="Of a Ray with nodes for drafters and verifier")] = "",
) -> None:
    """Run drafters and verifier as actors on a Ray, and simulate the same."""
    from adahi_lab.papers.cosine.serving_ray import RayPlaces, ray_with

    trained = Trained(task, out, robots, chunks)

    def served(drafts: list[Path], way: Way, service: Service) -> Served:
        with ray_with(address, KINDS + 1):
            places = RayPlaces(drafts, trained.target, service)
            return places.serve(trained.seen, len(trained.own[0]), way)

    in_real_time(f"{task}, on Ray", trained, pass_ms, served)


@app.command("nodes")
def on_nodes(task: str, out: Path, robots: Robots = 8, chunks: Chunks = 2, pass_ms: PassMs = 400.0) -> None:
    """Run drafters and verifier as ROS nodes, and simulate the same."""
    from adahi_lab.papers.cosine.robots_of_nodes import serve_robots, serving_nodes

    trained = Trained(task, out, robots, chunks)

    def served(drafts: list[Path], way: Way, service: Service) -> Served:
        with serving_nodes(drafts, trained.target, way, service) as nodes:
            return serve_robots(nodes, trained.seen, trained.signature)

    in_real_time(f"{task}, {KINDS + 1} ROS nodes", trained, pass_ms, served)


if __name__ == "__main__":
    app()
