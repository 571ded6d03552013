# SPDX-License-Identifier: Apache-2.0
"""What anyone may do who reaches the verifier, as ROS 2's environment variables have it."""

from __future__ import annotations

from collections.abc import Mapping

ENABLED = ("ROS_SECURITY_ENABLE", "true")
ENFORCED = ("ROS_SECURITY_STRATEGY", "Enforce")
MORE = "; docs/how_to/secure.md says how to change that"


def exposure(environment: Mapping[str, str]) -> str:
    """Return what there is to say of a verifier that is not protected; nothing of one that is."""
    for (name, needed), so in (
        (
            ENABLED,
            "whoever reaches this domain may ask, answer in this node's place and read what robots send",
        ),
        (ENFORCED, "a node that finds no keys starts without security"),
    ):
        value = environment.get(name, "")
        if value != needed:
            return f"{name}: {value!r}, not {needed!r}: {so}{MORE}"
    return ""
