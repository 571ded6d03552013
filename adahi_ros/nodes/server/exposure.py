# SPDX-License-Identifier: Apache-2.0
"""Warns of a verifier without access protection, according to ROS 2's environment variables."""

from __future__ import annotations

from collections.abc import Mapping

ENABLED = ("ROS_SECURITY_ENABLE", "true")
ENFORCED = ("ROS_SECURITY_STRATEGY", "Enforce")
MORE = "; docs/how_to/secure.md says how to change that"


def exposure(environment: Mapping[str, str]) -> str:
    """Return a warning if the verifier is not protected; empty if it is."""
    for (name, needed), so in (
        (
            ENABLED,
            "anyone in this domain may send requests, answer instead of this node, and read robots' messages",
        ),
        (ENFORCED, "a node that finds no keys starts without security"),
    ):
        value = environment.get(name, "")
        if value != needed:
            return f"{name}: {value!r}, not {needed!r}: {so}{MORE}"
    return ""
