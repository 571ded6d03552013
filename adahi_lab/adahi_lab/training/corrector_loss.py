# SPDX-License-Identifier: Apache-2.0
"""The loss of a corrector."""

from __future__ import annotations

import torch
from torch import Tensor


def corrector_loss(correction: Tensor, log_variance: Tensor, wanted: Tensor, beta: float = 0.0) -> Tensor:
    """Gaussian likelihood of the wanted corrections (B, A) plus half their mean absolute error.

    Args:
        correction: (B, A).
        log_variance: (B,).
        wanted: (B, A).
        beta: the likelihood of an example counts by its variance to this power. The plain likelihood, 0,
            gives up what is hard to foresee; at 1 corrections are learned as by least squares (Seitzer et
            al., "On the Pitfalls of Heteroscedastic Uncertainty Estimation", ICLR 2022).
    """
    error, variance = wanted - correction, log_variance.exp()
    likelihood = 0.5 * (error.square().mean(dim=1) / variance + log_variance)
    return (variance.detach() ** beta * likelihood).mean() + 0.5 * error.abs().mean()


def weights_count(network: torch.nn.Module) -> int:
    """Return the number of trainable weights."""
    return sum(weight.numel() for weight in network.parameters())
