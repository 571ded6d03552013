# SPDX-License-Identifier: Apache-2.0
"""What the rule semantic accepts and costs, by two ways to upload, beside speculative sampling and distance.

    .venv/bin/python benchmarks/semantic_uploads.py TASK HEAD [--methods M,M,...] [--links L,L,...]

Methods are as of 'adahi evaluate', and semantic@X and distance@X at every step with a tolerance or distance
of X. Of each link there is one with a tolerance by what every round trip takes, as a share of the patience.
Waiting is of a link's mean round trip, and of bytes at its rate; the verdicts, and so all else, do not depend
on the way to upload.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from scipy.stats import norm

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.assets import asset
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.core.signature import Signature
from adahi_ros.gates.parameter_file import load_calibration
from adahi_ros.lab.evaluation.episodes import evaluation_episodes
from adahi_ros.lab.evaluation.evaluate import Comparison, Outcome, Run, batches, outcome_figures, play
from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles
from adahi_ros.lab.evaluation.rollout import Log, rollout
from adahi_ros.lab.link.link_profile import LinkProfile, profile_named
from adahi_ros.lab.methods.methods import METHODS
from adahi_ros.lab.parallel import Job, run_jobs
from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.lab.tasks import make
from adahi_ros.lab.tasks.task_interface import TaskSpec
from adahi_ros.protocol.window import reply_bytes, request_bytes
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier, VerificationRequest


@dataclass(frozen=True)
class Uploads:
    """What R requests cost by one way.

    Attributes:
        rounds: (R,), round trips.
        up, down: (R,), bytes of messages, as `wire.sizes` counts them.
    """

    rounds: np.ndarray
    up: np.ndarray
    down: np.ndarray

    def waiting_ms(self, link: LinkProfile) -> np.ndarray:
        """Return how long each takes on a link on average, (R,), without the target's compute."""
        taken: np.ndarray = self.rounds * link.rtt_mean_ms + link.transfer_ms(1) * (self.up + self.down)
        return taken


def uploads(log: Log, target: Signature, spec: TaskSpec) -> tuple[Uploads, Uploads]:
    """Return what the requests of a run cost, everything at once and mismatch first.

    Args:
        log: of a rule on codes.
        target: what the target reads and proposes; of codes.
        spec: of the task.
    """
    assert target.codes is not None
    books, size = target.codes.codebooks, target.codes.codebook_size
    sent = log.transmitted & log.active
    gaps = [np.diff(np.flatnonzero(column), prepend=-target.history) for column in sent.T]
    rows = np.minimum(np.concatenate(gaps), target.history)
    rejected = (~log.accepted).sum(axis=-1).T[sent.T]
    reply = reply_bytes(target.horizon * target.action_dim, books)

    def request(rows: int, codes: int, counts: int) -> int:
        numbers = len(spec.joint_names) + len(spec.state_names)
        goal = target.goal_dim if rows >= target.history else 0
        features = rows * (target.observation_dim - numbers)
        return request_bytes(rows * numbers, features, goal, 0, codes, counts)

    whole = np.array([request(int(each), books, books * size) for each in rows])
    brief = np.array([request(int(each), books, books) for each in rows])
    more = np.array([request(0, books, int(each) * size) if each else 0 for each in rejected])
    requested = rejected > 0
    once = Uploads(np.ones(len(rows)), whole, np.full(len(rows), reply))
    return once, Uploads(1 + requested, brief + more, reply + requested * reply_bytes(0, books))


def accepted_length(log: Log) -> float:
    """Return how many drafts in a row stand whole before one does not, or the episode ends, on average."""
    runs = rejected = 0
    for column in range(log.active.shape[1]):
        requested = (log.transmitted & log.active)[:, column]
        stands = log.accepted[requested, column].all(axis=-1)
        rejected += int((~stands).sum()) + 1
        runs += int(stands.sum())
    return runs / rejected


DRAWN = ("hybrid", "semantic@0", "semantic@0.1", "semantic@0.3", "semantic@0.5", "semantic@0.8")
OTHERS = ("distance@0.25", "distance@1", "adahi", "deviation:semantic@0.3", "random", "plan_8")
HALF_UNIT = 2.0**-54  # keeps a draw of 0 off minus infinity


class LinkAware(TargetVerifier):
    """A verifier that knows what a round trip takes at each request; every robot asks at every step."""

    link: LinkProfile
    streams: EpisodeStreams

    def verdict(self, request: VerificationRequest, draws: np.ndarray) -> Verdict:
        """See `TargetVerifier`."""
        uniforms = np.maximum(HALF_UNIT, self.streams.next()[:, 0])
        taken = np.maximum(0.0, self.link.rtt_mean_ms + self.link.rtt_jitter_ms * norm.ppf(uniforms))
        return super().verdict(replace(request, round_trip_ms=taken), draws)


