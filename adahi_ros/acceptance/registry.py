# SPDX-License-Identifier: Apache-2.0
"""The acceptance rules, by name; a new one is a line here, or an entry point of another package."""

from __future__ import annotations

from adahi_ros.acceptance.interface import Acceptance
from adahi_ros.core.registry import Registry
from adahi_ros.core.signature import Signature

ACCEPTANCES: Registry[type[Acceptance]] = Registry(
    "adahi_ros.acceptances",
    {
        "speculative": "adahi_ros.acceptance.speculative:Speculative",
        "replace": "adahi_ros.acceptance.replace:Replace",
    },
    Acceptance,
)


BY_TARGET = "by_target"
"""Instead of a rule: speculative for a target with an action tokenizer, else replace."""


def rule_for(name: str, target: Signature) -> str:
    """Return the name of the rule for a target.

    Args:
        name: a key of `ACCEPTANCES`, or `BY_TARGET`.
        target: its signature.

    Raises:
        ValueError: the rule does not exist, or needs codes, and the target has none.
    """
    if name == BY_TARGET:
        return "replace" if target.codes is None else "speculative"
    if name not in ACCEPTANCES:
        raise ValueError(ACCEPTANCES.refusal("rule", name))
    if ACCEPTANCES[name].needs_codes and target.codes is None:
        raise ValueError(
            f"rule: {name!r}, must be {BY_TARGET}, replace, or another that is not about codes, for a target "
            "without a tokenizer"
        )
    return name
