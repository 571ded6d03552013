# SPDX-License-Identifier: Apache-2.0
"""What to do next for many robots, several drafters and one verifier: CoSine, and what it is compared with.

Every robot wants one chunk after another. One group of robots is drafted, and one batch verified, at a time.
In a pipeline one group is drafted while another one is verified; else they take turns. No clock and no
network: `serving_clock` has a simulated clock, `serving_ray` real machines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np

from adahi_lab.papers.cosine.collaboration import Load, Opinion, Router, fused, group_size, tokens_to_draft
from adahi_lab.papers.tokens.texts import agreed


class Chunk(Protocol):
    """A chunk to decode.

    Attributes:
        length: number of its tokens.
    """

    @property
    def length(self) -> int: ...


C = TypeVar("C", bound=Chunk)


class DraftedText(Protocol):
    """A `Chunk` as the target and several drafters see it.

    Attributes:
        length: of the chunk.
    """

    length: int

    def opinion(self, drafter: int, tokens: Sequence[int]) -> Opinion:
        """Return what a drafter drafts after tokens."""

    def own(self, tokens: Sequence[int]) -> list[int]:
        """See `Text`."""


@dataclass(frozen=True)
class Service:
    """The machines.

    Attributes:
        drafters: nodes, each with one drafter.
        draft_s, draft_more_s: duration of a drafted token, and more for each request of the group on a node.
        pass_s, pass_more_s: of a verification, and more for each token that it reads.
    """

    drafters: int
    draft_s: float = 0.1
    draft_more_s: float = 0.01
    pass_s: float = 1.0
    pass_more_s: float = 0.005

    def token_s(self, opinions: int) -> float:
        """Return how long a token takes, of which drafters have so many opinions."""
        return self.draft_s + self.draft_more_s * math.ceil(opinions / self.drafters)

    def pass_of(self, tokens: int) -> float:
        """Return how long a verification of so many tokens takes."""
        return self.pass_s + self.pass_more_s * tokens


@dataclass(frozen=True)
class Way:
    """How drafts are made.

    Attributes:
        routed: drafters by what was kept; else each robot keeps one at random.
        selected: drafters of a request; the most confident token counts.
        pipelined: one group is drafted while another one is verified.
        tokens: drafted per verification; 0 adapts them to the load; None drafts none.
    """

    routed: bool = False
    selected: int = 1
    pipelined: bool = False
    tokens: int | None = 4


COSINE = Way(routed=True, selected=2, pipelined=True, tokens=0)
MOST_TOKENS = 8
MEMORY = 0.99  # of the tested tokens, from one robot's verification to the next
FIRST_TESTED = np.array([4.0, 8.0])
"""Tokens that were kept, and tested, before the first: their share is the expected acceptance."""


@dataclass
class Served:
    """What happened.

    Attributes:
        chunks: the tokens of each, in the order of the texts.
        time_s: until all were there.
        latencies_s: of each chunk.
        drafted, accepted: tokens.
        passes: verifications of one robot.
        idle_s: of the verifier.
    """

    chunks: list[list[int]]
    time_s: float = 0.0
    latencies_s: list[float] = field(default_factory=list)
    drafted: int = 0
    accepted: int = 0
    passes: int = 0
    idle_s: float = 0.0


@dataclass
class Robot(Generic[C]):
    """A robot and its chunks.

    Attributes:
        number: of the robot.
        texts: with their index, the present one first.
        since_s: when it wanted the present one.
        verified: its tokens so far.
        run: these, and drafted ones.
        opinions: what each drafter drafted for it.
        scores: of these drafters.
    """

    number: int
    texts: list[tuple[int, C]]
    since_s: float = 0.0
    verified: list[int] = field(default_factory=list)
    run: list[int] = field(default_factory=list)
    opinions: dict[int, list[int]] = field(default_factory=dict)
    scores: list[float] = field(default_factory=list)

    def wants(self, count: int) -> bool:
        """Return whether it lacks drafted tokens; the target adds the last one of a chunk."""
        return len(self.run) < min(len(self.verified) + count, self.texts[0][1].length - 1)

    def draft(self, opinions: Sequence[Opinion]) -> None:
        """Add the token of the opinions of its drafters, in their order."""
        for tokens, opinion in zip(self.opinions.values(), opinions, strict=True):
            tokens.append(opinion.token)
        self.run.append(fused(opinions, self.scores))


class Serving(Generic[C]):
    """Decides which robots are drafted for, by which drafters and how many tokens, and learns from verdicts.

    Attributes:
        robots: all of them.
        waiting: robots that want tokens, the longest waiting first.
        made: what happened.
        token_s: duration of a drafted token for a number of robots.
        pass_s: duration of a verification of a number of robots, and of tokens of each.

    Args:
        texts: the chunks of each robot.
        way: how drafts are made.
        service: the machines.
    """

    def __init__(self, texts: Sequence[Sequence[C]], way: Way, service: Service) -> None:
        self._way = way
        numbers = iter(range(sum(map(len, texts))))
        self.robots = [
            Robot(number, [(next(numbers), text) for text in own]) for number, own in enumerate(texts)
        ]
        self.waiting = list(self.robots)
        self.made = Served([[] for _ in range(sum(map(len, texts)))])
        self._router = Router(service.drafters, way.selected)
        kept = np.random.default_rng(len(texts)).integers(service.drafters, size=len(texts))
        self._kept = dict(enumerate(kept.tolist()))
        self._tested = FIRST_TESTED
        self.token_s: Callable[[int], float] = lambda number: service.token_s(number * way.selected)
        self.pass_s: Callable[[int, int], float] = lambda number, tokens: service.pass_of(number * tokens)

    def _load(self, requests: int) -> Load:
        kept, offered = self._tested
        return Load(requests, float(kept / offered), self.token_s, self.pass_s)

    def group(self, busy_s: float) -> tuple[list[Robot[C]], int]:
        """Take the robots to draft for; return them and how many tokens to draft.

        Args:
            busy_s: time until the verifier is free.
        """
        active = sum(bool(robot.texts) for robot in self.robots)
        count = self._way.tokens
        most = group_size(self._load(active), count or MOST_TOKENS) if self._way.pipelined else active
        group, self.waiting = self.waiting[:most], self.waiting[most:]
        if count == 0:
            count, _ = tokens_to_draft(self._load(len(group)), busy_s, MOST_TOKENS)
        for robot in group:
            number = robot.number
            chosen = self._router.drafters(number) if self._way.routed else [self._kept[number]]
            robot.scores = [float(self._router.scores(number)[drafter]) for drafter in chosen]
            robot.run, robot.opinions = list(robot.verified), {drafter: [] for drafter in chosen}
        return group, count or 0

    def verified(self, robot: Robot[C], own: list[int], now_s: float) -> None:
        """Learn the target's tokens after those of a robot's run, n + 1, at a time."""
        index, text = robot.texts[0]
        before = len(robot.verified)
        accepted, following = agreed(robot.run, own)
        robot.verified = [*robot.run[:accepted], following]
        new = robot.verified[before:]
        right = {
            drafter: (sum(a == b for a, b in zip(tokens, new, strict=False)), min(len(tokens), len(new)))
            for drafter, tokens in robot.opinions.items()
        }
        kept, drafted = accepted - before, len(robot.run) - before
        self._router.verified(robot.number, kept / max(drafted, 1), right)
        self._tested = MEMORY * self._tested + np.array([kept, min(kept + 1, drafted)])
        self.made.passes += 1
        self.made.drafted += drafted
        self.made.accepted += kept
        if len(robot.verified) == text.length:
            self.made.chunks[index] = robot.verified
            self.made.latencies_s.append(now_s - robot.since_s)
            robot.texts.pop(0)
            robot.verified, robot.since_s = [], now_s
        if robot.texts:
            self.waiting.append(robot)
