# SPDX-License-Identifier: Apache-2.0
"""Many robots, several drafters and one verifier, by a simulated clock; see `Serving` for the decisions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from adahi_lab.papers.cosine.collaboration import Opinion
from adahi_lab.papers.cosine.serving import DraftedText, Robot, Served, Service, Serving, Way
from adahi_lab.papers.tokens.greedy_draft import GreedyDraft
from adahi_lab.papers.tokens.texts import PolicyText
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_ros.core.signature import Observations


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


class PolicyDrafts(PolicyText):
    """A `DraftedText` of several drafts.

    Args:
        drafts: by number.
        target, for_draft, for_target: see `PolicyText`.
    """

    def __init__(
        self,
        drafts: Sequence[TokenPolicy],
        target: TokenPolicy,
        for_draft: Observations,
        for_target: Observations,
    ) -> None:
        super().__init__(drafts[0], target, for_draft, for_target)
        self._drafts = [GreedyDraft(draft, for_draft) for draft in drafts]

    def opinion(self, drafter: int, tokens: Sequence[int]) -> Opinion:
        """See `DraftedText`."""
        return Opinion(*self._drafts[drafter].next_token(tokens))


def serve(texts: Sequence[Sequence[DraftedText]], way: Way, service: Service) -> Served:
    """Serve robots until each has its chunks, given by robot."""
    serving, ready = Serving[DraftedText](way, service, len(texts)), list[Robot[DraftedText]]()
    for number, own in enumerate(texts):
        for text in own:
            serving.add(number, text)
    made, done, now_s, free_s = serving.made, dict[int, list[int]](), 0.0, 0.0
    drafting, verifying = list[Robot[DraftedText]](), list[Robot[DraftedText]]()
    drafted_s = verified_s = math.inf
    while serving.waiting or ready or drafting or verifying:
        if not verifying and ready:
            made.idle_s += now_s - free_s
            verifying, ready = ready, []
            tokens = sum(len(robot.run) - len(robot.verified) + 1 for robot in verifying)
            verified_s = now_s + service.pass_of(tokens)
        if not drafting and serving.begins(bool(verifying)):
            drafting, drafted_s = serving.group(), now_s
            busy_s = verified_s - now_s if verifying else 0.0
            while wanting := serving.wanting(drafting, drafted_s - now_s, busy_s):
                for robot in wanting:
                    text = robot.texts[0]
                    serving.draft(robot, {each: text.opinion(each, robot.run) for each in robot.opinions})
                drafted_s += serving.token_s(sum(len(robot.opinions) for robot in wanting))
        now_s = min(drafted_s, verified_s)
        if now_s == drafted_s:
            ready += drafting
            drafting, drafted_s = [], math.inf
        else:
            for robot in verifying:
                finished = serving.verified(robot, robot.texts[0].own(robot.run), now_s)
                if finished is not None:
                    text, done[id(text)], latency_s = finished
                    made.latencies_s.append(latency_s)
            verifying, verified_s, free_s = [], math.inf, now_s
    made.chunks, made.time_s = [done[id(text)] for own in texts for text in own], now_s
    return made
