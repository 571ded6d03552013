"""Notes what a policy is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Observations
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling

T = TypeVar("T")


def noted(policy: Policy, read: Callable[[Observations, np.ndarray, Sampling], T]) -> list[T]:
    """Return the list to which something of each call of `propose` is added."""
    notes: list[T] = []
    propose = policy.propose

    def noting(observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED) -> Proposal:
        notes.append(read(observations, draws, sampling))
        return propose(observations, draws, sampling)

    policy.propose = noting
    return notes
