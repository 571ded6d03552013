# SPDX-License-Identifier: Apache-2.0
"""Chunks of tokens: decoded by the target alone, in parallel, and verified as a draft, in one process.

    .venv/bin/python benchmarks/tokens.py TASK FOLDER [--episodes 300] [--chunks 200]

The first table decodes chunks for observations of held-out episodes, one at a time. The second one runs
episodes in which every chunk of actions is executed to its end; each method has one request per chunk.
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

from adahi_ros.acceptance.interface import Acceptance, Verdict
from adahi_ros.acceptance.token_sequence import COMPLETIONS, JudgedTokens, TokenJudge
from adahi_ros.core.proposal import Proposal, TokenDistribution
from adahi_ros.core.signature import Observations
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.lab.evaluation.episodes import evaluation_episodes
from adahi_ros.lab.evaluation.evaluate import batches
from adahi_ros.lab.evaluation.metrics import mcnemar, wilson_interval
from adahi_ros.lab.evaluation.rollout import Log, rollout
from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.lab.tasks import make
from adahi_ros.lab.tasks.task_interface import Task
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy, Sampling
from adahi_ros.policies.tokens.parallel_decoding import decode_in_parallel
from adahi_ros.policies.tokens.token_policy import TokenPolicy
from adahi_ros.protocol.distributions import packed
from adahi_ros.protocol.window import reply_bytes, request_bytes
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

SEED = 11


class Recorded(Acceptance):
    """Speculative decoding; keeps what it judged.

    Args:
        completion: a key of `COMPLETIONS`.
    """

    exact = True
    needs_codes = True

    def __init__(self, completion: str) -> None:
        self.completion = completion
        self.judged: list[JudgedTokens] = []
        self.pairs: list[np.ndarray] = []

    def verify(
        self,
        draft: Proposal,
        target: Proposal,
        draws: np.ndarray,
        round_trip_ms: np.ndarray | None = None,
    ) -> Verdict:
        """See `Acceptance`."""
        ours, theirs = draft.distribution, target.distribution
        assert ours is not None
        assert ours.counts is not None
        assert isinstance(theirs, TokenDistribution)
        self.judged.append(TokenJudge(ours, theirs, draws).complete(self.completion))
        self.pairs.append(np.array([packed(each.ravel()).size for each in ours.counts]))
        return Verdict(theirs.actions_of(self.judged[-1].codes), self.judged[-1].accepted)


@dataclass
class Decoded:
    """What one way of decoding takes, of each chunk: passes of the target, accepted tokens, times in ms."""

    passes: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    draft_ms: list[float] = field(default_factory=list)
    target_ms: list[float] = field(default_factory=list)


def timed(call: Callable[[], Proposal]) -> tuple[Proposal, float]:
    """Return what a function returns, and how long it takes in ms."""
    started = time.perf_counter()
    made = call()
    return made, 1e3 * (time.perf_counter() - started)


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
    guess = np.zeros((1, count), dtype=np.int64)
    for for_draft, for_target in seen:
        draws = rng.random((1, count, 2))
        _, took = timed(lambda: target.propose(for_target, draws[..., 1]))  # noqa: B023  called at once
        own.passes.append(count)
        own.target_ms.append(took)
        started = time.perf_counter()
        found = decode_in_parallel(target, for_target, draws[..., 1], guess)
        parallel.target_ms.append(1e3 * (time.perf_counter() - started))
        parallel.passes.append(int(found.passes[0]))
        guess = found.codes
        drafted, took = timed(lambda: draft.propose(for_draft, draws[..., 0], Sampling(sendable=True)))  # noqa: B023
        verdicts = rng.random((1, count, 2))
        for completion, way in zip(COMPLETIONS, speculative, strict=True):
            assert drafted.distribution is not None
            started = time.perf_counter()
            theirs = target.judge(for_target, drafted.distribution.codes).distribution
            assert isinstance(theirs, TokenDistribution)
            judged = TokenJudge(drafted.distribution, theirs, verdicts).complete(completion)
            way.target_ms.append(1e3 * (time.perf_counter() - started))
            way.draft_ms.append(took)
            way.passes.append(int(judged.passes[0]))
            way.accepted.append(int(judged.accepted_length[0]))
    return ways


@dataclass(frozen=True)
class Played:
    """Episodes of one method.

    Attributes:
        success: (E,) bool.
        requests: (E,), of each episode.
        rule: that judged, with what it recorded; None without drafts.
    """

    success: np.ndarray
    requests: np.ndarray
    rule: Recorded | None = None


def play(
    task: Task, actor: Policy, target: Policy, proposer: str, rule: Recorded | None, episodes: Sequence[int]
) -> Played:
    """Execute chunk after chunk, in batches of episodes."""
    success, requests = [], []
    for numbers in batches(episodes):
        controller = Controller(actor, ControllerConfig(ThresholdedGate("never", 0.0)), proposer)
        verifier = TargetVerifier(target, "replace" if rule is None else "speculative")
        if rule is not None:
            verifier.acceptance = rule
        log: Log = rollout(task, controller, verifier, SEED, numbers)
        success.append(task.success.copy())
        requests.append((log.transmitted & log.active).sum(axis=0))
    return Played(np.concatenate(success), np.concatenate(requests), rule)


def observed(
    task: Task, draft: Policy, target: Policy, count: int
) -> list[tuple[Observations, Observations]]:
    """Return observations of episodes under the target's chunks, for draft and target, one at a time."""
    seen: list[tuple[Observations, Observations]] = []

    class Watching(TargetVerifier):
        def verdict(self, request, draws):  # type: ignore[no-untyped-def]
            for row in range(len(draws)):
                here = request.observations.rows(np.array([row]))
                window = target.signature.window(here)
                goal = np.zeros((1, draft.signature.goal_dim), dtype=np.float32)
                seen.append((draft.signature.observations(window, goal), here))
            return super().verdict(request, draws)

    numbers = list(evaluation_episodes(20))
    controller = Controller(draft, ControllerConfig(ThresholdedGate("never", 0.0)), "plan")
    rollout(task, controller, Watching(target, "replace"), SEED, numbers)
    chosen = np.random.default_rng(SEED).choice(len(seen), min(count, len(seen)), replace=False)
    return [seen[index] for index in chosen]


