# SPDX-License-Identifier: Apache-2.0
"""What to do next for many robots, several drafters and one verifier: CoSine, and what it is compared with.

Every robot wants one chunk after another. One group of robots is drafted, and one batch verified, at a time.
In a pipeline one half of the robots may be drafted for while the other half is verified; else all are drafted
for together. What verifications kept decides which is faster, how many drafters work on a robot, and how
many tokens they draft. No clock and no network: `serving_clock` has a simulated clock, `serving_loop` real
machines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np

from adahi_lab.papers.cosine.collaboration import Opinion, Router, fused
from adahi_lab.papers.tokens.texts import agreed


class Chunk(Protocol):
    """A chunk to decode.

    Attributes:
        length: number of its tokens.
    """

    length: int


C = TypeVar("C", bound=Chunk)
Finished = tuple[C, list[int], float]
"""A chunk, its tokens, and how long after its robot wanted it."""


class DraftedText(Chunk, Protocol):
    """A `Chunk` as the target and several drafters see it."""

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

    def token_s(self, opinions: float) -> float:
        """Return how long a token takes, of which drafters have so many opinions."""
        return self.draft_s + self.draft_more_s * math.ceil(opinions / self.drafters)

    def pass_of(self, tokens: float) -> float:
        """Return how long a verification of so many tokens takes."""
        return self.pass_s + self.pass_more_s * tokens


@dataclass(frozen=True)
class Way:
    """How drafts are made.

    Attributes:
        routed: drafters by what was kept; else each robot keeps one at random.
        selected: drafters of a request; the most confident token counts.
        pipelined: one half may be drafted for while the other one is verified.
        tokens: drafted per verification; 0 adapts them, and the drafters up to `selected`, to the load; None
            drafts none.
    """

    routed: bool = False
    selected: int = 1
    pipelined: bool = False
    tokens: int | None = 4


COSINE = Way(routed=True, selected=2, pipelined=True, tokens=0)
MOST_TOKENS = 8
MEMORY = 0.99  # of the tested tokens, from one robot's verification to the next
FIRST_KEPT = np.array([3.2, 4.0, 4.0, 1.0])
"""Tokens that were kept, tested and drafted, and verifications, before the first: so many that each number of
drafters is tried."""
LEVELS = 8  # of confidence; of each, the share of kept tokens is measured


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

    chunks: list[list[int]] = field(default_factory=list)
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
        name: of the robot.
        texts: the present one first.
        since_s: when it wanted the present one.
        verified: its tokens so far.
        run: these, and drafted ones.
        opinions: what each drafter drafted for it.
        scores: likewise.
        levels: of confidence, of the drafted tokens.
        alive: probability that all of them are kept.
        expected: tokens of the next verification.
    """

    name: Hashable
    texts: list[C] = field(default_factory=list)
    since_s: float = 0.0
    verified: list[int] = field(default_factory=list)
    run: list[int] = field(default_factory=list)
    opinions: dict[int, list[int]] = field(default_factory=dict)
    scores: dict[int, float] = field(default_factory=dict)
    levels: list[int] = field(default_factory=list)
    alive: float = 1.0
    expected: float = 1.0

    def wants(self, count: int) -> bool:
        """Return whether it lacks drafted tokens; the target adds the last one of a chunk."""
        lacks = len(self.run) < min(len(self.verified) + count, self.texts[0].length - 1)
        return lacks and bool(self.opinions)

    def begin(self, scores: dict[int, float]) -> None:
        """Begin a draft by some drafters with scores."""
        self.run, self.opinions = list(self.verified), {drafter: [] for drafter in scores}
        self.scores, self.levels, self.alive, self.expected = scores, [], 1.0, 1.0


