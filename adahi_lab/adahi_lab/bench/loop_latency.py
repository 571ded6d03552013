# SPDX-License-Identifier: Apache-2.0
"""Costs of every method across an emulated link: the latency of each action and the bytes sent.

The target of single actions is the trained one, enlarged until its compute matters
(`policies/vqbet/growth.py`); its decisions do not change. The target of plans is not enlarged. The robot
drafts, requests and acts in real processes, and the world waits for it. If one method continues during a
request, the world runs in real time for all methods.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from adahi_lab.bench.growth import PARAMETERS, grown_policies
from adahi_lab.bench.link_ends import dds_environment, run_at_robot
from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.evaluation.run_metrics import run_figures
from adahi_lab.evaluation.run_record import Crossed, RunRecord
from adahi_lab.figures import Figures
from adahi_lab.link.emulator import EmulatedLink, emulated_link
from adahi_lab.link.link_measurement import round_trips_ms
from adahi_lab.link.link_profile import profile_named
from adahi_lab.methods.dds_method import goes_ahead, node_parameters
from adahi_lab.methods.methods import on_task
from adahi_lab.tasks import make
from adahi_ros.core.assets import asset
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint

ROUNDS = 4  # in which the methods take turns, so that other load on the machine affects all alike
DEADLINE_S = 10.0  # long, because the latency of every reply is measured
DEADLINE_SHARE = 0.9  # of a control period, where the world runs in real time
PINGS = 300
BACKEND = "onnxruntime"
SLOWEST_PERCENTILE = 2.5


@dataclass(frozen=True)
class Latency:
    """What `measure_latency` found.

    Attributes:
        figures: for a file.
        runs: every step, by method, for pictures.
    """

    figures: Figures
    runs: dict[str, RunRecord]


def measure_latency(
    profile: str,
    task: str,
    episodes: int,
    methods: Sequence[str],
    parameters: int = PARAMETERS,
    seed: int = 0,
    say: Callable[[str], None] = lambda line: None,
    on_run: Callable[[str, int], None] = lambda method, episodes: None,
) -> Latency:
    """Run episodes over DDS, the verifier across an emulated link, with one method after the other.

    Args:
        profile: name of a link's profile, or its YAML file.
        task: one with shipped policies.
        episodes: per method, the same ones for each.
        methods: names of what robots can do.
        parameters: of the enlarged target.
        seed: of the world's, the policies' and the link's draws.
        say: called with a description of each preparation.
        on_run: called with a method and the number of its episodes that have just ended.

    Raises:
        LinkUnavailable: this machine refuses an emulated link.
        RuntimeError: a run failed.
        ValueError: names the field, the value and what was allowed.
    """
    requested = profile_named(profile)
    name = make(task).spec.name
    say(f"target of {parameters:,} weights")
    grown = grown_policies(asset(f"checkpoints/{name}"), parameters)
    files, trained = PolicyFiles(grown, BACKEND), PolicyFiles(asset(f"checkpoints/{name}"), BACKEND)
    found = grown_calibration(task, grown, seed)
    rate_hz = make(task).spec.control_rate_hz
    real_time = any(goes_ahead(method, task) for method in methods)
    deadline_s = DEADLINE_SHARE / rate_hz if real_time else DEADLINE_S
    nodes = {
        method: node_parameters(
            method, task, trained if on_task(method, task).by_plans else files, found, deadline_s
        )
        for method in methods
    }
    parts: dict[str, list[RunRecord]] = {method: [] for method in methods}
    with emulated_link(requested, seed) as link:
        say("round trips")
        trips = round_trips_ms(link, requested, PINGS)
        say("episodes")
        for numbers in in_rounds(evaluation_episodes(episodes), min(ROUNDS, episodes)):
            for method, (draft, target) in nodes.items():
                parts[method].append(run_across(link, task, draft, target, seed, numbers, not real_time))
                on_run(method, len(numbers))
    runs = {method: joined(records) for method, records in parts.items()}
    table = {method: latency_figures(run, rate_hz) for method, run in runs.items()}
    figures = {
        "profile": profile,
        "link": {
            "asked": requested.values(),
            "rtt_ms": {
                "mean": float(trips.mean()),
                "p50": float(np.median(trips)),
                "std": float(trips.std()),
                "count": len(trips),
            },
            "real_time": link.real_time,
        },
        "task": name,
        "real_time": real_time,
        "target_parameters": load_checkpoint(grown / "target").parameters,
        "episodes": episodes,
        "rate": found.transmission_rate,
        "seed": seed,
        "methods": table,
        "adahi_to_hybrid": ratios(table["adahi"], table["hybrid"])
        if {"adahi", "hybrid"} <= set(table)
        else None,
    }
    return Latency(figures, runs)


def grown_calibration(task: str, grown: Path, seed: int) -> Calibration:
    """Return the shipped calibration, for the enlarged target: it decides as the trained one does.

    Raises:
        ValueError: the shipped calibration belongs to other policies.
    """
    shipped = Comparison.shipped(task, seed).calibration
    return replace(shipped, target=load_checkpoint(grown / "target").digest())


def in_rounds(episodes: range, rounds: int) -> list[range]:
    """Split consecutive episodes into parts of nearly equal size."""
    bounds = np.linspace(episodes.start, episodes.stop, rounds + 1).round().astype(int).tolist()
    return [range(start, stop) for start, stop in pairwise(bounds)]


def run_across(
    link: EmulatedLink,
    task: str,
    draft: Mapping[str, object],
    target: Mapping[str, object],
    seed: int,
    episodes: range,
    lockstep: bool,
) -> RunRecord:
    """Run episodes in a new process, because a DDS participant stays in its first network namespace."""
    with tempfile.TemporaryDirectory(prefix="adahi_latency_") as scratch:
        requested, record = (Path(scratch) / name for name in ("settings.json", "record.json"))
        arguments = {
            "task": task,
            "draft_parameters": draft,
            "verifier_parameters": target,
            "seed": seed,
            "episodes": (episodes.start, episodes.stop),
            "lockstep": lockstep,
        }
        requested.write_text(json.dumps(arguments))
        command = ["-m", "adahi_lab.nodes.dds_run", str(requested), str(record)]
        run_at_robot(link, command, dds_environment("wireless"))
        return RunRecord.from_values(json.loads(record.read_text()))


def joined(runs: Sequence[RunRecord]) -> RunRecord:
    """Return several runs joined into one."""
    crossed = [run.crossed for run in runs if run.crossed is not None]
    return RunRecord(
        tuple(step for run in runs for step in run.steps),
        tuple(episode for run in runs for episode in run.episodes),
        Crossed(
            sum(each.steps for each in crossed),
            sum(each.bytes_up for each in crossed),
            sum(each.bytes_down for each in crossed),
        )
        if crossed
        else None,
    )


def latency_figures(run: RunRecord, rate_hz: float) -> Figures:
    """Return the figures of one method.

    Args:
        run: what happened.
        rate_hz: of the control steps.

    Returns:
        Those of `run_figures` that depend on a link. `actions_per_s` is the inverse of the mean latency,
        `throughput_per_s_p2_5` the 2.5th percentile over windows; `verify_rtt_ms` (the target's compute
        within it) and `target_compute_ms` are medians.
    """
    figures = run_figures(run, rate_hz)
    kept = (
        "per_action_latency_ms",
        "transmission_rate",
        "bytes_up_per_action",
        "bytes_down_per_action",
        "success_rate",
        "success_ci95",
        "fallbacks",
        "missed_periods",
        "steps",
    )
    medians = ("verify_rtt_ms", "target_compute_ms", "draft_ms")
    return {
        **{name: figures[name] for name in kept},
        "actions_per_s": 1e3 / figures["per_action_latency_ms"]["mean"],
        "throughput_per_s_p2_5": float(np.percentile(figures["throughput_per_s"], SLOWEST_PERCENTILE)),
        **{name: (figures[name] or {}).get("p50") for name in medians},
    }


def ratios(adahi: Figures, hybrid: Figures) -> dict[str, float | None]:
    """Return ADAHI's mean latency, success and bytes as shares of hybrid's; None where that has none."""

    def share(ours: float | None, theirs: float | None) -> float | None:
        return ours / theirs if ours is not None and theirs else None

    latency = (figures["per_action_latency_ms"]["mean"] for figures in (adahi, hybrid))
    names = ("success_rate", "bytes_up_per_action", "bytes_down_per_action")
    return {"latency": share(*latency), **{name: share(adahi[name], hybrid[name]) for name in names}}
