# SPDX-License-Identifier: Apache-2.0
"""The check of plans that come from policies of others."""

from __future__ import annotations

from typing import Any

import numpy as np

from adahi_ros.policies.remote.described import Described
from adahi_ros.policies.remote.remote import ServerFault


def checked_plans(name: str, plans: Any, robots: int, described: Described) -> np.ndarray:
    """Return the first T actions of plans of B robots, (B, T, A) float32.

    Args:
        name: of what was answered, for messages.
        plans: a stranger's; should be (B, T or more, A) numbers.
        robots: B.
        described: what they should be.

    Raises:
        ServerFault: they are no such plans, or not finite, or beyond the action range.
    """
    signature = described.signature
    horizon, dim = signature.horizon, signature.action_dim
    shape = np.shape(plans) if isinstance(plans, np.ndarray) else None
    if shape is None or len(shape) != 3 or (shape[0], shape[2]) != (robots, dim) or shape[1] < horizon:
        found = type(plans).__name__ if shape is None else f"shape {shape}"
        raise ServerFault(f"answered {name}: {found}, must be ({robots}, {horizon} or more, {dim})")
    if plans.dtype.kind not in "fiu":
        raise ServerFault(f"answered {name}: of {plans.dtype}, must be numbers")
    with np.errstate(over="ignore"):
        plan = plans[:, :horizon].astype(np.float32)
    if not np.isfinite(plan).all():
        row, ahead, index = np.argwhere(~np.isfinite(plan))[0]
        raise ServerFault(
            f"answered {name}[{row}, {ahead}, {index}]: {plan[row, ahead, index]}, must be finite"
        )
    try:
        described.action_range.check(plan)
    except ValueError as error:
        raise ServerFault(f"answered {name}: {error}") from None
    return plan
