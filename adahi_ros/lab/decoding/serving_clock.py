# SPDX-License-Identifier: Apache-2.0
"""Many robots, several drafters and one verifier, by a simulated clock: CoSine, and what it is compared with.

Every robot wants one chunk after another. One group of robots is drafted, and one batch verified, at a time.
In a pipeline one group is drafted while another one is verified; else they take turns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from adahi_ros.lab.decoding.collaboration import Load, Opinion, Router, fused, group_size, tokens_to_draft
from adahi_ros.proposers.token_runs import agreed


class DraftedText(Protocol):
    """A chunk as the target and several drafters see it.

    Attributes:
        length: of the chunk.
    """

    length: int

    def opinion(self, drafter: int, tokens: Sequence[int]) -> Opinion:
        """Return what a drafter drafts after tokens."""

    def own(self, tokens: Sequence[int]) -> list[int]:
        """See `Text`."""


class MadeUpDrafts(DraftedText):
    """Token i of the target is i. A drafter is right with a probability, at each place on its own.

    Args:
        length: of the chunk.
        acceptances: of each drafter.
        seed: of where each is right, and of its confidence, which is higher on average where it is.
    """

    def __init__(self, length: int, acceptances: Sequence[float], seed: int) -> None:
        self.length = length
        rng, shape = np.random.default_rng(seed), (len(acceptances), length)
        self._right = rng.random(shape) < np.array(acceptances)[:, None]
        self._confidence = np.where(self._right, rng.uniform(0.4, 1.0, shape), rng.uniform(0.1, 0.7, shape))

    def opinion(self, drafter: int, tokens: Sequence[int]) -> Opinion:
        """See `DraftedText`."""
        at = len(tokens)
        right = self._right[drafter, at] and (not tokens or tokens[-1] == at - 1)
        return Opinion(at if right else -1 - drafter, float(self._confidence[drafter, at]))

    def own(self, tokens: Sequence[int]) -> list[int]:
        """See `Text`."""
        return list(range(len(tokens) + 1))


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
class _Robot:
    number: int
    texts: list[tuple[int, DraftedText]]  # the present one first, with its index
    since_s: float = 0.0
    verified: list[int] = field(default_factory=list)
    run: list[int] = field(default_factory=list)
    opinions: dict[int, list[int]] = field(default_factory=dict)


class _Serving:
    def __init__(self, texts: Sequence[Sequence[DraftedText]], way: Way, service: Service) -> None:
        self._way, self._service = way, service
        numbers = iter(range(sum(map(len, texts))))
        self._robots = [
            _Robot(number, [(next(numbers), text) for text in own]) for number, own in enumerate(texts)
        ]
        self._router = Router(service.drafters, way.selected)
        kept = np.random.default_rng(len(texts)).integers(service.drafters, size=len(texts))
        self._kept = dict(enumerate(kept.tolist()))
        self.made = Served([[] for _ in range(sum(map(len, texts)))])
        self._waiting, self._ready = list(self._robots), list[_Robot]()
        self._tested = FIRST_TESTED

    def run(self) -> Served:
        now_s, drafting, verifying = 0.0, list[_Robot](), list[_Robot]()
        drafted_s = verified_s = math.inf
        free_s = 0.0
        while self._waiting or self._ready or drafting or verifying:
            if not verifying and self._ready:
                self.made.idle_s += now_s - free_s
                verifying, self._ready = self._ready, []
                tokens = sum(len(robot.run) - len(robot.verified) + 1 for robot in verifying)
                verified_s = now_s + self._service.pass_s + self._service.pass_more_s * tokens
            if not drafting and self._waiting and (self._way.pipelined or not verifying):
                drafting = self._group()
                busy_s = verified_s - now_s if verifying else 0.0
                drafted_s = now_s + self._draft(drafting, busy_s)
            now_s = min(drafted_s, verified_s)
            if now_s == drafted_s:
                self._ready += drafting
                drafting, drafted_s = [], math.inf
            else:
                for robot in verifying:
                    self._verified(robot, now_s)
                verifying, verified_s, free_s = [], math.inf, now_s
        self.made.time_s = now_s
        return self.made

    def _group(self) -> list[_Robot]:
        """Take the robots to draft for, the longest waiting first."""
        active = sum(bool(robot.texts) for robot in self._robots)
        most = group_size(self._load(active), self._most) if self._way.pipelined else active
        group, self._waiting = self._waiting[:most], self._waiting[most:]
        return group

    @property
    def _most(self) -> int:
        return self._way.tokens or MOST_TOKENS

    def _load(self, requests: int) -> Load:
        service, selected = self._service, self._way.selected

        def token_s(number: int) -> float:
            return service.draft_s + service.draft_more_s * math.ceil(number * selected / service.drafters)

        def pass_s(number: int, tokens: int) -> float:
            return service.pass_s + service.pass_more_s * number * tokens

        kept, offered = self._tested
        return Load(requests, float(kept / offered), token_s, pass_s)

    def _draft(self, group: list[_Robot], busy_s: float) -> float:
        """Draft for a group; return how long it takes."""
        load, count = self._load(len(group)), self._way.tokens
        if count == 0:
            count, _ = tokens_to_draft(load, busy_s, MOST_TOKENS)
        for robot in group:
            self._draft_for(robot, count or 0)
        return load.token_s(len(group)) * (count or 0)

    def _draft_for(self, robot: _Robot, count: int) -> None:
        _, text = robot.texts[0]
        chosen = self._router.drafters(robot.number) if self._way.routed else [self._kept[robot.number]]
        scores = [float(self._router.scores(robot.number)[drafter]) for drafter in chosen]
        robot.run, robot.opinions = list(robot.verified), {drafter: [] for drafter in chosen}
        while len(robot.run) < min(len(robot.verified) + count, text.length - 1):
            opinions = [text.opinion(drafter, robot.run) for drafter in chosen]
            for drafter, opinion in zip(chosen, opinions, strict=True):
                robot.opinions[drafter].append(opinion.token)
            robot.run.append(fused(opinions, scores))
            self.made.drafted += 1

    def _verified(self, robot: _Robot, now_s: float) -> None:
        index, text = robot.texts[0]
        before = len(robot.verified)
        accepted, following = agreed(robot.run, text.own(robot.run))
        robot.verified = [*robot.run[:accepted], following]
        own = robot.verified[before:]
        right = {
            drafter: (sum(a == b for a, b in zip(tokens, own, strict=False)), min(len(tokens), len(own)))
            for drafter, tokens in robot.opinions.items()
        }
        kept, drafted = accepted - before, len(robot.run) - before
        self._router.verified(robot.number, kept / max(drafted, 1), right)
        offered = min(kept + 1, drafted)
        self._tested = MEMORY * self._tested + np.array([kept, offered])
        self.made.passes += 1
        self.made.accepted += kept
        if len(robot.verified) == text.length:
            self.made.chunks[index] = robot.verified
            self.made.latencies_s.append(now_s - robot.since_s)
            robot.texts.pop(0)
            robot.verified, robot.since_s = [], now_s
        if robot.texts:
            self._waiting.append(robot)


def serve(texts: Sequence[Sequence[DraftedText]], way: Way, service: Service) -> Served:
    """Serve robots until each has its chunks, given by robot."""
    return _Serving(texts, way, service).run()
