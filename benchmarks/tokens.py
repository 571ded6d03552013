# SPDX-License-Identifier: Apache-2.0
"""Chunks of tokens: what the target takes alone, in parallel, and to verify a draft, in one process.

    .venv/bin/python benchmarks/tokens.py TASK FOLDER [--chunks 200]

It decodes chunks for observations of held-out episodes, one at a time. Their success: token_pair.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from adahi_ros.acceptance.token_sequence import COMPLETIONS, TokenJudge
from adahi_ros.core.proposal import Proposal, TokenDistribution
from adahi_ros.core.signature import Observations
from adahi_ros.lab.decoding.observed_chunks import load_token_policy, some_chunks
from adahi_ros.lab.decoding.watched_verifier import tokens_of
from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.lab.tasks import make
from adahi_ros.policies.interface import Sampling
from adahi_ros.policies.tokens.parallel_decoding import decode_in_parallel
from adahi_ros.policies.tokens.token_policy import TokenPolicy
from adahi_ros.protocol.distributions import packed
from adahi_ros.protocol.window import reply_bytes, request_bytes

SEED = 11


@dataclass
class Decoded:
    """What one way of decoding takes, of each chunk: passes, accepted tokens, bytes, times in ms.

    Attributes:
        passes: of the target.
        accepted: tokens.
        request_bytes: of a whole window, and of the draft.
        draft_ms, target_ms: durations.
    """

    passes: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    request_bytes: list[int] = field(default_factory=list)
    draft_ms: list[float] = field(default_factory=list)
    target_ms: list[float] = field(default_factory=list)


def timed(call: Callable[[], Proposal]) -> tuple[Proposal, float]:
    """Return what a function returns, and how long it takes in ms."""
    started = time.perf_counter()
    made = call()
    return made, 1e3 * (time.perf_counter() - started)


def bytes_of_request(target: TokenPolicy, counts: np.ndarray | None = None) -> int:
    """Return the bytes of a chunk's request, with the counts (n, K) of a draft's distributions, if any."""
    read = target.signature
    tokens, sent = (0, 0) if counts is None else (len(counts), packed(counts.ravel()).size)
    return request_bytes(read.history * read.observation_dim, 0, read.goal_dim, 0, tokens, sent)


def decode(
    draft: TokenPolicy, target: TokenPolicy, seen: Sequence[tuple[Observations, Observations]]
) -> dict[str, Decoded]:
    """Decode a chunk for each pair of observations, of draft and target, by each way."""
    names = (
        "target",
        "target, parallel",
        *(f"speculative, rest by {c}" for c in COMPLETIONS),
    )
    ways, rng, count = (
        {name: Decoded() for name in names},
        np.random.default_rng(SEED),
        target.codec.codebooks,
    )
    own, parallel, *speculative = ways.values()
    guess = np.full((1, count), target.codec.guess)
    for for_draft, for_target in seen:
        draws = rng.random((1, count, 2))
        made, took = timed(lambda: target.propose(for_target, draws[..., 1]))  # noqa: B023  called at once
        assert made.distribution is not None
        own.passes.append(int(tokens_of(target.codec, made.distribution.codes)[0]))
        own.target_ms.append(took)
        own.request_bytes.append(bytes_of_request(target))
        started = time.perf_counter()
        found = decode_in_parallel(target, for_target, draws[..., 1], guess)
        parallel.target_ms.append(1e3 * (time.perf_counter() - started))
        parallel.passes.append(int(found.passes[0]))
        parallel.request_bytes.append(bytes_of_request(target))
        guess = np.where(found.codes == target.codec.end, target.codec.guess, found.codes)
        drafted, took = timed(lambda: draft.propose(for_draft, draws[..., 0], Sampling(sendable=True)))  # noqa: B023
        verdicts = rng.random((1, count, 2))
        for completion, way in zip(COMPLETIONS, speculative, strict=True):
            assert drafted.distribution is not None
            assert drafted.distribution.counts is not None
            started = time.perf_counter()
            theirs = target.judge(for_target, drafted.distribution.codes).distribution
            assert isinstance(theirs, TokenDistribution)
            judged = TokenJudge(drafted.distribution, theirs, verdicts).complete(completion)
            way.target_ms.append(1e3 * (time.perf_counter() - started))
            way.draft_ms.append(took)
            way.passes.append(int(judged.passes[0]))
            of_draft = tokens_of(target.codec, drafted.distribution.codes)
            way.accepted.append(int(np.minimum(judged.accepted_length, of_draft)[0]))
            way.request_bytes.append(bytes_of_request(target, drafted.distribution.counts[0]))
    return ways


def main(
    task: str,
    checkpoints: Path,
    chunks: Annotated[int, typer.Option(min=1, help="Decoded one at a time")] = 200,
    backend: str = "onnxruntime",
) -> None:
    """Print the table."""
    console = Console()
    draft, target = (load_token_policy(checkpoints / name, backend) for name in ("draft", "target"))
    count, mean = target.codec.codebooks, np.mean
    entries = target.signature.horizon * target.signature.action_dim
    sized = not make(task).spec.images_for_target  # else a picture decides about the size
    size = count if target.codec.end is None else f"at most {count}"
    sizes = "; kB: means of a request with its window, and of a reply" if sized else ""
    table = narrow_table(
        f"{task}: one chunk of {target.codec.chunk_length} actions, {size} tokens, {backend}",
        ["decoding"],
        ["passes", "accepted", *(["kB up", "kB down"] if sized else []), "draft ms", "target ms"],
        f"draft {draft.signature.parameters:,} weights, target {target.signature.parameters:,}; medians of "
        f"{chunks} chunks; accepted: mean tokens before the first refusal{sizes}",
    )
    for name, way in decode(draft, target, some_chunks(task, draft, target, 20, chunks, SEED)).items():
        accepted = number(float(mean(way.accepted)), 1) if way.accepted else ""
        down = reply_bytes(entries, count if way.accepted else 0)
        drafting = number(float(np.median(way.draft_ms)), 1) if way.draft_ms else ""
        table.add_row(
            name,
            number(float(mean(way.passes)), 1),
            accepted,
            *([number(float(mean(way.request_bytes)) / 1e3, 2), number(down / 1e3, 2)] if sized else []),
            drafting,
            number(float(np.median(way.target_ms)), 1),
        )
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
