# SPDX-License-Identifier: Apache-2.0
"""Networks between two: as much of what was learned as is allowed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import torch
from torch import nn

M = TypeVar("M", bound=nn.Module)
SHARES = (1.0, 0.5, 0.25, 0.125)  # of the way to what was learned


class Taken(NamedTuple):
    """How far it went.

    Attributes:
        share: of the way; 0 for nothing.
        learned: loss of the whole way.
        after: loss of what was taken.
    """

    share: float
    learned: float
    after: float


def interpolated(module: M, other: M, share: float) -> M:
    """Return a module whose weights are a share of the way from one to another."""
    between = copy.deepcopy(other)
    theirs = other.state_dict()
    between.load_state_dict(
        {name: torch.lerp(value, theirs[name], share) for name, value in module.state_dict().items()}
    )
    return between


def within(module: M, learned: M, loss_of: Callable[[M], float], bound: float) -> tuple[M, Taken]:
    """Go as far from a module to another as a loss allows: the whole way, a half, a quarter, an eighth.

    Weights in between keep more of the first (Wortsman et al., "Robust fine-tuning of zero-shot models",
    2022).

    Args:
        module: where it begins; what is returned where no share is allowed.
        learned: where it would go.
        loss_of: returns the loss of a module.
        bound: that this may have.
    """
    whole = 0.0
    for share in SHARES:
        between = learned if share == 1.0 else interpolated(module, learned, share)
        loss = loss_of(between)
        whole = loss if share == 1.0 else whole
        if loss <= bound:
            return between, Taken(share, whole, loss)
    return module, Taken(0.0, whole, loss_of(module))
