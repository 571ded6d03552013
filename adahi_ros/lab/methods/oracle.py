# SPDX-License-Identifier: Apache-2.0
"""A gate that no robot can have: it knows how likely the target rejects the codes that were drafted.

It is no upper bound of what a gate can win: it knows whether the target would reject, not how much worse the
draft's action is, nor what comes after. On the swarm ADAHI's gate succeeds more often at the same rate.
"""

from __future__ import annotations

import numpy as np

from adahi_ros.acceptance.speculative import rejection_probability
from adahi_ros.core.observation_buffer import History
from adahi_ros.core.signature import GOAL
from adahi_ros.gates.interface import Gate, GateContext
from adahi_ros.lab.evaluation.rollout import World, for_target
from adahi_ros.policies.interface import Policy, Sampling


class OracleGate(Gate):
    """Scores 1 - prod min(1, q/p): the probability that not every code is kept.

    Args:
        target: that says q.
        world: tells the target's goal and shows its images, which a robot may not be told and shown.
        temperature: of its distributions.
    """

    blind = False

    def __init__(self, target: Policy, world: World, temperature: float = 1.0) -> None:
        self._target = target
        self._world = world
        self._sampling = Sampling(temperature)
        self._history = History(target.signature, 0)

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        assert context.proposal is not None
        batch = len(context.deviation)
        if context.begins:
            self._history = History(self._target.signature, batch)
        observations = self._history.push(
            {**context.observed, GOAL: self._world.goal, **for_target(self._world)}
        )
        nothing = np.zeros((batch, self._target.draws))
        ours = context.proposal.distribution
        theirs = self._target.propose(observations, nothing, self._sampling).distribution
        assert ours is not None
        assert theirs is not None
        kept = 1.0 - rejection_probability(ours.probabilities, theirs.probabilities, ours.codes)
        rejected: np.ndarray = 1.0 - kept.prod(axis=-1)
        return rejected