@dataclass(frozen=True)
class ByLink:
    """The rule semantic at every step, with a tolerance by the link."""

    comparison: Comparison
    head: str
    link: LinkProfile
    patience_ms: float

    def play(self, episodes: Sequence[int]) -> Outcome:
        """Run episodes."""
        bench, world, seed = self.comparison.bench(), make(self.comparison.task), self.comparison.seed
        controller = Controller(bench.policies.draft, bench.calibration.controller("always"))
        arguments = {"file": self.head, "patience_ms": self.patience_ms}
        verifier = LinkAware(bench.policies.target, "semantic", arguments=arguments)
        verifier.link, verifier.streams = self.link, EpisodeStreams(seed, "link", list(episodes), 1)
        log = rollout(world, controller, verifier, seed, episodes)
        return Outcome(log, world.success, world.completed, world.fulfilled)


@dataclass(frozen=True)
class AtDistance:
    """The rule distance at every step, of another distance than is usual."""

    comparison: Comparison
    distance: float

    def play(self, episodes: Sequence[int]) -> Outcome:
        """Run episodes."""
        bench, world, seed = self.comparison.bench(), make(self.comparison.task), self.comparison.seed
        controller = Controller(bench.policies.draft, bench.calibration.controller("always"))
        verifier = TargetVerifier(bench.policies.target, "distance", distance=self.distance)
        log = rollout(world, controller, verifier, seed, episodes)
        return Outcome(log, world.success, world.completed, world.fulfilled)


def main(
    task: Annotated[str, typer.Argument(help="One with shipped policies.")],
    head: Annotated[Path, typer.Argument(help="Of 'adahi train rule TASK'.")],
    methods: Annotated[str, typer.Option(help="Separated by commas.")] = ",".join((*DRAWN, *OTHERS)),
    links: Annotated[str, typer.Option(help="Links of the printed waiting times.")] = "wifi_good,5g,wifi_bad",
    patience_ms: Annotated[float, typer.Option(help="See the rule.")] = 50.0,
    episodes: Annotated[int, typer.Option(min=1, help="Of each method.")] = 100,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random draw.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Print what each method accepts, costs and achieves."""
    files = PolicyFiles(asset(f"checkpoints/{task}"), "onnxruntime")
    comparison = Comparison(task, files, load_calibration(asset(f"config/{task}.yaml")), seed)
    profiles = {name: profile_named(name) for name in links.split(",") if name}
    spec, target = make(task).spec, files.load().target.signature
    parts = batches(evaluation_episodes(episodes))
    jobs: dict[str, list[Job[Outcome]]] = {}
    for name in filter(None, methods.split(",")):
        gate, _, tolerance = name.replace(":semantic", "").partition("@")
        named = name
        if gate == "distance":
            far = AtDistance(comparison, float(tolerance))
            jobs[name] = [(far.play, (part,)) for part in parts]
            continue
        if tolerance:
            gate = "always" if gate == "semantic" else gate
            named = f"{gate}:semantic:file={head}:tolerance={tolerance}"
        jobs[name] = [(play, (Run(METHODS[named], comparison, part),)) for part in parts]
    for name, link in profiles.items():
        run = ByLink(comparison, str(head), link, patience_ms)
        jobs[f"semantic by {name}"] = [(run.play, (part,)) for part in parts]
    outcomes = run_jobs([job for each in jobs.values() for job in each], workers)
    table = narrow_table(
        f"{task}, {episodes} episodes, seed {seed}",
        ("method",),
        ("success", "95 %", "calls", "stands", "length", "rounds", "kB up", "kB up 2", *profiles),
        caption="stands: share of drafts that stand whole; length: so many in a row. rounds, kB up 2: an "
        "episode's, mismatch first; kB up: everything at once. Links: ms a call waits, at once / first",
    )
    found = {}
    for row, name in enumerate(jobs):
        outcome = Outcome.side_by_side(outcomes[row * len(parts) : (row + 1) * len(parts)])
        log, figures = outcome.log, dict(outcome_figures(outcome))
        shown = [number(figures["success_rate"]), "{:.2f}-{:.2f}".format(*figures["success_ci95"])]
        shown.append(f"{figures['calls_per_episode']:.1f}")
        method = METHODS[name] if "@" not in name and " by " not in name else None
        if log.accepted.shape[-1]:
            figures["stands"] = float(log.accepted[log.transmitted & log.active].all(axis=-1).mean())
            figures["length"] = accepted_length(log)
            shown += [f"{figures['stands']:.3f}", f"{figures['length']:.2f}"]
        if "semantic" in name or (method is not None and method.acceptance == "speculative"):
            once, first = uploads(log, target, spec)
            figures["rounds"] = float(first.rounds.sum() / episodes)
            figures["bytes_up"] = [float(each.up.sum() / episodes) for each in (once, first)]
            figures["bytes_down"] = [float(each.down.sum() / episodes) for each in (once, first)]
            figures["waiting_ms"] = {
                link: [float(each.waiting_ms(profile).mean()) for each in (once, first)]
                for link, profile in profiles.items()
            }
            shown.append(f"{figures['rounds']:.1f}")
            shown += [f"{each / 1e3:.1f}" for each in figures["bytes_up"]]
            shown += ["{:.1f}/{:.1f}".format(*each) for each in figures["waiting_ms"].values()]
        table.add_row(name, *shown)
        found[name] = figures
    Console(width=150).print(table)
    if json_file is not None:
        json_file.write_text(
            json.dumps({"task": task, "episodes": episodes, "methods": found}, indent=1) + "\n"
        )


if __name__ == "__main__":
    typer.run(main)