def message_bytes(target: Policy, pairs: float, codes: int) -> tuple[int, int]:
    """Return the bytes of a request with a whole window, and of its reply."""
    read = target.signature
    counts = round(pairs) if codes else 0
    up = request_bytes(read.history * read.observation_dim, 0, read.goal_dim, 0, codes, counts)
    return up, reply_bytes(read.horizon * read.action_dim, codes)


def main(
    task: str,
    checkpoints: Path,
    episodes: Annotated[int, typer.Option(min=1, help="Of each method")] = 300,
    chunks: Annotated[int, typer.Option(min=1, help="Decoded one at a time")] = 200,
    backend: str = "onnxruntime",
) -> None:
    """Print both tables."""
    world, console = make(task), Console()
    draft, target = (load_policy(checkpoints / name, backend) for name in ("draft", "target"))
    assert isinstance(draft, TokenPolicy)
    assert isinstance(target, TokenPolicy)
    count, mean = target.codec.codebooks, np.mean
    table = narrow_table(
        f"{task}: one chunk of {target.codec.chunk_length} actions, {count} tokens, {backend}",
        ["decoding"],
        ["passes", "accepted", "draft ms", "target ms"],
        f"draft {draft.signature.parameters:,} weights, target {target.signature.parameters:,}; medians of "
        f"{chunks} chunks; accepted: mean tokens before the first refusal",
    )
    for name, way in decode(draft, target, observed(world, draft, target, chunks)).items():
        accepted = number(float(mean(way.accepted)), 1) if way.accepted else ""
        drafting = number(float(np.median(way.draft_ms)), 1) if way.draft_ms else ""
        table.add_row(
            name,
            number(float(mean(way.passes)), 1),
            accepted,
            drafting,
            number(float(np.median(way.target_ms)), 1),
        )
    console.print(table)
    numbers = list(evaluation_episodes(episodes))
    played = {
        "target": play(world, draft, target, "plan", None, numbers),
        **{
            f"speculative, rest by {each}": play(world, draft, target, "chunk", Recorded(each), numbers)
            for each in COMPLETIONS
        },
        "draft alone": play(world, draft, draft, "plan", None, numbers),
    }
    own = played["target"].success
    table = narrow_table(
        f"{task}: chunks executed to their end, {episodes} episodes, seed {SEED}",
        ["method"],
        ["success", "95 %", "McNemar", "requests", "accepted", "passes", "up", "down"],
        "McNemar: episodes that only this method, only the target alone solves; p. A request is one round. "
        "Up, down: bytes of a request with a whole window, and of its reply",
    )
    for name, each in played.items():
        pair, judged = mcnemar(each.success, own), each.rule.judged if each.rule is not None else []
        lengths = np.concatenate([some.accepted_length for some in judged]) if judged else np.zeros(0)
        passes = np.concatenate([some.passes for some in judged]) if judged else np.zeros(0)
        pairs = float(mean(np.concatenate(each.rule.pairs))) if each.rule is not None else 0.0
        up, down = message_bytes(target, pairs, count if judged else 0)
        if name == "draft alone":
            up = down = 0
        low, high = wilson_interval(int(each.success.sum()), len(each.success))
        table.add_row(
            name,
            number(float(each.success.mean())),
            f"{low:.2f}-{high:.2f}",
            "" if each.success is own else f"{pair.only_this}:{pair.only_other} ({pair.p:.2f})",
            "" if name == "draft alone" else number(float(each.requests.mean()), 1),
            number(float(lengths.mean()), 1) if len(lengths) else "",
            number(float(passes.mean()), 1) if len(passes) else str(count),
            str(up),
            str(down),
        )
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
