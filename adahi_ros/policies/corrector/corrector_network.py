# SPDX-License-Identifier: Apache-2.0
"""The corrector's network: predicts a correction of the planned action, and its own error.

After A2C2 (arXiv 2509.23224), where a head corrects an action chunk at every step; here with 2,000 weights
and a predicted variance.
"""

from __future__ import annotations

from torch import Tensor, nn

LOG_VARIANCE = (-8.0, 4.0)
FURTHEST = 5.0  # standard deviations from the mean at which inputs are clipped


class CorrectorNetwork(nn.Module):
    """Takes features (B, F), gives corrections (B, A) in action scales and their log variance (B,).

    Args:
        action_dim: A.
        hidden: see `CorrectorConfig`.
        mean, std: (F,) of the features that it was trained on.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, action_dim: int, hidden: int, mean: Tensor, std: Tensor) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(len(mean), hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, action_dim + 1),
        )
        self.register_buffer("mean", mean.float())
        self.register_buffer("std", std.float())

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """See the class."""
        scaled = ((features - self.mean) / self.std).clamp(-FURTHEST, FURTHEST)
        out = self.layers(scaled)
        return out[:, :-1], out[:, -1].clamp(*LOG_VARIANCE)
