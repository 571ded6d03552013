# SPDX-License-Identifier: Apache-2.0
"""Success of intents and corrected plans where every reply is 0, 1 or 6 s late, across an emulated link.

Robot, policy and verifier are processes over DDS, in real time, in two network namespaces (root). Each
episode is a new start of all three. The world rests until the first command:

    benchmarks/late_replies.py ball_instructed --episodes 20
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from adahi_ros.cli.terminal import console, say
from adahi_ros.lab.bench.loop_latency import joined, run_across
from adahi_ros.lab.evaluation.episodes import evaluation_episodes
from adahi_ros.lab.evaluation.evaluate import Comparison
from adahi_ros.lab.link.emulator import emulated_link
from adahi_ros.lab.link.link_profile import profile_named
from adahi_ros.lab.methods.dds_method import node_parameters
from adahi_ros.lab.methods.methods import METHODS, parse_methods
from adahi_ros.protocol.records import NO_PLAN
from adahi_ros.protocol.run_records import RunRecord

DELAYS_S = (0.0, 1.0, 6.0)
HEADERS = (
    "method", "target later by", "success", "where a reply came", "success then", "requests/episode",
    "first reply, s", "oldest, s",
)  # fmt: skip


def row(run: RunRecord, rate_hz: float) -> list[str]:
    """Return the figures of a run: see `HEADERS`."""
    first, succeeded = [], []
    for each in run.episodes:
        steps = [step for step in run.steps if step.episode == each.episode]
        acting = [step for step in steps if step.plan_age != NO_PLAN]
        if acting:
            first.append((acting[0].stamp_ns - steps[0].stamp_ns) / 1e9)
            succeeded.append(each.success)
    ages = [step.plan_age for step in run.steps if step.plan_age != NO_PLAN]
    count = len(run.episodes)
    return [
        f"{sum(each.success for each in run.episodes) / count:.3f}",
        f"{len(succeeded)} of {count}",
        f"{np.mean(succeeded):.3f}" if succeeded else "",
        f"{sum(step.transmitted for step in run.steps) / count:.1f}",
        f"{np.median(first):.2f}" if first else "",
        f"{max(ages) / rate_hz:.1f}" if ages else "",
    ]


def measure(
    task: Annotated[str, typer.Argument(help="A task with intents.")],
    methods: str = "best,corrector_7",
    episodes: int = 20,
    delays_s: Annotated[str, typer.Option(help="Added to every reply, s.")] = ",".join(map(str, DELAYS_S)),
    link: str = "wifi_ac",
    seed: int = 0,
) -> None:
    """Print the table."""
    comparison = Comparison.shipped(task, seed)
    rate_hz = comparison.world().spec.control_rate_hz
    names = parse_methods(methods, on_air=True)
    table = Table(*HEADERS, title=f"{task} across {link}, {episodes} episodes over DDS, seed {seed}")
    with emulated_link(profile_named(link), seed) as emulated:
        for name in names:
            for delay_s in _seconds(delays_s):
                draft, target = node_parameters(
                    name, task, comparison.files, comparison.calibration, 1 / rate_hz
                )
                draft["wait_policy"] = "ahead"  # no robot waits for a reply
                slowed = {**target, "added_compute_s": delay_s}
                runs = [
                    run_across(emulated, task, draft, slowed, seed, range(each, each + 1), False)
                    for each in evaluation_episodes(episodes)
                ]
                run = joined(runs)
                cells = row(run, rate_hz)
                table.add_row(METHODS[name].label, f"{delay_s:g} s", *cells)
                say(f"{name}, {delay_s:g} s: success {cells[0]}")
    console.print(table)


def _seconds(text: str) -> Sequence[float]:
    return [float(each) for each in text.split(",")]


if __name__ == "__main__":
    typer.run(measure)
