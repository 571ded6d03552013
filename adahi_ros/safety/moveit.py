# SPDX-License-Identifier: Apache-2.0
"""Limits of joints in MoveIt's joint_limits.yaml."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import make_dataclass
from typing import Any

from adahi_ros.core import schema
from adahi_ros.core.schema import Schema, shown
from adahi_ros.safety.entry_limits import ENDLESS, check_order, checked

KINDS = ("position", "velocity", "acceleration", "deceleration", "jerk", "effort")
KNOWN = (
    "angle_wraparound",
    *(f"has_{kind}_limits" for kind in KINDS),
    *(f"max_{kind}" for kind in KINDS),
    "min_position",
)
_Joint = make_dataclass("_Joint", [(key, object, None) for key in KNOWN], bases=(Schema,))


def moveit_limits(where: str, entry: Any) -> dict[str, float]:
    """Return the limits of one joint by quantity; jerk limits are not used.

    A limit applies where its `has_..._limits` is true, or is missing and a value is given. The lower one of
    acceleration and deceleration applies to both. Positions with `has_position_limits: false` are infinite.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """
    schema.checked(_Joint, entry, where)
    limits = {
        kind: checked(f"{where}.max_{kind}", kind, entry.get(f"max_{kind}"))
        for kind in ("velocity", "acceleration", "effort")
        if _has(where, entry, kind)
    }
    if _has(where, entry, "deceleration"):
        slower = checked(f"{where}.max_deceleration", "acceleration", entry.get("max_deceleration"))
        limits["acceleration"] = min(slower, limits.get("acceleration", math.inf))
    if _has(where, entry, "position"):
        low, high = (
            checked(f"{where}.{end}_position", "position", entry.get(f"{end}_position"))
            for end in ("min", "max")
        )
        check_order(f"{where}.position", low, high)
        limits["position_low"], limits["position_high"] = low, high
    elif "has_position_limits" in entry:
        limits |= ENDLESS
    return limits


def _has(where: str, values: Mapping[str, object], kind: str) -> bool:
    flag = f"has_{kind}_limits"
    has = values.get(flag, bool({f"max_{kind}", f"min_{kind}"} & values.keys()))
    if not isinstance(has, bool):
        raise ValueError(f"{where}.{flag}: {shown(has)}, must be true or false")
    return has
