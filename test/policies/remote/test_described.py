"""What the YAML files of targets say: read, checked, and completed by what the policy says of itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adahi_ros.core.schema import checked
from adahi_ros.core.signature import GOAL, Feature, ImageInput
from adahi_ros.policies.remote.described import DescribedTarget, PolicyMetadata
from adahi_ros.policies.remote.described import described as described_by
from adahi_ros.policies.remote.target_fields import TargetFile

OWN = PolicyMetadata(
    history=2,
    horizon=8,
    action_dim=3,
    state={"observation.state": 5},
    images={"observation.images.top": (4, 6)},
    instruction=True,
    action_scale=np.full(3, 0.5),
)


def described(values: dict[str, Any], own: PolicyMetadata | None = None) -> DescribedTarget:
    return described_by(checked(TargetFile, values), own)


def whole() -> dict[str, Any]:
    """Return what a file says of a policy that says nothing itself."""
    return {
        "history": 2,
        "horizon": 8,
        "rate_hz": 10,
        "action_names": ["x", "y", "z"],
        "state": {
            "observation.state": {"size": 2, "entries": ["position.a", "position.b"], "as": "state"},
            "observation.gripper": {"size": 1, "as": "state"},
            "goal": {"size": 2, "as": "state"},
        },
        "images": {"observation.images.front": {"size": [4, 6], "padded": True, "as": "image"}},
        "instruction": {"as": "prompt"},
        "action_range": {"low": [-1, -1, -1], "high": [1, 1, 2]},
        "action_scale": [0.1, 0.2, 0.3],
    }


def test_what_has_one_name_of_the_policys_is_joined_in_the_files_order() -> None:
    found = described(whole())
    seen = found.signature.observations(
        np.arange(12.0, dtype=np.float32).reshape(2, 2, 3), np.array([[7, 8], [9, 10]], dtype=np.float32)
    )
    state = found.state(seen)
    assert state.keys() == {"state"}
    assert state["state"].dtype == np.float32
    np.testing.assert_array_equal(state["state"][1], [[6, 7, 8, 9, 10], [9, 10, 11, 9, 10]])


def test_what_the_policy_says_of_itself_a_file_may_leave_out() -> None:
    found = described({}, OWN)
    assert found.signature.features == (Feature("observation.state", 5),)
    assert found.signature.images == (ImageInput("observation.images.top", 4, 6),)
    assert (found.signature.history, found.signature.horizon, found.signature.action_dim) == (2, 8, 3)
    assert found.signature.instruction
    assert found.prompt == "task"
    np.testing.assert_array_equal(found.action_scale, np.full(3, 0.5, dtype=np.float32))
    assert found.action_range.sound(np.full((1, 8, 3), 1e30)).all()
    assert not found.action_range.sound(np.full((1, 8, 3), np.nan)).any()


def test_a_plan_may_be_cut() -> None:
    assert described({"horizon": 3}, OWN).signature.horizon == 3


def test_a_sentence_that_is_always_the_same_is_required_of_no_robot() -> None:
    found = described({"instruction": {"always": "open the door"}}, OWN)
    assert not found.signature.instruction
    assert found.sentences(found.signature.nothing(2), 2) == ("open the door",) * 2
    given = described({}, OWN)
    assert given.sentences(given.signature.nothing(2), 2) == ("", "")


ALONE = [
    ("colour", "red", r"colour: unknown, must be one of history, "),
    ("history", 0, r"history: 0, must be an integer from 1 to"),
    ("horizon", None, r"horizon: nothing, must be"),
    ("rate_hz", -1, r"rate_hz: -1, must be a number above 0"),
    ("action_names", [], r"action_names: \[\], must be a list of names, from 1 to"),
    ("action_names", ["x", "x"], r"action_names: \[.*\], must be .* from 1 to \d+ different names"),
    ("action_names", "xyz", r"action_names: 'xyz', must be a list of names"),
    ("state", {}, r"state: nothing that is observed"),
    ("state", {"goal": {"size": 2}}, r"state: nothing that is observed"),
    ("state", {"a": {"size": 0}}, r"state.a.size: 0, must be an integer"),
    ("state", {"a": {}}, r"state.a.size: missing, must be an integer"),
    ("state", {"a": {"size": 2, "entries": ["x"]}}, r"state.a.entries: 1 names, must be 2"),
    ("state", {"a": {"size": 2, "like": "x"}}, r"state.a.like: unknown"),
    ("state", {"a": {"size": 2, "as": 1}}, r"state.a.as: 1, must be a mapping"),
    ("images", {"a": {}}, r"images.a.size: missing, must be \[rows, columns\]"),
    ("images", {"a": {"size": [4, 0]}}, r"images.a.size\[1\]: 0, must be an integer"),
    ("images", {n: {"size": [4, 6], "as": "x"} for n in "ab"}, r"images.b.as: 'x', is another image's"),
    ("images", {"observation.state": {"size": [4, 6]}}, r"images.observation.state: is in state too"),
    ("instruction", "open", r"instruction: 'open', must be a mapping"),
    ("action_range", {"low": [0, 0, 0]}, r"action_range.high: missing"),
    ("action_range", {"low": [0, 0, 0], "high": [1, 1, 0]}, r"action_range.low\[2\]: 0, must be below high"),
    (
        "action_range",
        {"low": [0, 0, "a"], "high": [1, 1, 0]},
        r"action_range.low\[2\]: 'a', must be a number",
    ),
    ("action_scale", [1, 0, 1], r"action_scale\[1\]: 0, must be a number above 0"),
    ("action_scale", [1, 1], r"action_scale: \[1.0, 1.0\], must be a list of 3 numbers"),
]


@pytest.mark.parametrize(("field", "value", "reason"), ALONE)
def test_a_field_that_cannot_be_used_is_named(field: str, value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=rf"^{reason}"):
        described({**whole(), field: value})


@pytest.mark.parametrize("field", ["horizon", "action_names", "state"])
def test_what_is_never_reported_is_missed(field: str) -> None:
    values = whole()
    del values[field]
    with pytest.raises(ValueError, match=f"^{field}: nothing"):
        described(values)


CONTRADICTIONS = [
    ("history", 1, r"history: 1, must be 2, what the policy reads"),
    ("horizon", 9, r"horizon: 9, must be an integer from 1 to 8"),
    ("action_names", ["x"], r"action_names: 1 names, must be 3"),
    ("state", {"a": {"size": 5}}, r"state: a of 5 numbers, must be what the policy reads"),
    ("state", {"observation.state": {"size": 4}}, r"state: observation.state of 4 numbers, must be .* of 5"),
    ("state", {}, r"state: observation.state of 5 numbers is read by the policy, must be there"),
    ("images", {}, r"images: observation.images.top is read by the policy, must be there"),
    ("images", {"a": {"size": [4, 6]}}, r"images.a.as: 'a', must be one of observation.images.top"),
    ("images", {"observation.images.top": {"size": [4, 4]}}, r".*size: \[4, 4\], must be \[4, 6\]"),
    ("instruction", False, r"instruction: False, must be true, "),
]


@pytest.mark.parametrize(("field", "value", "reason"), CONTRADICTIONS)
def test_a_file_that_contradicts_the_policy_is_refused(field: str, value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}"):
        described({field: value}, OWN)


def test_a_sentence_to_a_policy_that_reads_none_is_refused() -> None:
    mute = PolicyMetadata(1, 1, 1, {"observation.state": 1})
    with pytest.raises(ValueError, match=r"^instruction: True, must be false"):
        described({"instruction": True}, mute)


def test_what_is_several_to_the_policy_is_taken_apart() -> None:
    values = whole()
    values["state"] = {
        "observation.state": {"size": 3, "as": {"arm": 2, "gripper": 1}},
        "goal": {"as": {"arm": 1, "place": 2}},
    }
    found = described(values)
    assert (found.signature.features, found.signature.conditions) == (
        (Feature("observation.state", 3),),
        (Feature(GOAL, 3),),
    )
    seen = found.signature.observations(
        np.arange(12, dtype=np.float32).reshape(2, 2, 3), np.array([[7, 8, 9], [10, 11, 12]], np.float32)
    )
    state = found.state(seen)
    np.testing.assert_array_equal(state["arm"], [[[0, 1, 7], [3, 4, 7]], [[6, 7, 10], [9, 10, 10]]])
    np.testing.assert_array_equal(state["gripper"], [[[2], [5]], [[8], [11]]])
    np.testing.assert_array_equal(state["place"][0], [[8, 9], [8, 9]])


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"size": 3, "as": {"arm": 2}}, "state.a.as: 2 in all, must be 3, its size"),
        ({"as": {"arm": 0}}, "state.a.as.arm: 0, must be an integer"),
        ({"size": 3, "as": {}}, "state.a.as: 0 in all, must be 3"),
        ({"size": 3, "as": [2, 1]}, r"state.a.as: \[2, 1\], must be a mapping"),
    ],
)
def test_parts_that_are_not_all_of_it_are_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=rf"^{reason}"):
        described({**whole(), "state": {"a": given}})
