# SPDX-License-Identifier: Apache-2.0
"""The acceptance rules, by name."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

from adahi_ros.acceptance.distance import Distance
from adahi_ros.acceptance.interface import Acceptance
from adahi_ros.acceptance.prefix import Prefix
from adahi_ros.acceptance.replace import Replace
from adahi_ros.acceptance.semantic import Semantic
from adahi_ros.acceptance.speculative import Speculative
from adahi_ros.core.registry import Registry
from adahi_ros.core.signature import Signature

ACCEPTANCES: Registry[type[Acceptance]] = Registry(
    "adahi_ros.acceptances",
    {
        "speculative": Speculative,
        "replace": Replace,
        "distance": Distance,
        "prefix": Prefix,
        "semantic": Semantic,
    },
)


BY_TARGET = "by_target"
"""In the place of a rule: speculative for a target that speaks an action tokenizer, else replace."""


def rule_for(name: str, target: Signature) -> str:
    """Return the name of the rule for a target.

    Args:
        name: a key of `ACCEPTANCES`, or `BY_TARGET`.
        target: what it proposes.

    Raises:
        ValueError: there is no such rule, or it is about codes, and the target has none.
    """
    if name == BY_TARGET:
        return "replace" if target.codes is None else "speculative"
    if name not in ACCEPTANCES:
        raise ValueError(f"rule: {name!r}, must be one of {', '.join(sorted(ACCEPTANCES))}")
    if ACCEPTANCES[name].needs_codes and target.codes is None:
        raise ValueError(
            f"rule: {name!r}, must be {BY_TARGET}, replace, or another that is not about codes, for a target "
            "without a tokenizer"
        )
    return name


def keeps_drafts(rule: str) -> bool:
    """Whether by this rule a draft that is accepted stands as it is, so that nobody need say it again."""
    return getattr(ACCEPTANCES[rule], "keeps_drafts", False)


def made(rule: str, arguments: Mapping[str, Any]) -> Acceptance:
    """Make a rule, a key of `ACCEPTANCES`.

    Raises:
        ValueError: an argument is not one of its, or cannot be; names it.
    """
    make = ACCEPTANCES[rule]
    try:
        signature(make).bind(**arguments)
        return make(**arguments)
    except TypeError as error:  # also of a text where a number was wanted
        allowed = ", ".join(signature(make).parameters) or "none"
        raise ValueError(f"rule {rule}: {error}; its arguments are: {allowed}") from error
