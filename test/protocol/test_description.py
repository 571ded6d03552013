from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest

from adahi_ros.acceptance.registry import ACCEPTANCES
from adahi_ros.core.proposal import Proposal, counted
from adahi_ros.core.signature import CodeSpace, Feature, ImageInput, Offer, Signature
from adahi_ros.protocol.description import LONGEST_HISTORY, MOST_PICTURED, Description, Wants, why_not_served
from adahi_ros.protocol.request import PROTOCOL_VERSION, sent_codes

DRAFT = Signature(3, 1, 2, (Feature("state", 5),), (), CodeSpace("a", 2, 4))
OFFERED = Offer({"state": 5, "goal": 2})
GOOD = Description("ball/target", "speculative", replace(DRAFT, history=5, conditions=(Feature("goal", 2),)))


def described(**changes: Any) -> Description:
    """A description whose signature, where it has that field, or else itself is changed."""
    own = {name: value for name, value in changes.items() if hasattr(GOOD, name)}
    others = {name: value for name, value in changes.items() if name not in own}
    return replace(GOOD, **{"signature": replace(GOOD.signature, **others), **own})


@pytest.mark.parametrize(
    "described",
    [
        GOOD,
        described(target="another"),
        described(encoder_fingerprint="feed"),
        described(history=1),
        described(history=LONGEST_HISTORY),
        described(acceptance="replace", codes=None, horizon=8),
    ],
)
def test_what_fits_is_no_mismatch(described: Description) -> None:
    assert Wants(DRAFT, OFFERED).mismatch(described) is None


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, None),
        ({"acceptance": "replace"}, None),
        ({"acceptance": "replace", "codes": None}, "codes: the draft's is a tokenizer, the target's none"),
        (
            {"acceptance": "replace", "codes": CodeSpace("b", 2, 4)},
            "tokenizer_fingerprint: the draft's is a,",
        ),
    ],
)
def test_a_robot_that_decodes_needs_a_target_with_its_codes(
    changes: dict[str, Any], fault: str | None
) -> None:
    found = Wants(DRAFT, OFFERED, decodes=True).mismatch(described(**changes))
    assert found is None if fault is None else (found or "").startswith(fault)


SEEN = (ImageInput("observation.images.front", 8, 8),)


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        ({"history": MOST_PICTURED, "images": SEEN}, None),
        ({"history": MOST_PICTURED + 1, "images": SEEN}, "8 at most where it reads images"),
        ({"history": LONGEST_HISTORY + 1}, "from 1 to 64"),
        ({"history": LONGEST_HISTORY}, None),
    ],
)
def test_a_verifier_and_a_robot_agree_on_how_much_of_the_past_there_is(
    changes: dict[str, Any], allowed: str | None
) -> None:
    target = described(**changes)
    fault = why_not_served(target.signature)
    expected = allowed and f"history: the target's is {changes['history']}, must be {allowed}"
    assert fault == expected
    offered = replace(OFFERED, images=("observation.images.front",))
    assert Wants(DRAFT, offered).mismatch(target) == expected


ONE, OTHER = "0123456789abcdef", "fedcba9876543210"


def test_other_weights_and_other_inputs_are_each_distinguished() -> None:
    one, other = described(policy_fingerprint=ONE), described(policy_fingerprint=OTHER)
    assert one.difference_from(other) == f"policy_fingerprint: {ONE}, must be {OTHER}; it has other weights"
    assert one.difference_from(one) is None
    assert one.difference_from(GOOD) is GOOD.difference_from(one) is GOOD.difference_from(GOOD) is None
    assert one.difference_from(described(policy_fingerprint=OTHER, horizon=4)) == "horizon: 1, must be 4"
    assert one.without_weights == described(policy_fingerprint=OTHER, parameters=7).without_weights
    assert one.without_weights != described(policy_fingerprint=ONE, horizon=4).without_weights


