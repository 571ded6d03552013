# SPDX-License-Identifier: Apache-2.0
"""A network that turns noise into a plan: flow matching over whole chunks of actions.

    window, goal ─▶ transformer ─▶ feature ─┐
    noise (T x A) ─▶ x_0 ─▶ x_1/S ─▶ ... ─▶ x_1 = plan      S steps along the velocity v(x, time, feature)

Codes that are drawn independently make plans with parts that do not fit together; here a plan is one
draw. Lipman et al., "Flow Matching for Generative Modeling" (2023), with straight paths from noise to data;
for action chunks as in pi0 (Black et al., 2024).

Known actions of a plan, such as those executed before the plan arrives, are inserted at every point of the
path, so that the rest fits them: inpainting as in RePaint (Lugmayr et al., 2022), without going back.
Real-time chunking (Black et al., arXiv 2506.07339) guides by gradients instead: it fits the known actions
less closely, and needs a gradient in the exported network.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from adahi_ros.policies.flow.flow_checkpoint import FlowConfig
from adahi_ros.policies.networks.transformer import InputMoments, ObservationTransformer

FREQUENCIES = 4  # of the time's embedding, octaves from half a period on


class _VelocityBlock(nn.Module):
    """A residual layer with its input scaled and shifted by the condition (FiLM; Perez et al., 2018)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.film = nn.Linear(width, 2 * width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, hidden: Tensor, condition: Tensor) -> Tensor:
        scale, shift = self.film(condition).chunk(2, dim=-1)
        out: Tensor = hidden + self.mlp(self.norm(hidden) * (1.0 + scale) + shift)
        return out


class FlowNetwork(ObservationTransformer):
    """The network; takes observations and noise, gives plans in the task's units.

    Args:
        config: its sizes.
        moments: of what it reads.
        action_mean, action_scale: (A,) of the demonstrations.
        action_low, action_high: (A,), the range of the demonstrations.
    """

    action_mean: Tensor
    action_scale: Tensor
    action_low: Tensor
    action_high: Tensor
    frequencies: Tensor

    def __init__(
        self,
        config: FlowConfig,
        moments: InputMoments,
        action_mean: Tensor,
        action_scale: Tensor,
        action_low: Tensor,
        action_high: Tensor,
    ) -> None:
        super().__init__(config, moments)
        self.config = config
        size, width = config.horizon * config.action_dim, config.head_width
        self.plan_in = nn.Linear(size, width)
        self.condition_in = nn.Linear(config.width + 2 * FREQUENCIES, width)
        self.velocity_blocks = nn.ModuleList(_VelocityBlock(width) for _ in range(config.head_layers))
        self.velocity_norm = nn.LayerNorm(width)
        self.velocity_out = nn.Linear(width, size)
        nn.init.zeros_(self.velocity_out.weight)
        nn.init.zeros_(self.velocity_out.bias)
        frequencies = math.pi * 2.0 ** torch.arange(FREQUENCIES)
        self.register_buffer("frequencies", frequencies, persistent=False)
        for name, value in (
            ("action_mean", action_mean),
            ("action_scale", action_scale),
            ("action_low", action_low),
            ("action_high", action_high),
        ):
            self.register_buffer(name, value.float())

    def scaled(self, plans: Tensor) -> Tensor:
        """Return plans (..., T, A) in units of the action scale, flat (..., T * A)."""
        return ((plans - self.action_mean) / self.action_scale).flatten(-2)

    def velocity(self, features: Tensor, plans: Tensor, time: Tensor) -> Tensor:
        """Return the velocities (..., T * A) of scaled plans (..., T * A) at a time (..., 1) from 0 to 1."""
        angles = time * self.frequencies
        inputs = torch.cat([features, angles.sin(), angles.cos()], dim=-1)
        condition = nn.functional.gelu(self.condition_in(inputs))
        hidden = self.plan_in(plans)
        for block in self.velocity_blocks:
            hidden = block(hidden, condition)
        velocity: Tensor = self.velocity_out(self.velocity_norm(hidden))
        return velocity

    def forward(self, windows: Tensor, goals: Tensor, noise: Tensor, known: Tensor) -> Tensor:
        """Make plans.

        Args:
            windows: (B, H, O).
            goals: (B, G).
            noise: (B, T * A), standard normal.
            known: (B, T, A), fixed actions of the plans; NaN where free.

        Returns:
            (B, T, A).
        """
        features, steps = self.features(windows, goals)[:, -1], self.config.steps
        start, end = noise * self.config.noise, self.scaled(known)
        free, plans = end.isnan(), start
        for step in range(steps):
            time = step / steps
            plans = torch.where(free, plans, (1.0 - time) * start + time * end)
            plans = plans + self.velocity(features, plans, torch.full_like(plans[:, :1], time)) / steps
        shape = (self.config.horizon, self.config.action_dim)
        made = plans.unflatten(-1, shape) * self.action_scale + self.action_mean
        if self.config.is_regression:
            made = made.clamp(self.action_low, self.action_high)
        return torch.where(known.isnan(), made, known)
