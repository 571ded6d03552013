from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.robot.outcomes import Fallback


@given(st.integers(0, 6), st.lists(st.booleans(), max_size=60))
def test_no_run_without_a_verified_draft_is_longer_than_the_limit(limit: int, received: list[bool]) -> None:
    fallback, alone = Fallback(limit), 0
    for verified in received:
        if verified:
            fallback.reset()
            alone = 0
            assert not fallback.withholds
        elif fallback.unverified():
            alone += 1
            assert alone <= limit
        else:
            assert alone == limit
            assert fallback.withholds


@pytest.mark.parametrize(
    ("limit", "drafts", "label"),
    [
        (None, True, "drafts are executed"),
        (0, True, "the robot is held"),
        (5, True, "drafts are executed for 5 steps in a row, then the robot is held"),
        (None, False, "the robot is held"),
        (5, False, "the robot is held"),
    ],
)
def test_it_says_what_happens_without_a_target(limit: int | None, drafts: bool, label: str) -> None:
    assert Fallback(limit, drafts).label == label
