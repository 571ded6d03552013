"""A gate that no robot can have: it knows how likely the target rejects the codes that were drafted.

It is no upper bound of what a gate can win: it knows whether the target would reject, not how much worse the
draft's action is, nor what comes after. On the swarm ADAHI's gate succeeds more often at the same rate.
"""

from __future__ import annotations

import numpy as np

from adahi_ros.acceptance.speculative import rejection_probability
from adahi_ros.gates.context import GateContext
from adahi_ros.gates.scores import Score
from adahi_ros.policy.distribution import softmax
from adahi_ros.policy.interface import Policy


def oracle_score(target: Policy, temperature: float = 1.0) -> Score:
    """Return the score 1 - prod min(1, q/p): the probability that not every code is kept."""

    def score(evidence: GateContext) -> np.ndarray:
        q = softmax(target.predict(evidence.windows, evidence.goals).logits, temperature)
        draft = evidence.draft
        kept = 1.0 - rejection_probability(draft.probabilities, q, draft.codes)
        rejected: np.ndarray = 1.0 - kept.prod(axis=-1)
        return rejected

    return score
