"""By which rule a verifier decides."""

from __future__ import annotations

import pytest

from adahi_ros.acceptance.registry import BY_TARGET, rule_for
from adahi_ros.core.signature import CodeSpace, Feature, Signature

PLANS = Signature(1, 4, 2, (Feature("observation", 3),))
CODES = Signature(1, 1, 2, (Feature("observation", 3),), codes=CodeSpace("0" * 16, 2, 8))


@pytest.mark.parametrize(
    ("given", "target", "rule"),
    [
        (BY_TARGET, CODES, "speculative"),
        (BY_TARGET, PLANS, "replace"),
        ("replace", CODES, "replace"),
        ("distance", PLANS, "distance"),
    ],
)
def test_by_default_the_target_decides(given: str, target: Signature, rule: str) -> None:
    assert rule_for(given, target) == rule


def test_one_about_codes_is_refused_of_a_target_that_has_none() -> None:
    with pytest.raises(ValueError, match=r"^rule: 'speculative', must be by_target, replace, or"):
        rule_for("speculative", PLANS)


def test_one_that_there_is_not_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match=r"^rule: 'luck', must be one of blocks, compensated, distance, hidden_states, ",
    ):
        rule_for("luck", PLANS)
