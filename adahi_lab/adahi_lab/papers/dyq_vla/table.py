# SPDX-License-Identifier: Apache-2.0
"""Widths of activations of a policy of tokens, as DyQ-VLA allocates them: bytes, time, distances and success.

    .venv/bin/python -m adahi_lab.papers.dyq_vla.table TASK FOLDER [--episodes N]

FOLDER is one of config/switched, with a target of the kind `widths`. The first table has the cost of a chunk
at each width, and how far its actions are from those of the full network with the same draws, in action
scales, for the least to the most sensitive third of chunks. The second one has the success: of each width, of
the allocation by motion, and of a random one with the same shares.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.metrics import mcnemar, wilson_interval
from adahi_lab.papers.dyq_vla.token_widths import (
    WIDTHS,
    Kinematics,
    WidthsPolicy,
    packed_run,
    packed_session,
)
from adahi_lab.papers.tokens.observed_chunks import load_token_policy, some_chunks, success_of_chunks
from adahi_lab.papers.tokens.token_checkpoint import load_tokens
from adahi_lab.papers.tokens.token_pair import kilobytes
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.reporting.tables import narrow_table, number
from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.core.signature import Observations
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.policies.networks.onnx_cache import FULL

SEED = 11
ALWAYS, NEVER = -1.0, 2.0  # sensitivities that every motion and that none reaches
THIRDS = (1 / 3, 2 / 3)


class AtRandom(WidthsPolicy):
    """Allocates widths at random, in the shares of another policy."""

    shares: np.ndarray
    draws_of: np.random.Generator

    def widths(self, observations: Observations) -> np.ndarray:
        """See `WidthsPolicy`."""
        count = len(next(iter(observations.features.values())))
        return self.draws_of.choice(WIDTHS, count, p=self.shares)


class Counting(WidthsPolicy):
    """Counts the widths that it allocates."""

    counts: dict[int, int]

    def widths(self, observations: Observations) -> np.ndarray:
        """See `WidthsPolicy`."""
        found = super().widths(observations)
        windows = self.signature.window(observations)
        moved = np.ptp(windows, axis=1).any(axis=1)  # finished episodes stand still
        for width in found[moved].tolist():
            self.counts[width] = self.counts.get(width, 0) + 1
        return found


def fixed(kinematics: Kinematics, width: int) -> Kinematics:
    """Return kinematics that allocate one width."""
    return replace(kinematics, limits=tuple(ALWAYS if each <= width else NEVER for each in WIDTHS[1:]))


def main(
    task: str,
    folder: Path,
    episodes: Annotated[int, typer.Option(min=1, help="Of each line.")] = 100,
    chunks: Annotated[int, typer.Option(min=1, help="At which the widths are compared.")] = 60,
) -> None:
    """Print both tables, and what limits for `adahi_lab/config/switched/` come from."""
    console = Console()
    settings = read_yaml(folder / "target.yaml")
    path = named(settings["checkpoint"], CHECKPOINTS)
    read = load_tokens(path)
    full, draft = load_token_policy(path), load_token_policy(path.with_name("draft"))
    size, session = packed_session(read)
    proxies = {name: settings[name] for name in ("coarse_speed", "large_jerk", "jerk_share")}
    kinematics = Kinematics(tuple(settings["moving"]), limits=tuple(settings["limits"]), **proxies)
    run = packed_run(read, session)
    policies: dict[str, TokenPolicy] = {"full": full}
    policies |= {f"{each} bits": WidthsPolicy(read, run, fixed(kinematics, each)) for each in WIDTHS}
    seen = [each for _, each in some_chunks(task, draft, full, 20, chunks, SEED)]
    seen = [each for each in seen if np.ptp(full.signature.window(each), axis=1).any()]  # the rest are over
    windows = np.concatenate([full.signature.window(each)[..., : read.sizes.state_dim] for each in seen])
    scale = full._embedding.scale
    moving = list(kinematics.moving)
    places = windows[..., moving] / scale[moving]
    speeds = np.sqrt((np.diff(places, axis=1) ** 2).mean(axis=2)).min(axis=1)
    jerks = np.sqrt((np.diff(places, n=3, axis=1)[:, -1] ** 2).mean(axis=1))
    sensitivity = kinematics.sensitivity(windows, scale)
    third = np.searchsorted(np.quantile(sensitivity, THIRDS), sensitivity, side="right")
    draws = np.random.default_rng(SEED).random((len(seen), 1, full.draws))
    acts: dict[str, list[np.ndarray]] = {name: [] for name in policies}
    times: dict[str, list[float]] = {name: [] for name in policies}
    for each, draw in zip(seen, draws, strict=True):
        for name, policy in policies.items():  # in turns, so that all have the same machine
            started = time.process_time()
            acts[name].append(policy.propose(each, draw).actions[0])
            times[name].append(1e3 * (time.process_time() - started))
    took = {name: float(np.median(each)) for name, each in times.items()}
    made = {name: np.stack(each) for name, each in acts.items()}
    sizes = dict.fromkeys(policies, size / 1e3)
    sizes["full"] = kilobytes([f"{path.name}{FULL}"], path.parent, 0)
    table = narrow_table(
        f"{task}: one chunk by width",
        ("activations",),
        ("kB", "ms", "apart: least", "middle", "most sensitive"),
        caption=f"{len(seen)} chunks; speed, 90 %: {np.quantile(speeds, 0.9):.3f}; jerk, 90 %: "
        f"{np.quantile(jerks, 0.9):.3f}; sensitivity, 10 to 90 %: "
        f"{np.quantile(sensitivity, (0.1, 0.25, 0.5, 0.75, 0.9)).round(3).tolist()}",
    )
    for name in policies:
        far = np.abs((made[name] - made["full"]) / full.action_scale).mean(axis=(1, 2))
        parts = [float(far[third == part].mean()) for part in range(3)]
        cells = [number(part) for part in parts] if name != "full" else [""] * 3
        table.add_row(name, f"{sizes[name]:.0f}", f"{took[name]:.1f}", *cells)
    console.print(table)
    counting = Counting(read, run, kinematics)
    counting.counts = {}
    numbers = list(evaluation_episodes(episodes))
    won = {name: success_of_chunks(task, draft, policy, numbers, SEED) for name, policy in policies.items()}
    won["by motion"] = success_of_chunks(task, draft, counting, numbers, SEED)
    chance = AtRandom(read, run, kinematics)
    chance.shares = np.array([counting.counts.get(each, 0) for each in WIDTHS], dtype=np.float64)
    chance.shares /= chance.shares.sum()
    chance.draws_of = np.random.default_rng(SEED)
    won["at random"] = success_of_chunks(task, draft, chance, numbers, SEED)
    shares = ", ".join(f"{each}: {share:.2f}" for each, share in zip(WIDTHS, chance.shares, strict=True))
    mean = float(chance.shares @ np.array(WIDTHS))
    table = narrow_table(
        f"{task}: success by width, {episodes} episodes, seed {SEED}",
        ("activations",),
        ("success", "95 %", "McNemar"),
        caption=f"By motion, shares of widths: {shares}; {mean:.1f} bits on average. McNemar: episodes that "
        "only this, only the full network solves; p",
    )
    for name, success in won.items():
        low, high = wilson_interval(int(success.sum()), len(success))
        against = "" if name == "full" else str(mcnemar(success, won["full"]))
        table.add_row(name, number(float(success.mean())), f"{low:.2f}-{high:.2f}", against)
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
