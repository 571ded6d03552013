# SPDX-License-Identifier: Apache-2.0
"""WISV across emulated links: rounds, round trips, waiting, bytes and success, by both ways to upload.

    .venv/bin/python benchmarks/state_uploads_link.py TASK FOLDER [--episodes 8] [--links NAMES] [--rows FILE]

Robot and verifier are processes over DDS, one at each end of the link. The world waits for every reply, and
the head reads the channel that the robot measures. On each link the ways take turns on the same episodes.
`model` is what benchmarks/state_uploads.py computes, for the messages and bytes of these runs. Needs what
`adahi lab link run` needs. With `--rows`, links that a file has are not measured again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from adahi_ros.core.assets import asset
from adahi_ros.core.signature import Signature
from adahi_ros.gates.parameter_file import load_calibration
from adahi_ros.lab.bench.loop_latency import in_rounds, joined, run_across
from adahi_ros.lab.evaluation.episodes import evaluation_episodes
from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles
from adahi_ros.lab.link.emulator import emulated_link
from adahi_ros.lab.link.link_profile import LinkProfile, profile_named
from adahi_ros.lab.methods.dds_method import node_parameters
from adahi_ros.lab.methods.methods import for_task, parse_methods
from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.policies.tokens.token_policy import TokenPolicy
from adahi_ros.protocol.records import StepRecord
from adahi_ros.protocol.run_records import RunRecord
from adahi_ros.protocol.window import request_bytes

SEED = 11
RULE = "never/hidden_states:file={checkpoints}/wisv.safetensors"
FIRST_NONE = f"chunk_prefix:first=none+{RULE}"
WAYS = {
    "greedy": f"{FIRST_NONE}:tolerance=0.0",
    "WISV at once": f"chunk_prefix+{RULE}",
    "WISV mismatch first": FIRST_NONE,
}
LINKS = "wifi_ac,5g,wifi_bad"
DEADLINE_S = 30.0  # long, because every reply is measured
HEADINGS = (
    "success", "requests", "messages", "trip", "95 %", "reply", "95 %", "waits", "compute", "model", "kB",
    "kB on link",
)  # fmt: skip
CAPTION = (
    "Requests to kB: of an episode. Trip: of a message and its reply, without the target's compute; reply: "
    "until a request's tokens are decided; median and 95th percentile, ms. Waits: for replies; compute: the "
    "target's, within that; model: without compute, by the link's mean figures; s. kB: of requests; on link: "
    "of Ethernet frames from the robot"
)
Figures = dict[str, float]


def messages(steps: Sequence[StepRecord], read: Signature, tokens: int) -> np.ndarray:
    """Return how many messages each request of a run took: a second one adds to the bytes of the first."""
    last, found = {each.episode: -read.history for each in steps}, []
    for each in steps:
        gap = min(each.step - last[each.episode], read.history)
        goal = read.goal_dim if gap == read.history else 0
        one = request_bytes(gap * read.observation_dim, 0, goal, 0, tokens, 2)
        found.append(1 + int(each.request_bytes > one))
        last[each.episode] = each.step
    return np.array(found)


def figures(run: RunRecord, link: LinkProfile, counted: np.ndarray) -> Figures:
    """Return the figures of a run; times in ms.

    Args:
        run: what happened.
        link: that it crossed.
        counted: messages of each request.
    """
    steps, episodes = [each for each in run.steps if each.transmitted], len(run.episodes)
    whole = np.array([each.verify_ms for each in steps])
    compute = counted * np.array([each.target_compute_ms for each in steps])
    up, down = (
        float(sum(getattr(each, name) for each in steps)) for name in ("request_bytes", "response_bytes")
    )
    trips = (whole - compute) / counted
    assert run.crossed is not None
    return {
        "success": float(np.mean([each.success for each in run.episodes])),
        "requests": len(steps) / episodes,
        "messages": float(counted.sum()) / episodes,
        "trip_p50": float(np.percentile(trips, 50)),
        "trip_p95": float(np.percentile(trips, 95)),
        "reply_p50": float(np.percentile(whole, 50)),
        "reply_p95": float(np.percentile(whole, 95)),
        "waits": float(whole.sum()) / episodes,
        "compute": float(compute.sum()) / episodes,
        "model": link.waiting_ms(float(counted.sum()), up + down) / episodes,
        "kb": up / episodes / 1e3,
        "link_kb": run.crossed.bytes_up / episodes / 1e3,
        "missed": float(sum(not each.verified for each in steps)),
    }


def measure(
    task: str, files: PolicyFiles, name: str, episodes: int, rounds: int, seed: int
) -> dict[str, Figures]:
    """Return the figures of each way on a link."""
    target, profile = files.load().target, profile_named(name)
    assert isinstance(target, TokenPolicy)
    calibration = load_calibration(asset(f"config/{task}.yaml"))
    parts: dict[str, list[RunRecord]] = {way: [] for way in WAYS}
    with emulated_link(profile, seed) as link:
        for numbers in in_rounds(evaluation_episodes(episodes), min(rounds, episodes)):
            for way, method in WAYS.items():
                (known,) = parse_methods(for_task(method, task, files.folder), on_air=True)
                draft, verifier = node_parameters(known, task, files, calibration, DEADLINE_S, lockstep=True)
                verifier["hidden_states.channel"] = 1  # the world waits, but there is a link
                parts[way].append(run_across(link, task, draft, verifier, seed, numbers, True))
                print(f"{name}, {way}: {len(numbers)} episodes", flush=True)
    found = {}
    for way, runs in parts.items():
        run = joined(runs)
        asked = [each for each in run.steps if each.transmitted]
        once = way == "WISV at once"
        counted = np.ones(len(asked), int) if once else messages(asked, target.signature, target.draws)
        found[way] = figures(run, profile, counted)
    return found


def main(
    task: str,
    folder: Path,
    episodes: Annotated[int, typer.Option(min=1, help="Of each way on each link.")] = 8,
    links: Annotated[str, typer.Option(help="Names of profiles, separated by commas.")] = LINKS,
    rounds: Annotated[int, typer.Option(min=1, help="In which the ways take turns.")] = 2,
    rows: Annotated[Path | None, typer.Option(help="JSON file of what is measured already.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of every draw.")] = SEED,
    backend: str = "onnxruntime",
) -> None:
    """Print the table."""
    files = PolicyFiles(folder, backend)
    found = json.loads(rows.read_text()) if rows is not None and rows.exists() else {}
    for name in links.split(","):
        if name not in found:
            found[name] = measure(task, files, name, episodes, rounds, seed)
            if rows is not None:
                rows.write_text(json.dumps(found))
    title = f"{task} over DDS across emulated links, {episodes} episodes of each, seed {seed}"
    table = narrow_table(title, ["link", "way"], HEADINGS, CAPTION)
    for name, ways in found.items():
        for index, (way, each) in enumerate(ways.items()):
            table.add_row(
                "" if index else name,
                way,
                number(each["success"], 2),
                *(number(each[key], 1) for key in ("requests", "messages")),
                *(number(each[key], 1) for key in ("trip_p50", "trip_p95", "reply_p50", "reply_p95")),
                *(number(each[key] / 1e3, 2) for key in ("waits", "compute", "model")),
                *(number(each[key], 1) for key in ("kb", "link_kb")),
            )
    Console(width=160).print(table)


if __name__ == "__main__":
    typer.run(main)
