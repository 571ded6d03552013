# SPDX-License-Identifier: Apache-2.0
"""The next action by tokens, drafted greedily, or from an action that is known already."""

from __future__ import annotations

import numpy as np

from adahi_lab.papers.tokens.token_codes import BinCodec
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_ros.core.proposal import UNITS, CodeDistribution, Proposal
from adahi_ros.core.signature import Observations
from adahi_ros.policies.interface import Policy


class ActionDrafter:
    """Drafts the tokens of one action, one for each entry.

    Attributes:
        width: (A,) float32 in action units, of a bin.

    Args:
        policy: the draft.
        proposer: named in the error.

    Raises:
        ValueError: the draft does not emit a token for each entry of an action.
    """

    def __init__(self, policy: Policy, proposer: str) -> None:
        if not isinstance(policy, TokenPolicy) or not isinstance(policy.codec, BinCodec):
            found = policy.codec.kind if isinstance(policy, TokenPolicy) else type(policy).__name__
            raise ValueError(
                f"checkpoint: {found}, must emit tokens, one for each entry of an action, for the "
                f"proposer {proposer}"
            )
        self._policy, self._codec = policy, policy.codec
        self.width = (self._codec.high - self._codec.low) / self._codec.codebook_size

    def draft(self, observations: Observations) -> tuple[np.ndarray, np.ndarray]:
        """Return the likeliest tokens (B, A) int64, and their actions (B, A).

        Actions are NaN for a state that is not finite.
        """
        made = self._policy.likeliest(observations, self._codec.action_dim)
        return made.codes, np.where(made.finite[:, None], self.action_of(made.codes), np.float32(np.nan))

    def bins(self, actions: np.ndarray) -> np.ndarray:
        """Return actions (B, A) in bins, not rounded."""
        places: np.ndarray = (actions - self._codec.low) / self.width - 0.5
        return places

    def clipped(self, places: np.ndarray) -> np.ndarray:
        """Return the nearest tokens (B, A) int64 of places in bins."""
        codes: np.ndarray = np.clip(np.rint(places), 0, self._codec.codebook_size - 1).astype(np.int64)
        return codes

    def action_of(self, codes: np.ndarray) -> np.ndarray:
        """Return the actions (B, A) float32 of tokens (B, A)."""
        actions: np.ndarray = self._codec.values[codes, np.arange(codes.shape[1])]
        return actions

    def proposal(self, actions: np.ndarray, codes: np.ndarray) -> Proposal:
        """Return a proposal of actions (B, T, A) and tokens (B, A), each sent as certain."""
        sure = np.eye(self._codec.codebook_size, dtype=np.uint16)[codes] * np.uint16(UNITS)
        drawn = CodeDistribution(sure.astype(np.float32) / UNITS, codes, self._codec.decode, sure)
        return Proposal(actions.astype(np.float32), drawn)
