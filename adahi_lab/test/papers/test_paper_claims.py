from __future__ import annotations

from typing import Any

import pytest

from adahi_lab.papers.paper_claims import better_than_adahi, check_claims


def figures(
    success: float,
    rate: float = 1.0,
    interval: tuple[float, float] = (0.0, 1.0),
    parts: tuple[float, int] = (0.0, 1),
) -> dict[str, Any]:
    return {
        "success_rate": success,
        "success_ci95": list(interval),
        "transmission_rate": rate,
        "subtasks_completed": parts[0],
        "subtasks": parts[1],
    }


def holds(methods: dict[str, dict[str, Any]], words: str) -> bool:
    (claim,) = [claim for claim in check_claims(methods) if words in claim.text]
    return claim.holds


@pytest.mark.parametrize(
    ("adahi", "rate", "expected"),
    [(0.76, 0.62, True), (1.0, 0.1, True), (0.759, 0.5, False), (0.8, 0.621, False)],
)
def test_adahi_keeps_the_success_at_fewer_transmissions(adahi: float, rate: float, expected: bool) -> None:
    methods = {"adahi": figures(adahi, rate), "hybrid": figures(0.8)}
    assert holds(methods, "ADAHI keeps 0.95") is expected


@pytest.mark.parametrize(("completed", "expected"), [(3.0, True), (2.99, False)])
def test_the_target_completes_most_sub_tasks(completed: float, expected: bool) -> None:
    assert holds({"target": figures(0.3, parts=(completed, 4))}, "of the sub-tasks on average") is expected


@pytest.mark.parametrize(
    ("names", "claimed"),
    [
        ((), 0),
        (("adahi",), 0),
        (("adahi", "draft", "oracle"), 0),
        (("hybrid", "target"), 1),
        (("adahi", "hybrid"), 1),
        (("adahi", "random"), 1),
        (("draft", "target"), 1),
        (("adahi", "hybrid", "target", "random", "draft"), 4),
    ],
)
def test_nothing_is_claimed_of_what_was_not_run(names: tuple[str, ...], claimed: int) -> None:
    claims = check_claims({name: figures(0.5) for name in names})
    assert len(claims) == claimed
    assert all(claim.measured for claim in claims)


@pytest.mark.parametrize("method", ["adahi", "draft"])
def test_where_nothing_succeeds_there_is_still_a_claim(method: str) -> None:
    names = ("adahi", "hybrid", "target", "random", "draft")
    nothing = {name: figures(0.0, interval=(0.0, 0.1)) for name in names}
    assert {claim.holds for claim in check_claims(nothing)} == {True, False}
    assert better_than_adahi(nothing) == ["hybrid", "target", "random", "draft"]


def test_better_are_those_that_send_no_more_and_succeed_as_often() -> None:
    methods = {
        "hybrid": figures(0.9, 1.0),
        "adahi": figures(0.8, 0.6),
        "random": figures(0.79, 0.3),
        "uncertainty": figures(0.8, 0.61),
        "oracle": figures(0.85, 0.6),
        "plan_2": figures(0.85, 0.6101),
    }
    assert better_than_adahi(methods) == ["uncertainty", "oracle"]
    del methods["adahi"]
    assert better_than_adahi(methods) == []
