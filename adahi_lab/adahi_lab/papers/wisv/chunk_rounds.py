# SPDX-License-Identifier: Apache-2.0
"""A chunk of tokens in rounds, as in WISV's paper: the draft continues behind a refused token.

All rounds of a chunk read the observation at its start, and the robot then executes all of it. The world
waits for the rounds: there are no messages here. On a robot, `ChunkPrefixProposer` has one round for an
observation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_lab.papers.wisv.hidden_states import HiddenStates, packed_states
from adahi_ros.core.proposal import CodeDistribution, Proposal
from adahi_ros.core.signature import Observations

DRAFTED = 8  # tokens of a round


@dataclass(frozen=True)
class Round:
    """A round of R robots.

    Attributes:
        rows: (R,), the robots, by index.
        begin: (R,), the first drafted token.
        accepted: (R,) drafted tokens before the first that is not kept.
        mismatches: (R,) drafted tokens that are not the target's likeliest after those before.
        judged, kept: (R,) mismatches up to the first that is not kept, and those that were kept.
    """

    rows: np.ndarray
    begin: np.ndarray
    accepted: np.ndarray
    mismatches: np.ndarray
    judged: np.ndarray
    kept: np.ndarray


def in_rounds(
    draft: TokenPolicy,
    target: TokenPolicy,
    seen: tuple[Observations, Observations],
    rule: HiddenStates,
    channel: tuple[float, float] = (np.nan, np.nan),
) -> tuple[np.ndarray, list[Round]]:
    """Return the chunks (B, N) of B robots, and their rounds.

    Args:
        draft: drafts.
        target: judges.
        seen: by the draft, and by the target.
        rule: says which tokens are kept; without a head, those of the target.
        channel: round trip in ms, share of lost requests; NaN where unknown.
    """
    ours, theirs = seen
    length, made = target.codec.codebooks, list[Round]()
    codes = np.zeros((len(target.signature.window(theirs)), length), dtype=np.int64)
    states, position = np.zeros((*codes.shape, draft.hidden_size), dtype=np.int8), np.zeros(len(codes), int)
    while (rows := np.flatnonzero(position < length)).size:
        begin, end = position[rows], np.minimum(position[rows] + DRAFTED, length)
        for index in range(DRAFTED):
            at = np.minimum(begin + index, length - 1)
            here, drafting = (np.arange(len(rows)), at), draft.begin(ours.rows(rows), codes[rows, : at.max()])
            codes[rows, at] = drafting.logits[here].argmax(axis=-1)
            states[rows, at] = packed_states(drafting.hidden[here])
        judged = target.judge(theirs.rows(rows), codes[rows]).distribution
        assert isinstance(judged, TokenDistribution)
        drawn = CodeDistribution(judged.probabilities, codes[rows], target.codec.decode)
        data = {"states": states[rows], "sent": np.ones((len(rows), length), dtype=bool)}
        data["channel"] = np.tile(channel, (len(rows), 1))
        kept, mismatch, _ = rule.kept(Proposal(target.codec.decode(codes[rows]), drawn, data=data), judged)
        places = np.arange(length)
        mismatch &= (places >= begin[:, None]) & (places < end[:, None])
        at = np.where(mismatch & ~kept, places, end[:, None]).min(axis=1)
        counted = mismatch & (places <= at[:, None])
        own = np.flatnonzero(at < length)
        codes[rows[own], at[own]] = judged.probabilities[own, at[own]].argmax(axis=-1)
        position[rows] = np.minimum(at + 1, length)
        made.append(
            Round(
                rows,
                begin,
                at - begin,
                mismatch.sum(axis=1),
                counted.sum(axis=1),
                (counted & kept).sum(axis=1),
            )
        )
    return codes, made
