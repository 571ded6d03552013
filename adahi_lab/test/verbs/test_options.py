"""Which file an option of the lab's verbs names."""

from __future__ import annotations

from pathlib import Path

import pytest

from adahi_lab.cli.options import recipe_file
from adahi_ros.core.assets import asset


def test_a_recipe_is_that_which_is_given_or_the_shipped_one(tmp_path: Path) -> None:
    (given := tmp_path / "recipe.yaml").touch()
    assert recipe_file(given, "ball") == given
    for each in (None, Path("config/recipes/ball.yaml")):
        assert recipe_file(each, "ball") == asset("config/recipes/ball.yaml")
    with pytest.raises(ValueError, match=r"nowhere\.yaml, no such file"):
        recipe_file(tmp_path / "nowhere.yaml", "ball")
    with pytest.raises(ValueError, match="must be given: no recipe for 'nobody' is shipped"):
        recipe_file(None, "nobody")
