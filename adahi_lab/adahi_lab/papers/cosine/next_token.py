# SPDX-License-Identifier: Apache-2.0
"""The rule of a drafter's node, a target verifier with a draft's checkpoint: it drafts, and decides nothing.

A request has a whole chunk's tokens, of which some are known. The reply's rule data have the likeliest token
at each place and its probability, given the request's tokens before it.
"""

from __future__ import annotations

import numpy as np

from adahi_lab.papers.cosine.collaboration import Opinion
from adahi_lab.papers.tokens.token_sequence import TokenDistribution, check_tokens
from adahi_ros.acceptance.interface import Acceptance, Verdict
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Signature

NAME = "next_token"
REPLY = np.dtype([("token", "<u2"), ("confidence", "<f4")])


class NextToken(Acceptance):
    """Replies with what the draft would draft at each place of a chunk."""

    needs_codes = True

    def check_target(self, target: Signature, fingerprint: str) -> None:
        """See `Acceptance`."""
        check_tokens(target)

    def verify(self, draft: Proposal, target: Proposal, draws: np.ndarray) -> Verdict:
        """See `Acceptance`; nothing is drawn.

        Raises:
            ValueError: a request has no codes.
        """
        sent, drafted = draft.distribution, target.distribution
        if sent is None or not isinstance(drafted, TokenDistribution):
            raise ValueError("codes: none, must be those of a chunk for the rule next_token")
        found = np.zeros(drafted.probabilities.shape[:2], dtype=REPLY)
        found["token"] = drafted.probabilities.argmax(axis=-1)
        found["confidence"] = drafted.probabilities.max(axis=-1)
        nothing = np.zeros(target.actions.shape, dtype=np.float32)
        asks = tuple(row.tobytes() for row in found)
        return Verdict(nothing, np.zeros(sent.codes.shape, dtype=bool), asks=asks)


def opinion_of(rule_data: bytes, place: int, length: int, entries: int) -> Opinion:
    """Return the opinion in a reply about a place of a chunk.

    Args:
        rule_data: of the reply.
        place: from 0 on.
        length: N, tokens of a chunk.
        entries: K, tokens that there are.

    Raises:
        ValueError: it has another size, an unknown token, or no probability.
    """
    if len(rule_data) != length * REPLY.itemsize:
        raise ValueError(f"rule_data: {len(rule_data)} bytes, must be {length * REPLY.itemsize}")
    opinion = Opinion(*np.frombuffer(rule_data, dtype=REPLY)[place].tolist())
    if not (opinion.token < entries and 0.0 <= opinion.confidence <= 1.0):
        raise ValueError(f"rule_data: {opinion}, must be a token below {entries} and a probability")
    return opinion
