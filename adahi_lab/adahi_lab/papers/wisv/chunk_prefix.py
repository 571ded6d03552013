# SPDX-License-Identifier: Apache-2.0
"""Drafts chunks of tokens, executes the decided part of each, and then drafts again.

As in WISV (arXiv 2604.17701), the draft continues behind a refused token. A robot has another observation by
then: it executes what is decided, and drafts its next chunk from where that led.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_lab.papers.tokens.token_codes import BinCodec
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.papers.wisv.hidden_states import CHANNEL_BYTES, bits_bytes, packed_states
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.plan import Plan
from adahi_ros.core.proposal import UNITS, CodeDistribution, Proposal
from adahi_ros.core.registry import argument
from adahi_ros.policies.interface import Policy
from adahi_ros.proposers.interface import Proposer, ProposerContext

MOST_BYTES = 131072  # of `rule_data` in a request, which has the states


@dataclass(eq=False)
class ChunkPrefixProposer(Proposer):
    """WISV: drafts chunks of tokens; executes what is decided, then drafts again.

    Its gate is `never`: between, there is no draft to send. Its rule is `hidden_states`.

    Raises:
        ValueError: the draft does not emit a token for each entry of an action, or its hidden states do not
            fit into a request.
    """

    needs_plan = True
    drafts_plans = True

    policy: Policy
    first: str = argument("all", "States sent at first; those of mismatches follow", choices=("all", "none"))

    def __post_init__(self) -> None:
        policy = self.policy
        if not isinstance(policy, TokenPolicy) or not isinstance(policy.codec, BinCodec):
            found = policy.codec.kind if isinstance(policy, TokenPolicy) else type(policy).__name__
            raise ValueError(
                f"checkpoint: {found}, must emit tokens, one for each entry of an action, for the "
                "proposer chunk_prefix"
            )
        tokens = policy.codec.codebooks
        allowed = (MOST_BYTES - CHANNEL_BYTES - bits_bytes(tokens)) // tokens
        if policy.hidden_size > allowed:
            raise ValueError(
                f"checkpoint: hidden states of {policy.hidden_size} numbers, must be at most {allowed} for "
                f"{tokens} tokens in a request"
            )
        self._policy, self._codec = policy, policy.codec
        self.held: Plan = self._nothing(1)

    def _nothing(self, batch: int) -> Plan:
        return Plan(batch, self._codec.action_dim)

    def propose(self, context: ProposerContext) -> Proposal | None:
        """See `Proposer`; None where all robots have decided actions."""
        batch, codec = len(context.draws), self._codec
        if context.begins or len(self.held.left(context.step)) != batch:
            self.held = self._nothing(batch)
        self.held.forget_before(context.step)
        rows = np.flatnonzero(self.held.left(context.step) == 0)
        if not rows.size:
            return None
        made = self._policy.likeliest(context.observations.rows(rows), codec.codebooks)

        def spread(values: np.ndarray) -> np.ndarray:
            every = np.zeros((batch, *values.shape[1:]), dtype=values.dtype)
            every[rows] = values
            return every

        codes, states = spread(made.codes), spread(packed_states(made.hidden))
        actions = self.held.ahead(context.step, codec.chunk_length)
        actions[rows] = np.where(made.finite[:, None, None], codec.decode(made.codes), np.float32(np.nan))
        sure = np.eye(codec.codebook_size, dtype=np.uint16)[codes] * np.uint16(UNITS)
        sent = np.full(codes.shape, self.first == "all")
        drawn = CodeDistribution(sure.astype(np.float32) / UNITS, codes, codec.decode, sure)
        channel = np.full((batch, 2), np.nan, dtype=np.float32)  # a robot adds what it knows
        return Proposal(actions, drawn, data={"states": states, "sent": sent, "channel": channel})

    def observe_reply(self, requested_at: int, verdict: Verdict, rows: np.ndarray) -> None:
        """See `Proposer`; keeps the actions up to the one with the first token that is not accepted."""
        kept = np.logical_and.accumulate(verdict.accepted, axis=1).sum(axis=1)
        decided = np.minimum(kept // self._codec.action_dim + 1, self._codec.chunk_length)
        for index, row in enumerate(rows):
            actions = verdict.actions[index, : decided[index]]
            self.held.splice(actions[None], requested_at, requested_at, np.array([row]))
