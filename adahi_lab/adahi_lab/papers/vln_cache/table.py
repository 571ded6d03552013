# SPDX-License-Identifier: Apache-2.0
"""What a policy of tokens reuses of its patches, as VLN-Cache does: shares, time and success.

    .venv/bin/python -m adahi_lab.papers.vln_cache.table TASK FOLDER [--episodes N]

FOLDER has a target, and `plans/target.yaml` of the kind `cached`. The first table takes the pictures of the
expert's episodes, one proposal every chunk: the share of patches that a layer computes on average, the time
to read the context, and how far the first token's distribution is from that without a cache. The second
table has the success of the target, without a cache and with each part of it.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from rich.console import Console

from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.metrics import mcnemar, wilson_interval
from adahi_lab.papers.tokens.observed_chunks import success_of_chunks
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.papers.vln_cache.patch_cache import CachedTokens, load_cached
from adahi_lab.reporting.tables import narrow_table, number
from adahi_lab.tasks.demonstrations import collect_parallel
from adahi_ros.core.signature import GOAL, IMAGE_FEATURES, OBSERVATION, Observations
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.policies.backends import load_policy

SEED = 11
NEVER = 1e9  # times the mean attention
REPEATS = 3


def cases(settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of each line, from those of the file."""
    return {
        "computes all": {**settings, "tolerance": 0.0, "salient": 0.0, "adaptive": False, "camera": None},
        "in place": {**settings, "salient": NEVER, "adaptive": False, "camera": None},
        "aligned": {**settings, "salient": NEVER, "adaptive": False},
        "aligned, veto": {**settings, "adaptive": False},
        "aligned, veto, entropy": settings,
    }


def film(task: str, policy: TokenPolicy, episodes: int) -> list[list[Observations]]:
    """Return what the target sees at the start of each chunk of the expert's episodes."""
    data = collect_parallel(task, episodes, SEED, 0.0, 1).trajectories
    history, chunk = policy.signature.history, policy.codec.chunk_length
    seen = []
    for episode, (start, end) in enumerate(data.spans()):
        goal = {GOAL: data.goals[episode : episode + 1]}
        shown = []
        for step in range(start, end, chunk):
            rows = np.maximum(np.arange(step - history + 1, step + 1), start)
            pixels = data.image_features[rows].astype(np.float32)
            features = {OBSERVATION: data.observations[rows][None], IMAGE_FEATURES: pixels[None]}
            shown.append(Observations(features, goal, episodes=(episode,)))
        seen.append(shown)
    return seen


def read(policy: TokenPolicy, seen: list[list[Observations]]) -> tuple[float, np.ndarray]:
    """Return the processor time of reading a context, ms, and the first token's logits of each."""
    took, logits = 0.0, []
    for shown in seen:
        if isinstance(policy, CachedTokens):
            policy.forget()
        for each in shown:
            started = time.process_time()
            logits.append(policy.begin(each).logits[0, -1])
            took += time.process_time() - started
    return 1e3 * took / len(logits), np.stack(logits)


def distances(logits: np.ndarray, plain: np.ndarray) -> float:
    """Return the mean total variation between distributions with logits (N, K)."""

    def probabilities(values: np.ndarray) -> np.ndarray:
        grown = np.exp(values - values.max(axis=1, keepdims=True))
        return grown / grown.sum(axis=1, keepdims=True)

    return float(np.abs(probabilities(logits) - probabilities(plain)).sum(axis=1).mean() / 2.0)


def main(
    task: str,
    folder: Path,
    episodes: Annotated[int, typer.Option(min=0, help="For success, of each line.")] = 100,
    films: Annotated[int, typer.Option(min=1, help="Of the expert.")] = 10,
) -> None:
    """Print both tables."""
    console, settings = Console(), read_yaml(folder / "plans" / "target.yaml")
    settings.pop("kind")
    torch.set_num_threads(1)
    plain = load_policy(folder / "target", "onnxruntime")
    assert isinstance(plain, TokenPolicy)
    each: dict[str, CachedTokens] = {}
    for name, case in cases(settings).items():
        policy = load_cached(folder, **{**case, "checkpoint": "target"})
        assert isinstance(policy, CachedTokens)
        each[name] = policy
    first_table(console, task, plain, each, film(task, plain, films))
    if episodes:
        second_table(console, task, folder, {"no cache": plain, **each}, episodes)


def first_table(
    console: Console,
    task: str,
    plain: TokenPolicy,
    policies: dict[str, CachedTokens],
    seen: list[list[Observations]],
) -> None:
    """Print shares, times and distances."""
    count = sum(map(len, seen))
    table = narrow_table(
        f"{task}: patches of {count} pictures, one every chunk",
        ("patches",),
        ("computed", "ms", "apart"),
        caption=f"computed: share of patches times layers; ms: processor time to read the context, least of "
        f"{REPEATS}; apart: total variation of the first token's distribution",
    )
    read(plain, seen)
    took, wanted = min((read(plain, seen) for _ in range(REPEATS)), key=lambda found: found[0])
    table.add_row("no cache", number(1.0), number(took, 1), "")
    for name, policy in policies.items():
        policy.layers.computed = policy.layers.offered = 0
        took, logits = min((read(policy, seen) for _ in range(REPEATS)), key=lambda found: found[0])
        share, far = policy.layers.computed / policy.layers.offered, distances(logits, wanted)
        table.add_row(name, number(share), number(took, 1), number(far))
    console.print(table)


def second_table(
    console: Console, task: str, folder: Path, policies: dict[str, TokenPolicy], episodes: int
) -> None:
    """Print the success, chunk after chunk."""
    draft = load_policy(folder / "draft", "onnxruntime")
    table = narrow_table(
        f"{task}: success, {episodes} episodes, seed {SEED}",
        ("patches",),
        ("success", "95 %", "McNemar", "computed"),
        caption="McNemar: episodes that only this, only the target without a cache solves; p",
    )
    own: np.ndarray | None = None
    for name, policy in policies.items():
        if isinstance(policy, CachedTokens):
            policy.forget()
            policy.layers.computed = policy.layers.offered = 0
        won = success_of_chunks(task, draft, policy, evaluation_episodes(episodes), SEED)
        own = won if own is None else own
        low, high = wilson_interval(int(won.sum()), len(won))
        share = 1.0
        if isinstance(policy, CachedTokens):
            share = policy.layers.computed / policy.layers.offered
        against = "" if won is own else str(mcnemar(won, own))
        table.add_row(name, number(float(won.mean())), f"{low:.2f}-{high:.2f}", against, number(share))
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
