from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adahi_lab.tuning.search_space import Choices, Range, load_space
from adahi_ros.core.assets import asset

WIDTH = "policies.draft.size.width"
RATE = "policies.draft.fit.learning_rate"


def test_a_space_says_what_varies_and_a_recipe_follows(space_file: Callable[..., Path]) -> None:
    vary = {RATE: {"low": 1e-3, "high": 1e-2, "scale": "log"}, WIDTH: {"choices": [4, 8]}}
    methods = {"adahi": {"threshold": {"low": 0.1, "high": 2.0}}, "hybrid": None}
    space = load_space(space_file(vary=vary, methods=methods), "ball")
    assert space.vary == {RATE: Range(1e-3, 1e-2, "log"), WIDTH: Choices((4, 8))}
    assert space.methods == {"adahi": Range(0.1, 2.0), "hybrid": None}
    assert (space.train, space.whole, space.price) == (("draft",), False, 0.5)
    recipe = space.recipe_with({RATE: 5e-3, WIDTH: 8})
    assert recipe.policies["draft"].fit.learning_rate == 5e-3
    assert recipe.policies["draft"].size["width"] == 8
    assert space.recipe_with({}).policies["draft"].size["width"] == 4


def test_everything_is_trained_by_default_and_then_the_tokenizer_may_vary(
    space_file: Callable[..., Path],
) -> None:
    books = {"tokenizer.size.codebook_size": {"low": 4, "high": 16}}
    space = load_space(space_file(train="absent", vary=books), "ball")
    assert (space.train, space.whole) == (("draft", "target"), True)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"trials": 3}, r"space\.trials: unknown, must be one of"),
        ({"methods": "absent"}, r"space\.methods: missing"),
        ({"methods": {}}, r"space\.methods: {}, must be of 1 entries"),
        ({"methods": {"best guess": None}}, r"methods: 'best guess', must be of adahi"),
        ({"methods": {"adahi": None}}, r"space\.methods\.adahi\.threshold: missing"),
        ({"methods": {"hybrid": {"threshold": {"low": 0, "high": 1}}}}, r"hybrid\.threshold: must be left"),
        ({"methods": {"hybrid": {"rate": 1}}}, r"hybrid\.rate: unknown, must be one of threshold"),
        ({"methods": {"adahi": {"threshold": {"low": 2.0, "high": 1.0}}}}, r"threshold\.high: 1\.0, must be"),
        ({"methods": {"adahi": {"threshold": {"low": "few", "high": 1.0}}}}, r"low: 'few', must be a number"),
        ({"train": ["pupil"]}, r"train: \['pupil'\], must be everything or a list of draft, target"),
        ({"train": []}, rf"vary\.{RATE}: must be of what is trained: nothing"),
        ({"vary": {"policies.target.size.width": {"choices": [4]}}}, r"must be of what is trained: draft"),
        ({"vary": {"tokenizer.seed": {"low": 1, "high": 2}}}, r"seed: must be left out, unless"),
        ({"vary": {"policies.draft.size.deep": {"low": 1, "high": 2}}}, r"size\.deep: unknown, must be one"),
        ({"vary": {"policies.draft.sizes.width": {"low": 1, "high": 2}}}, r"no such value in the recipe"),
        ({"vary": {"policies.draft.fit.steps": {"low": 0, "high": 9}}}, r"fit\.steps: 0, must be at least 1"),
        ({"vary": {"policies.draft.fit.steps": {"low": 0.5, "high": 9}}}, r"fit\.steps: 0\.5, must be"),
        ({"vary": {RATE: {"low": 0, "high": 1.0, "scale": "log"}}}, r"low: 0, must be above 0 where"),
        ({"vary": {RATE: {"low": 0, "high": 1.0, "scale": "loud"}}}, r"scale: 'loud', must be one of linear"),
        ({"vary": {RATE: {"low": 0.1, "high": 1.0, "step": 2}}}, r"step: 2, must be at least 1, and 1 if"),
        ({"vary": {RATE: {"choices": []}}}, r"choices: \[\], must be a list of numbers"),
        ({"vary": {RATE: {"choices": [True]}}}, r"choices: \[True\], must be a list of numbers or strings"),
        ({"price": -1}, r"price: -1, must be a number from 0"),
        ({"stages": {"stop": "soon"}}, r"space\.stages\.stop: 'soon', must be one of trend, median, never"),
        ({"draft_temperature": {"low": 0.0, "high": 1.0}}, r"draft_temperature\.low: 0\.0, must be at least"),
        ({"folder": "elsewhere"}, r"folder: 'elsewhere', must be plans, or left out"),
        ({"recipe": "nobody's"}, r"recipe: \"nobody's\", must be a \.yaml file, or the name of one"),
    ],
)
def test_a_space_that_cannot_be_searched_is_refused(
    space_file: Callable[..., Path], changes: dict[str, Any], fault: str
) -> None:
    path = space_file(**changes)
    with pytest.raises(ValueError, match=fault) as refused:
        load_space(path, "ball")
    assert str(refused.value).startswith(f"{path}: ")


@pytest.mark.parametrize("path", sorted(asset("config/spaces").glob("*.yaml")), ids=lambda path: path.stem)
def test_a_shipped_space_can_be_searched(path: Path) -> None:
    load_space(path, path.stem.partition("-")[0])
