# SPDX-License-Identifier: Apache-2.0
"""Likeliest: of a run of drafted tokens, those that the target itself finds likeliest are kept, by one pass.

The reply to a run has the kept tokens and the target's next one; the robot sends further runs
(`adahi_lab.papers.pipeinfer.pipelined_transport`). Without drafted tokens it is the target's own chunk.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from adahi_lab.papers.tokens.token_sequence import TokenDistribution, check_tokens
from adahi_ros.acceptance.interface import Acceptance, Verdict, difference
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Signature


class Likeliest(Acceptance):
    """Keeps tokens up to the first that is not the target's likeliest one, and adds that one."""

    needs_codes = True
    of_plans = True
    robot_parameters = MappingProxyType({"verification.transport.name": "pipelined"})

    def check_target(self, target: Signature, fingerprint: str) -> None:
        """See `Acceptance`."""
        check_tokens(target)

    def compatible(self, draft: Signature, target: Signature) -> str | None:
        """See `Acceptance`; a request with codes of another tokenizer is refused."""
        return difference("action_dim", draft.action_dim, target.action_dim)

    def verify(self, draft: Proposal, target: Proposal, draws: np.ndarray) -> Verdict:
        """See `Acceptance`; nothing is drawn. Actions of tokens after the added one mean nothing."""
        ours, theirs = draft.distribution, target.distribution
        if ours is None or not isinstance(theirs, TokenDistribution):
            return Verdict(target.actions, np.zeros((len(target.actions), 0), dtype=bool))
        own = theirs.probabilities.argmax(axis=-1)
        count = ours.codes.shape[1]
        kept = np.logical_and.accumulate(ours.codes == own[:, :count], axis=1)
        tokens = np.zeros((len(own), target.actions.shape[1] * target.actions.shape[2]), dtype=np.int64)
        tokens[:, : own.shape[1]] = own
        return Verdict(theirs.actions_of(tokens), kept)
