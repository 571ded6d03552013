# SPDX-License-Identifier: Apache-2.0
"""The methods of papers on a pair of token policies, by one measure: time of the target for each action.

Episodes run as in `adahi evaluate`. Where a method needs several machines, a test clock gives its time, and
the episodes give its success: each chunk is the target's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np

from adahi_lab.decoding.observed_chunks import Seen, by_robot
from adahi_lab.decoding.run_clock import Decoded, Machines, alone, pipelined, speculative
from adahi_lab.decoding.serving import COSINE, DraftedText, Service
from adahi_lab.decoding.serving_clock import serve
from adahi_lab.decoding.texts import PolicyDrafts, PolicyText, Text, own_chunk
from adahi_lab.decoding.watched_verifier import Greedy, InParallel, Notes, Sampled
from adahi_lab.evaluation.evaluate import Comparison, batches
from adahi_lab.methods.methods import METHODS
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_ros.core.schema import Listed, Schema, load, one_of

DRAFT_S = 0.02  # duration of a drafted token, where a pass of the target takes 1
TOKENS_PER_RUN = 4  # as in PipeInfer's scripts
INSTANCES = 7  # as in DSI's simulations
CLUSTER = Machines(stages=7, layers=11, layer_s=1 / 77, draft_s=DRAFT_S)  # PipeInfer's: seven machines
UNBOUNDED = 1000  # runs in flight
SAMPLED, GREEDY, PARALLEL = "sampled", "greedy", "in parallel"
STEP, CHUNK, PREFIX = "a step", "a chunk", "kept actions"
PACKED = "packed"  # a file of `packed_session`
ALONE, SPECULATIVE, COSINE_WAY = "alone", "speculative", "CoSine"


@dataclass(frozen=True)
class Line(Schema):
    """A line of the table.

    Attributes:
        name: of the method.
        method: of `adahi evaluate`, see `for_task`; empty where every chunk is the target's.
        paper: its figure there.
        decodes: how a target that proposes does so.
        decides: what a request decides; empty for that of its group.
        robot, server: files that each side loads.
        checkpoints: of another folder, below the package's files.
        way: of `simulated`; empty where the episodes give the time.
    """

    name: str
    method: str = ""
    paper: str = ""
    decodes: Annotated[str, one_of((SAMPLED, GREEDY, PARALLEL))] = SAMPLED
    decides: Annotated[str, one_of(("", STEP, CHUNK, PREFIX))] = ""
    robot: Listed[str] = ("draft.onnx",)
    server: Listed[str] = ("target.onnx",)
    checkpoints: str = ""
    way: str = ""


@dataclass(frozen=True)
class Group(Schema):
    """Lines that send requests in the same way.

    Attributes:
        name: what a request is for, and how tokens are chosen.
        decides: what a request decides.
        lines: of the table, the target alone first.
    """

    name: str
    decides: Annotated[str, one_of((STEP, CHUNK, PREFIX))]
    lines: Listed[Line]


@dataclass(frozen=True)
class _Table(Schema):
    """The content of token_pair.yaml."""

    groups: Listed[Group]


GROUPS = tuple(
    replace(group, lines=tuple(replace(line, decides=line.decides or group.decides) for line in group.lines))
    for group in load(_Table, Path(__file__).with_suffix(".yaml")).groups
)


@dataclass(frozen=True)
class Played:
    """Episodes of a method.

    Attributes:
        success: of each.
        requests: of an episode.
        passes, drafted: passes of the target, and drafted tokens, for each decided action.
        kept: drafted tokens of a request before the first that is not kept; None without drafts.
    """

    success: list[bool]
    requests: float
    passes: float
    drafted: float
    kept: float | None


def play(
    line: Line, method: str, comparison: Comparison, episodes: Sequence[int], on_step: Callable[[], None]
) -> Played:
    """Run a line's episodes.

    Args:
        line: of the table.
        method: of the line, for the task.
        comparison: task and policies.
        episodes: their numbers.
        on_step: called after each control step.

    Raises:
        ValueError: the policies lack something that the method needs.
    """
    bench, success, parts = comparison.bench(), list[bool](), list[np.ndarray]()
    target, decided_alone = bench.policies.target, METHODS[method].acceptance == "replace"
    assert isinstance(target, TokenPolicy)
    size, tokens = target.signature.action_dim, target.codec.codebooks
    if line.decides != CHUNK and target.codec.end is not None:
        raise ValueError(f"tokens: {target.codec.kind!r}, must have one for each entry of an action")
    own = size if line.decides == STEP else tokens  # that the target decodes without a draft
    for numbers in batches(episodes):
        notes, world = Notes(), comparison.world()
        plans = bench.policies.plans
        if decided_alone:
            note = notes.passes.append
            decoders = {GREEDY: Greedy(target, note, own), PARALLEL: InParallel(target, note)}
            plans = decoders.get(line.decodes) or Sampled(target, note)
        here = replace(bench, policies=replace(bench.policies, plans=plans))
        log = METHODS[method].run(here, world, comparison.seed, numbers, on_step, notes.verifier)
        success += world.success.tolist()
        sent = log.transmitted & log.active
        count = int(sent.sum())
        kept = notes.of_requests(notes.kept, log) if notes.drafted else np.zeros(count)
        passes = notes.of_requests(notes.passes, log)
        longest = target.codec.chunk_length
        of_request = longest if line.decides == CHUNK else np.minimum(kept // size + 1, longest)
        decided = log.active.sum() if line.decides == STEP else (of_request * np.ones(count)).sum()
        drafts = log.active.sum() if line.decides == STEP else count
        drafts_nothing = decided_alone or not count
        drafted = np.zeros(1) if drafts_nothing else notes.of_requests(notes.drafted, log)
        parts.append(np.array([count, decided, passes.sum(), drafts * drafted.mean(), kept.sum()]))
    count, decided, passed, drafted_tokens, kept_tokens = np.sum(parts, axis=0).tolist()
    return Played(
        success,
        count / len(success),
        passed / decided,
        drafted_tokens / decided,
        kept_tokens / count if drafted_tokens and count else None,
    )


@dataclass(frozen=True)
class Simulated:
    """Chunks by a test clock.

    Attributes:
        time, passes: of the clock and of the target, for each action.
        runs: requests of a chunk.
        kept: drafted tokens of a pass that are kept; None where several passes read the same tokens.
    """

    time: float
    passes: float
    runs: float
    kept: float | None = None


def simulated(
    pair: tuple[TokenPolicy, TokenPolicy], drafters: Sequence[TokenPolicy], seen: Sequence[Seen]
) -> dict[str, Simulated]:
    """Return the ways to decode chunks on several machines, by name.

    Args:
        pair: draft and target.
        drafters: specialised drafts.
        seen: observations at which chunks begin, of several robots.

    Raises:
        ValueError: a chunk is not the target's own.
    """
    draft, target = pair
    texts = [PolicyText(draft, target, *each) for each in seen]
    actions = target.codec.chunk_length

    def piped(machines: Machines, most: int) -> Callable[[Text], Decoded]:
        return lambda text: pipelined(text, TOKENS_PER_RUN, machines, most)

    instances = replace(CLUSTER, stages=1, layers=77)
    ways: Mapping[str, Callable[[Text], Decoded]] = {
        ALONE: lambda text: alone(text, CLUSTER),
        SPECULATIVE: lambda text: speculative(text, TOKENS_PER_RUN, CLUSTER),
        "PipeInfer": piped(CLUSTER, UNBOUNDED),
        **{f"DSI, {lanes}": piped(replace(instances, lanes=lanes), lanes) for lanes in (2, INSTANCES)},
    }
    found = {}
    for name, way in ways.items():
        made = [way(text) for text in texts]
        _check(name, [each.tokens for each in made], texts)
        passes = float(np.mean([each.passes for each in made]))
        kept = target.codec.codebooks / passes - 1.0 if name == SPECULATIVE else None
        time = float(np.mean([each.time_s for each in made]))
        runs = 1.0 if name == ALONE else passes
        found[name] = Simulated(time / actions, passes / actions, runs, kept)
    found[COSINE_WAY] = _served(drafters, target, seen)
    return found


def _served(drafters: Sequence[TokenPolicy], target: TokenPolicy, seen: Sequence[Seen]) -> Simulated:
    """Serve the robots; a pass and a drafted token last as long for any number of them."""
    texts: list[list[DraftedText]] = [
        [PolicyDrafts(drafters, target, *each) for each in own] for own in by_robot(list(seen), target)
    ]
    free = Service(len(drafters), DRAFT_S, 0.0, 1.0, 0.0)
    made = serve(texts, replace(COSINE, selected=len(drafters)), free)
    _check(COSINE_WAY, made.chunks, [text for own in texts for text in own])  # type: ignore[misc]
    actions, count = target.codec.chunk_length, len(made.chunks)
    return Simulated(
        float(np.mean(made.latencies_s)) / actions,
        made.passes / count / actions,
        1.0,
        made.accepted / made.passes,
    )


def _check(name: str, made: Sequence[list[int]], texts: Sequence[Text]) -> None:
    for tokens, text in zip(made, texts, strict=True):
        if tokens != (own := own_chunk(text)):
            raise ValueError(f"{name}: another chunk: {tokens}, must be {own}")


def files_of(names: Sequence[str], folder: Path) -> list[Path]:
    """Return the files of a line in a folder; a name may lack its suffix.

    Where an export to ONNX is not shipped, its weights count.
    """

    def shipped(name: str) -> list[Path]:
        found = sorted(folder.glob(f"{name}*"))
        return found or sorted(folder.glob(f"{name.removesuffix('.onnx')}.safetensors"))

    return [path for name in names if name != PACKED for path in shipped(name)]


def kilobytes(names: Sequence[str], folder: Path, packed_bytes: int) -> float:
    """Return the size of a line's files in a folder."""
    sizes = [path.stat().st_size for path in files_of(names, folder)]
    return (sum(sizes) + packed_bytes * names.count(PACKED)) / 1e3