def test_a_rule_that_this_robot_cannot_use_is_a_mismatch(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("broken", "no_such_module:Rule", "adahi_ros.acceptances")
    monkeypatch.setattr(ACCEPTANCES, "_added", {"broken": [broken]})
    fault = Wants(DRAFT, OFFERED).mismatch(described(acceptance="broken"))
    assert fault is not None
    assert fault.startswith("acceptance: adahi_ros.acceptances: 'broken' of no_such_module: ")


@pytest.mark.parametrize(
    ("described", "message"),
    [
        (
            described(protocol=1),
            f"protocol: the robot's is {PROTOCOL_VERSION}, the verifier's 1;",
        ),
        (
            described(acceptance="guess"),
            "acceptance: 'guess', must be one of blocks, compensated, distance, hidden_states, likeliest, "
            "next_token, replace, rest_by_target, speculative",
        ),
        (described(history=0), "history: the target's is 0, must be from 1 to 64"),
        (described(history=65), "history: the target's is 65, must be from 1 to 64"),
        (described(horizon=0), "horizon: the target's is 0, must be at least 1"),
        (described(horizon=8), "horizon: the draft's is 1, the target's 8; must be the same"),
        (described(codes=CodeSpace("b", 2, 4)), "tokenizer_fingerprint: the draft's is a, the target's b;"),
        (described(acceptance="replace", action_dim=3), "action_dim: the draft's is 2, the target's 3;"),
        (described(features=(Feature("image", 9),)), "image: is read, but the robot offers state, goal"),
        (described(features=(Feature("state", 9),)), "state: 9 numbers are read, the robot offers 5"),
        (described(instruction=True), "instruction: is read, but the robot has none"),
    ],
)
def test_the_first_thing_that_does_not_fit_is_named(described: Description, message: str) -> None:
    fault = Wants(DRAFT, OFFERED).mismatch(described)
    assert fault is not None
    assert fault.startswith(message)


def test_a_target_may_be_wanted_by_name() -> None:
    assert Wants(DRAFT, OFFERED, "ball/target").mismatch(GOOD) is None
    assert Wants(DRAFT, OFFERED, "kitchen").mismatch(GOOD) == (
        "target: the robot wants 'kitchen', the verifier has 'ball/target'"
    )


def test_an_encoder_must_be_the_robots_where_it_sends_images() -> None:
    wants = Wants(DRAFT, OFFERED, encoder_fingerprint="feed")
    assert wants.mismatch(described(encoder_fingerprint="feed")) is None
    for its in ("", "dead"):
        expected = f"encoder_fingerprint: the draft's is feed, the target's {its or 'none'}; must be the same"
        assert wants.mismatch(described(encoder_fingerprint=its)) == expected


DRAWN = sent_codes(np.array([[0, 1]]), counted(np.full((1, 2, 4), 0.25)))
DRAFTED = Proposal(np.ones((1, 1, 2), np.float32), DRAWN)


@pytest.mark.parametrize("rule", ["speculative", "replace"])
def test_codes_are_sent_where_they_mean_the_same_and_actions_elsewhere(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wants = Wants(DRAFT, OFFERED)
    sent = wants.sent_to(described(acceptance=rule)).select(DRAFTED)
    assert sent.distribution is DRAWN
    assert sent.actions.shape == (1, 0, 2)
    assert wants.sent_to(described(acceptance=rule)).select(Proposal(DRAFTED.actions)).distribution is None
    for codes in (None, CodeSpace("b", 2, 4)):
        assert wants.sent_to(described(acceptance=rule, codes=codes)).select(DRAFTED).distribution is None
    monkeypatch.setattr(ACCEPTANCES[rule], "needs_actions", True)
    assert wants.sent_to(described(acceptance=rule)).select(DRAFTED).actions is DRAFTED.actions


@pytest.mark.parametrize("rule", ["speculative", "replace"])
def test_what_is_executed_whatever_is_replied_is_sent_to_any_target(rule: str) -> None:
    wants, actions = Wants(DRAFT, OFFERED), np.arange(6, dtype=np.float32).reshape(1, 3, 2)
    sent = wants.sent_to(described(acceptance=rule)).select(Proposal(actions), ahead=2)
    np.testing.assert_array_equal(sent.actions, actions[:, :2])


@pytest.mark.parametrize("where", ["__init__", "compatible"])
def test_a_rule_of_another_package_that_raises_is_a_mismatch(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def broken(*arguments: object) -> None:
        raise KeyError("codes")

    rule = type("Rule", (type(ACCEPTANCES["replace"]()),), {where: broken})
    monkeypatch.setitem(ACCEPTANCES.shipped, "strange", rule)
    mismatch = Wants(DRAFT, OFFERED).mismatch(described(acceptance="strange"))
    assert mismatch == "acceptance: 'strange', KeyError: 'codes'"


def test_a_corrector_needs_plans_as_long_as_those_it_learned_from() -> None:
    wants = Wants(DRAFT, OFFERED, horizon=8)
    assert wants.mismatch(described(acceptance="replace", codes=None, horizon=8)) is None
    fault = wants.mismatch(described(acceptance="replace", codes=None, horizon=16))
    assert (
        fault == "horizon: the target's is 16, must be 8, that of the plans which the robot's network knows"
    )
