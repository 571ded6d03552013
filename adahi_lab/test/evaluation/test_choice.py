"""The choice is the method with the fewest requests among those that are as good as the best."""

from __future__ import annotations

import pytest

from adahi_lab.evaluation.choice import chosen


def figures(success: float, low: float, rate: float) -> dict[str, object]:
    return {
        "success_rate": success,
        "success_ci95": [low, min(1.0, success + 0.05)],
        "transmission_rate": rate,
    }


def test_fewer_requests_win_where_success_is_within_chance() -> None:
    found = chosen(
        {"target": figures(0.98, 0.93, 1.0), "best": figures(0.95, 0.9, 0.1), "draft": figures(0.5, 0.4, 0)}
    )
    assert (found.name, found.as_good) == ("best", ("best", "target"))
    assert found.sentence.startswith("use best: success 0.950 (0.90 to 1.00), requests at 0.100 of the steps")
    assert "target has 0.980" in found.sentence


def test_a_method_that_succeeds_less_is_never_chosen_for_its_requests() -> None:
    assert chosen({"target": figures(0.98, 0.93, 1.0), "draft": figures(0.92, 0.9, 0.0)}).name == "target"


def test_a_choice_needs_a_method() -> None:
    with pytest.raises(ValueError, match="figures: empty"):
        chosen({})
