from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.core.signature import CodeSpace, Feature, ImageInput, Observations, Offer, Signature

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def parts(prefix: str, sizes: list[int]) -> tuple[Feature, ...]:
    return tuple(Feature(f"{prefix}.{index}", size) for index, size in enumerate(sizes))


@given(SIZES, st.one_of(st.just([]), SIZES), st.integers(1, 3), st.integers(1, 5))
def test_flat_vectors_and_named_features_are_the_same_there_and_back(
    features: list[int], conditions: list[int], batch: int, history: int
) -> None:
    signature = Signature(history, 1, 1, parts("seen", features), parts("told", conditions))
    draw = np.random.default_rng(0)
    window = draw.normal(size=(batch, history, sum(features))).astype(np.float32)
    condition = draw.normal(size=(batch, sum(conditions))).astype(np.float32)
    observations = signature.observations(window, condition)
    assert {name: values.shape for name, values in observations.features.items()} == {
        each.name: (batch, history, each.size) for each in signature.features
    }
    assert {name: values.shape for name, values in observations.conditions.items()} == {
        each.name: (batch, each.size) for each in signature.conditions
    }
    np.testing.assert_array_equal(signature.window(observations), window)
    np.testing.assert_array_equal(signature.condition(observations), condition)
    assert (signature.observation_dim, signature.goal_dim) == (sum(features), sum(conditions))


def test_a_vector_has_its_features_in_the_order_of_the_signature() -> None:
    signature = Signature(1, 1, 1, (Feature("b", 1), Feature("a", 2)))
    seen = Observations({"a": np.array([[[1, 2]]], np.float32), "b": np.array([[[3]]], np.float32)}, {})
    assert signature.window(seen).tolist() == [[[3, 1, 2]]]


@pytest.mark.parametrize("which", [np.array([False, True, True]), np.array([1, 2])])
def test_rows_of_observations_by_mask_and_by_index(which: np.ndarray) -> None:
    seen = Observations(
        {"a": np.arange(6, dtype=np.float32).reshape(3, 2, 1)},
        {"goal": np.arange(3, dtype=np.float32)[:, None]},
        ("fold", "pour", "wait"),
    )
    some = seen.rows(which)
    assert some.features["a"].tolist() == [[[2], [3]], [[4], [5]]]
    assert some.conditions["goal"].tolist() == [[1], [2]]
    assert some.instructions == ("pour", "wait")


READS = Signature(2, 1, 1, (Feature("state", 4),), (Feature("goal", 2),))


@pytest.mark.parametrize(
    ("offered", "message"),
    [
        ({"state": 4, "goal": 2}, None),
        ({"state": 4, "goal": 2, "images.front": 32}, None),
        ({"goal": 2}, "state: is read, but the robot offers goal"),
        ({}, "state: is read, but the robot offers nothing"),
        ({"state": 4, "goal": 3}, "goal: 2 numbers are read, the robot offers 3"),
    ],
)
def test_what_is_read_and_not_offered_is_named(offered: dict[str, int], message: str | None) -> None:
    assert READS.unmet(Offer(offered)) == message


def test_an_instruction_must_be_offered_where_it_is_read() -> None:
    offered = Offer({"state": 4, "goal": 2})
    instructed = replace(READS, instruction=True)
    assert instructed.unmet(offered) == "instruction: is read, but the robot has none"
    assert instructed.unmet(replace(offered, instruction=True)) is None


def test_a_signature_is_reported_in_short() -> None:
    assert str(replace(READS, parameters=7)) == "7 parameters, no tokenizer"
    assert re.fullmatch("0 parameters, tokenizer feed", str(replace(READS, codes=CodeSpace("feed", 2, 4))))


FRONT = ImageInput("observation.images.front", 4, 6)
SEES = Signature(
    2,
    1,
    2,
    (Feature("state", 2, ("a.pos", "b.pos")),),
    images=(FRONT,),
    action_names=("a", "b"),
    rate_hz=20.0,
)
OFFERS = Offer({"state": 2}, {"state": ("a.pos", "b.pos")}, (FRONT.name,), False, ("a", "b"), 20.1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, None),
        ({"entries": {}, "action_names": (), "rate_hz": 0.0}, None),
        (
            {"entries": {"state": ("b.pos", "a.pos")}},
            "state[0]: is 'a.pos' to the target, 'b.pos' to the robot; must be the same",
        ),
        ({"images": ()}, "observation.images.front: is read, but the robot offers no camera"),
        ({"images": ("wrist",)}, "observation.images.front: is read, but the robot offers wrist"),
        ({"action_names": ("a", "c")}, "action[1]: is 'b' to the target, 'c' to the robot; must be the same"),
        ({"action_names": ("a",)}, "action: 2 entries, the robot's has 1"),
        ({"rate_hz": 10.0}, "rate_hz: the target's actions are for 20 Hz, the robot's steps at 10 Hz"),
    ],
)
def test_what_has_another_name_or_rate_is_named(changes: dict[str, Any], message: str | None) -> None:
    """Where both sides say it: joints in another order are no fit, though they are as many."""
    assert SEES.unmet(replace(OFFERS, **changes)) == message


def test_images_are_kept_with_the_robots_that_saw_them() -> None:
    nothing = SEES.nothing(3)
    assert nothing.images[FRONT.name].shape == (3, 2, 4, 6, 3)
    one = nothing.rows(np.array([True, False, False]))
    assert (len(one.features["state"]), len(one.images[FRONT.name])) == (1, 1)
