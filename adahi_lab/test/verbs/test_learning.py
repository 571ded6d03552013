"""`adahi train policy --from-corrections`: what they say, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from adahi_ros.core.assets import asset
from test.cli.conftest import Fails


def test_shipped_policies_are_not_replaced(fails: Fails) -> None:
    shipped = asset("checkpoints/ball")
    output = fails("train", "ball", "--from-corrections", "bag", "--out", shipped)
    assert "is shipped; must be another place" in output


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("--only", "draft"), "only: draft, must be left out where --from-corrections is given"),
        (("--seed-offset", 3), "seed_offset: 3, must be left out where --from-corrections is given"),
        (("--contract", "kitchen"), "contract: of a robot 'kitchen', must be 'ball', the task"),
        ((), "no such bag"),
        (("--checkpoints", "nowhere"), "nowhere"),
    ],
)
def test_bags_that_cannot_be_learned_from_are_refused(
    arguments: tuple[object, ...], output: str, tmp_path: Path, fails: Fails
) -> None:
    out = tmp_path / "out"
    command = ("train", "ball", "--from-corrections", tmp_path / "bag", "--out", out, *arguments)
    assert output in fails(*command)
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("--steps", 3), "steps: 3"),
        (("--no-guard",), "no_guard: True"),
        (("--worse", 0.02), "worse: 0.02"),  # what it is by default, too
        (("--checkpoints", "somewhere"), "checkpoints: somewhere"),
        (("--incomplete",), "incomplete: True"),
    ],
)
def test_what_is_of_corrections_alone_is_refused_without(
    arguments: tuple[object, ...], output: str, tmp_path: Path, fails: Fails
) -> None:
    """Else it would be ignored, and nobody told."""
    out = tmp_path / "out"
    found = fails("train", "ball", "--out", out, *arguments)
    assert f"{output}, must be left out where --from-corrections is not given" in found
    assert not out.exists()
