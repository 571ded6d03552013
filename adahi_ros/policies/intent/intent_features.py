# SPDX-License-Identifier: Apache-2.0
"""Inputs of the encoder of intents, and of the network that acts by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_ros.policies.intent.intent_checkpoint import EncoderConfig

LARGEST = 127
"""An intent's numbers are from -127 to 127, int8."""


@dataclass(frozen=True)
class RepliesView:
    """The newest replies of B robots, the newest first.

    Attributes:
        observation: (B, M, O), when each reply was requested.
        plan: (B, M, T, A) float32.
        requested_at: (B, M), the control step of each request; negative where there is no reply.
        extra: (B, E), what only the target reads at the newest request.
    """

    observation: np.ndarray
    plan: np.ndarray
    requested_at: np.ndarray
    extra: np.ndarray


def reply_features(view: RepliesView, sizes: EncoderConfig) -> np.ndarray:
    """Return an encoder's input, (B, M * (2 + O + T * A) + E) float32.

    Of each reply: 1 for a reply and 0 for none, how long before the newest it was requested, in horizons, the
    observation at the request and the plan; zeros where there is none.
    """
    there = view.requested_at >= 0
    before = (view.requested_at[:, :1] - view.requested_at) / sizes.horizon
    batch, replies = there.shape
    parts = [there[..., None], before[..., None], view.observation, view.plan.reshape(batch, replies, -1)]
    each = np.concatenate(parts, axis=2) * there[..., None]
    return np.concatenate([each.reshape(batch, -1), view.extra], axis=1).astype(np.float32)


def acting_features(observation: np.ndarray, previous: np.ndarray, intent: np.ndarray) -> np.ndarray:
    """Return the acting network's input, (B, 2 O + Z) float32.

    Args:
        observation: (B, O), the newest.
        previous: (B, O), one step before; at the first step the newest.
        intent: (B, Z), from -127 to 127.
    """
    parts = [observation, observation - previous, intent / LARGEST]
    return np.concatenate(parts, axis=1).astype(np.float32)
