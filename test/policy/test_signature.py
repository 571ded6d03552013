from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.policy.signature import CodeSpace, Feature, Observations, Signature

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
    seen = Observations({"a": np.float32([[[1, 2]]]), "b": np.float32([[[3]]])}, {})
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


def test_nothing_has_the_shapes_that_are_read() -> None:
    signature = Signature(3, 1, 1, parts("seen", [2, 1]), parts("told", [4]))
    nothing = signature.nothing(5)
    assert signature.window(nothing).shape == (5, 3, 3)
    assert signature.condition(nothing).shape == (5, 4)


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
    assert READS.unmet(offered) == message


def test_an_instruction_must_be_offered_where_it_is_read() -> None:
    offered = {"state": 4, "goal": 2}
    told = replace(READS, instruction=True)
    assert told.unmet(offered) == "instruction: is read, but the robot is told none"
    assert told.unmet(offered, instruction=True) is None


def test_a_signature_is_told_in_short() -> None:
    assert str(replace(READS, parameters=7)) == "7 parameters, no tokenizer"
    assert re.fullmatch("0 parameters, tokenizer feed", str(replace(READS, codes=CodeSpace("feed", 2, 4))))