class Serving(Generic[C]):
    """Decides which robots are drafted for, by which drafters and how many tokens, and learns from verdicts.

    Attributes:
        robots: those that want chunks, by name.
        waiting: robots that want tokens, the longest waiting first.
        present: drafters that reply.
        made: what happened; the chunks and their latencies are the caller's.
        token_s: duration of a drafted token, of which drafters have so many opinions.
        pass_s: duration of a verification of so many tokens.

    Args:
        way: how drafts are made.
        service: the machines.
        seed: of robots' drafters where they are not routed.

    Raises:
        ValueError: the way has more drafters of a robot than there are.
    """

    def __init__(self, way: Way, service: Service, seed: int = 0) -> None:
        if not 1 <= way.selected <= service.drafters:
            raise ValueError(f"selected: {way.selected}, must be from 1 to {service.drafters}, the drafters")
        self._way = way
        self.robots: dict[Hashable, Robot[C]] = {}
        self.waiting: list[Robot[C]] = []
        self.present, self.made = list(range(service.drafters)), Served()
        self._router = Router(service.drafters, seed)
        most = way.selected if way.routed else 1
        self._kept = dict.fromkeys(sorted({1, most} if way.tokens == 0 else {most}), FIRST_KEPT)
        middles = (np.arange(LEVELS) + 0.5) / LEVELS
        self._sure = np.stack([2.0 * middles, np.full(LEVELS, 2.0)], axis=1)
        self.token_s: Callable[[float], float] = service.token_s
        self.pass_s: Callable[[float], float] = service.pass_of

    def add(self, name: Hashable, text: C, now_s: float = 0.0) -> None:
        """Add a chunk that a robot wants, after those that it wants already."""
        robot = self.robots.setdefault(name, Robot(name))
        robot.texts.append(text)
        if len(robot.texts) == 1:
            robot.since_s = now_s
            self.waiting.append(robot)

    def _kept_of(self, selected: int) -> int:
        """Return the number of drafters, nearest to this one, of which drafts are measured."""
        return min(self._kept, key=lambda each: abs(each - selected))

    def _rate(self, selected: int, halves: bool) -> float:
        """Return the tokens per second as drafts of so many drafters were kept, in halves or together."""
        kept, _, drafted, verified = self._kept[selected]
        active = len(self.robots)
        group = math.ceil(active / 2) if halves else active
        draft_s = drafted / verified * self.token_s(group * selected)
        pass_s = self.pass_s(group * (drafted / verified + 1.0))
        tokens = active * (1.0 + kept / verified)
        if halves:
            return float(tokens / max(draft_s, pass_s) / 2.0)
        return float(max(tokens / (draft_s + pass_s), active / self.pass_s(active)))  # or drafts nothing

    def _arranged(self) -> tuple[int, bool]:
        """Return how many drafters work on a robot, and whether halves take turns: what is fastest."""
        halving = (False, True) if self._way.pipelined else (False,)
        options = [(selected, halves) for halves in halving for selected in self._kept]
        return max(options, key=lambda each: self._rate(*each))

    def begins(self, verifying: bool) -> bool:
        """Return whether to draft for another group now: together, all wait for the verifier."""
        return bool(self.waiting) and (not verifying or self._arranged()[1])

    def group(self) -> list[Robot[C]]:
        """Take the robots to draft for."""
        selected, halves = self._arranged()
        active = len(self.robots)
        size = math.ceil(active / 2) if halves else active
        group, self.waiting = self.waiting[:size], self.waiting[size:]
        for robot in group:
            robot.begin(self._router.drafters(robot.name, selected, self.present, self._way.routed))
        return group

    def wanting(self, group: Sequence[Robot[C]], spent_s: float, busy_s: float) -> list[Robot[C]]:
        """Return the robots to draft a next token for, none at the end of a draft.

        Adaptive speculation: those with the likeliest drafts, as many as give the most tokens per second.
        While the verifier is busy, drafting costs nothing, so more is drafted.

        Args:
            group: of robots.
            spent_s: since its drafting began.
            busy_s: from then until the verifier is free.
        """
        count = self._way.tokens
        able = [robot for robot in group if robot.wants(MOST_TOKENS if count == 0 else count or 0)]
        if count != 0 or not able:
            return able
        able.sort(key=lambda robot: -robot.alive)
        selected = len(able[0].opinions)
        kept, tested, _, _ = self._kept[self._kept_of(selected)]
        expected = sum(robot.expected for robot in group)
        tokens = len(group) + sum(len(robot.levels) for robot in group)
        rates = [expected / (max(spent_s, busy_s) + self.pass_s(tokens))]
        for number, robot in enumerate(able, 1):
            expected += robot.alive * kept / tested
            drafted_s = spent_s + self.token_s(number * selected)
            rates.append(expected / (max(drafted_s, busy_s) + self.pass_s(tokens + number)))
        return able[: int(np.argmax(rates))]

    def draft(self, robot: Robot[C], opinions: Mapping[int, Opinion]) -> None:
        """Add the token of the opinions of a robot's drafters; those without one leave it."""
        robot.opinions = {
            drafter: [*tokens, opinions[drafter].token]
            for drafter, tokens in robot.opinions.items()
            if drafter in opinions
        }
        if not robot.opinions:
            return
        best = fused(*zip(*((opinions[each], robot.scores[each]) for each in robot.opinions), strict=True))
        level = min(int(best.confidence * LEVELS), LEVELS - 1)
        kept, tested = self._sure[level]
        robot.run.append(best.token)
        robot.levels.append(level)
        robot.alive *= kept / tested
        robot.expected += robot.alive

    def verified(self, robot: Robot[C], own: list[int], now_s: float) -> Finished[C] | None:
        """Learn the target's n + 1 tokens of a robot's run, at a time; return its chunk if it is finished."""
        before = len(robot.verified)
        accepted, following = agreed(robot.run, own)
        robot.verified = [*robot.run[:accepted], following]
        new = robot.verified[before:]
        right = {
            drafter: (sum(a == b for a, b in zip(tokens, new, strict=False)), min(len(tokens), len(new)))
            for drafter, tokens in robot.opinions.items()
        }
        kept, drafted = accepted - before, len(robot.run) - before
        self._router.verified(robot.name, kept / max(drafted, 1), right)
        if drafted:
            new_kept = np.array([kept, min(kept + 1, drafted), drafted, 1.0])
            selected = self._kept_of(len(robot.opinions))
            self._kept[selected] = MEMORY * self._kept[selected] + new_kept
        for place, level in enumerate(robot.levels[: kept + 1]):
            self._sure[level] = MEMORY * self._sure[level] + [place < kept, 1.0]
        self.made.passes += 1
        self.made.drafted += drafted
        self.made.accepted += kept
        if len(robot.verified) < robot.texts[0].length:
            self.waiting.append(robot)
            return None
        return self.end(robot, now_s)

    def end(self, robot: Robot[C], now_s: float) -> Finished[C]:
        """End a robot's present chunk, also where it failed, and begin its next one."""
        done = robot.texts.pop(0), robot.verified, now_s - robot.since_s
        robot.verified, robot.since_s = [], now_s
        if robot.texts:
            self.waiting.append(robot)
        else:
            del self.robots[robot.name]
        return done
