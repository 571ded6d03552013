# SPDX-License-Identifier: Apache-2.0
"""The methods of papers on a pair of token policies, by one measure: time of the target for each action.

Episodes run as in `adahi evaluate`. Where a method needs several machines, a test clock gives its time, and
the episodes give its success: each chunk is the target's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np

from adahi_lab.evaluation.evaluate import Comparison, batches
from adahi_lab.methods.methods import METHODS
from adahi_lab.papers.rooms import of_rooms
from adahi_lab.papers.tokens.observed_chunks import Seen, load_token_policy, observed_chunks
from adahi_lab.papers.tokens.run_clock import Decoded, Machines, alone, speculative
from adahi_lab.papers.tokens.texts import PolicyText, Text, own_chunk
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.papers.tokens.watched_verifier import Greedy, InParallel, Notes, Sampled
from adahi_ros.core.registry import at_place
from adahi_ros.core.schema import Listed, Schema, one_of

DRAFT_S = 0.02  # duration of a drafted token, where a pass of the target takes 1
TOKENS_PER_RUN = 4  # as in PipeInfer's scripts
CLUSTER = Machines(stages=7, layers=11, layer_s=1 / 77, draft_s=DRAFT_S)  # PipeInfer's: seven machines
SAMPLED, GREEDY, PARALLEL = "sampled", "greedy", "in parallel"
STEP, CHUNK, PREFIX = "a step", "a chunk", "kept actions"
PACKED = "packed"  # stands for the `packed_bytes` of the target
ALONE, SPECULATIVE = "alone", "speculative"


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
        way: its name in `simulated`; empty where the episodes give the time.
        given: whether its draft reads the goal, too; see `given`.
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
    given: bool = False


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
    """The content of a room's token_pair.yaml.

    Attributes:
        groups: only here; other rooms add to these.
        lines: more of them, by the name of the group.
        clock: "module:function", a `Clock` for the ways of these lines; empty for none.
    """

    groups: Listed[Group] = ()
    lines: dict[str, Listed[Line]] = field(default_factory=dict)
    clock: str = ""


_ROOMS = tuple(of_rooms(_Table, "token_pair.yaml"))


def _whole(group: Group) -> Group:
    """Return the group with the lines of all rooms."""
    lines = *group.lines, *(line for room in _ROOMS for line in room.lines.get(group.name, ()))
    return replace(group, lines=tuple(replace(line, decides=line.decides or group.decides) for line in lines))


GROUPS = tuple(_whole(group) for room in _ROOMS for group in room.groups)


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


@dataclass(frozen=True)
class Chunks:
    """Chunks of a pair of policies, to decode by a clock.

    Attributes:
        task: a key of the tasks.
        folder: of the pair.
        out: folder that keeps what a `Clock` trains.
        episodes: in which the chunks begin.
        seed: of these.
    """

    task: str
    folder: Path
    out: Path
    episodes: int
    seed: int

    @cached_property
    def draft(self) -> TokenPolicy:
        """The draft."""
        return load_token_policy(self.folder / "draft")

    @cached_property
    def target(self) -> TokenPolicy:
        """The target."""
        return load_token_policy(self.folder / "target")

    @cached_property
    def seen(self) -> list[Seen]:
        """Observations at which chunks begin, of several robots."""
        return observed_chunks(self.task, self.draft, self.target, self.episodes, self.seed)

    @cached_property
    def texts(self) -> list[PolicyText]:
        """The chunks, in the order of `seen`."""
        return [PolicyText(self.draft, self.target, *each) for each in self.seen]


Clock = Callable[[Chunks], dict[str, Simulated]]
"""Returns ways to decode chunks on several machines, by name.

Raises:
    ValueError: a chunk is not the target's own.
"""


def on_one_target(chunks: Chunks) -> dict[str, Simulated]:
    """Decode without runs in flight; a `Clock`."""
    alone_ = by_clock(chunks, lambda text: alone(text, CLUSTER))
    plain = by_clock(chunks, lambda text: speculative(text, TOKENS_PER_RUN, CLUSTER))
    kept = plain.runs and chunks.target.codec.codebooks / plain.runs - 1.0
    return {ALONE: replace(alone_, runs=1.0), SPECULATIVE: replace(plain, kept=kept)}


def simulated(chunks: Chunks, reads: bool) -> dict[str, Simulated]:
    """Return the ways of lines with a draft that reads the goal, or with one that does not.

    Raises as a `Clock`.
    """
    ways = {line.way for group in GROUPS for line in group.lines if line.way and line.given == reads}
    rooms = [
        room for room in _ROOMS if any(line.way in ways for lines in room.lines.values() for line in lines)
    ]
    clocks = on_one_target, *(at_place(room.clock) for room in rooms)
    return {name: each for clock in clocks for name, each in clock(chunks).items()}


def by_clock(chunks: Chunks, way: Callable[[Text], Decoded]) -> Simulated:
    """Return the work for chunks by a way that sends a request for each pass; raises as a `Clock`."""
    made = [way(text) for text in chunks.texts]
    check_own([each.tokens for each in made], chunks.texts)
    actions, passes = chunks.target.codec.chunk_length, float(np.mean([each.passes for each in made]))
    return Simulated(float(np.mean([each.time_s for each in made])) / actions, passes / actions, passes)


def check_own(made: Sequence[list[int]], texts: Sequence[Text]) -> None:
    """Raise a ValueError where a chunk is not the target's own."""
    for tokens, text in zip(made, texts, strict=True):
        if tokens != (own := own_chunk(text)):
            raise ValueError(f"another chunk: {tokens}, must be {own}")


def given(task: str, folder: Path) -> tuple[str, Path]:
    """Return the task that gives the robot the goal, and the folder of its draft, below a pair's."""
    return f"{task}_given", folder / "given"


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
