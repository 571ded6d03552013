# SPDX-License-Identifier: Apache-2.0
"""Signatures of policies that read flat observations and a goal."""

from __future__ import annotations

from adahi_ros.core.signature import GOAL, CodeSpace, Feature, Signature, observed_features


def flat_signature(
    history: int,
    horizon: int,
    action_dim: int,
    observation_dim: int,
    goal_dim: int = 0,
    image_dim: int = 0,
    codes: CodeSpace | None = None,
    parameters: int = 0,
) -> Signature:
    """Return the signature of a policy that reads flat observations and a goal; see `observed_features`."""
    return Signature(
        history,
        horizon,
        action_dim,
        observed_features(observation_dim, image_dim),
        (Feature(GOAL, goal_dim),) if goal_dim else (),
        codes,
        parameters=parameters,
    )
