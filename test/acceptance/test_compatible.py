from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_ros.acceptance.interface import codes_differ
from adahi_ros.acceptance.registry import ACCEPTANCES
from adahi_ros.acceptance.replace import Replace
from adahi_ros.core.proposal import CodeDistribution, Proposal
from adahi_ros.core.signature import CodeSpace, Feature, Signature

CODES = CodeSpace("a", 2, 16, sequential=True)
DRAFT = Signature(6, 1, 2, (Feature("observation", 5),), (Feature("goal", 2),), CODES, parameters=10)


@pytest.mark.parametrize("rule", ACCEPTANCES)
def test_what_a_policy_reads_and_how_large_it_is_keeps_no_one_apart(rule: str) -> None:
    target = replace(DRAFT, history=3, features=(Feature("image", 9),), conditions=(), parameters=9)
    assert ACCEPTANCES[rule]().compatible(DRAFT, target) is None


@pytest.mark.parametrize(
    ("field", "target"),
    [
        ("tokenizer_fingerprint", replace(DRAFT, codes=replace(CODES, fingerprint="99"))),
        ("codebooks", replace(DRAFT, codes=replace(CODES, codebooks=99))),
        ("codebook_size", replace(DRAFT, codes=replace(CODES, codebook_size=99))),
        ("horizon", replace(DRAFT, horizon=99)),
        ("action_dim", replace(DRAFT, action_dim=99)),
    ],
)
def test_speculative_sampling_wants_codes_that_mean_the_same(field: str, target: Signature) -> None:
    ours = {"tokenizer_fingerprint": "a", "codebooks": 2, "codebook_size": 16, "horizon": 1, "action_dim": 2}
    fault = ACCEPTANCES["speculative"]().compatible(DRAFT, target)
    assert fault == f"{field}: the draft's is {ours[field]}, the target's 99; must be the same"
    without = None if field != "action_dim" else fault
    assert ACCEPTANCES["replace"]().compatible(DRAFT, target) == without


def test_without_a_tokenizer_there_is_nothing_to_accept() -> None:
    bare = replace(DRAFT, codes=None)
    assert codes_differ(DRAFT, bare) == (
        "codes: the draft's is a tokenizer, the target's none; must be the same"
    )
    assert codes_differ(bare, DRAFT) == (
        "codes: the draft's is none, the target's a tokenizer; must be the same"
    )
    assert codes_differ(bare, bare) == "codes: neither has a tokenizer"
    assert ACCEPTANCES["replace"]().compatible(bare, bare) is None


@pytest.mark.parametrize("rule", sorted(set(ACCEPTANCES) - {"likeliest"}))  # its robots execute plans
def test_what_a_rule_needs_keeps_apart_those_who_lack_it(rule: str) -> None:
    made = ACCEPTANCES[rule]()
    assert made.needs_codes == (made.compatible(DRAFT, replace(DRAFT, codes=None)) is not None)


def test_replacing_takes_the_targets_plan_and_names_codes_that_match() -> None:
    def drawn(codes: list[int]) -> CodeDistribution:
        return CodeDistribution(np.ones((1, 2, 4), np.float32), np.array([codes]), lambda codes: codes)

    actions = np.arange(6, dtype=np.float32).reshape(1, 3, 2)
    draws = np.zeros((1, 2, 2))
    nothing = Proposal(np.zeros((1, 0, 2), np.float32))
    found = Replace().verify(
        Proposal(nothing.actions, drawn([1, 2])), Proposal(actions, drawn([1, 3])), draws
    )
    np.testing.assert_array_equal(found.actions, actions)
    assert found.accepted.tolist() == [[True, False]]
    for draft, target in (
        (nothing, Proposal(actions, drawn([1, 3]))),
        (Proposal(nothing.actions, drawn([1, 2])), Proposal(actions)),
    ):
        found = Replace().verify(draft, target, draws)
        np.testing.assert_array_equal(found.actions, actions)
        assert found.accepted.shape == (1, 0)
