from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from adahi_ros.assets import asset
from adahi_ros.networks.fitting import FitConfig
from adahi_ros.networks.recipe import RecipeError
from adahi_ros.policy.vqbet.recipe import load_recipe
from adahi_ros.policy.vqbet.training import CodeFitConfig


def whole() -> dict[str, Any]:
    return {
        "demonstrations": {"episodes": 3, "seed": 0, "action_noise": 0.1},
        "tokenizer": {"seed": 1, "size": {"codebooks": 2, "hidden": 8}, "fit": {"steps": 5}},
        "window_length": 2,
        "policies": {
            "draft": {"seed": 2, "size": {"width": 4, "heads": 2}, "fit": {"steps": 4, "learning_rate": 1}},
        },
    }


def write(path: Path, recipe: Any) -> Path:
    path.write_text(yaml.safe_dump(recipe))
    return path


def test_the_shipped_recipe_is_whole() -> None:
    recipe = load_recipe(asset("config/recipes/ball.yaml"))
    assert recipe.policies.keys() == {"draft", "target"}
    assert recipe.policies["draft"].fit.steps < recipe.policies["target"].fit.steps


def test_what_is_written_is_read(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path / "recipe.yaml", whole()))
    assert recipe.demonstrations.episodes == 3
    assert recipe.tokenizer.size == {"codebooks": 2, "hidden": 8}
    assert recipe.tokenizer.fit == FitConfig(5)
    assert recipe.policies["draft"].fit == CodeFitConfig(4, learning_rate=1)
    assert recipe.window_length == 2


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (
            "extra",
            1,
            "recipe.extra: unknown, must be one of demonstrations, policies, tokenizer, window_length",
        ),
        ("window_length", None, "recipe.window_length: missing"),
        ("window_length", 0, "recipe: window_length: 0, must be at least 1"),
        ("window_length", True, "recipe.window_length: True, must be an integer"),
        ("demonstrations.episodes", 2.5, "recipe.demonstrations.episodes: 2.5, must be an integer"),
        ("demonstrations.episodes", 0, "recipe.demonstrations: episodes: 0, must be at least 1"),
        ("demonstrations.action_noise", 2, "recipe.demonstrations: action_noise: 2, must be 0 to 1"),
        ("demonstrations.seed", -1, "recipe.demonstrations: seed: -1, must be at least 0"),
        ("demonstrations", "many", "recipe.demonstrations: 'many', must be a mapping"),
        ("tokenizer.size", [], "recipe.tokenizer.size: [], must be a mapping"),
        ("tokenizer.size.depth", 2, "recipe.tokenizer.size.depth: unknown, must be one of chunk_length, "),
        ("tokenizer.size.action_dim", 2, "recipe.tokenizer.size.action_dim: unknown"),
        ("tokenizer.size.hidden", "8", "recipe.tokenizer.size.hidden: '8', must be an integer"),
        ("tokenizer.size.codebooks", 99, "recipe.tokenizer.size: tokenizer.codebook_size ** codebooks: "),
        ("tokenizer.seed", -1, "recipe.tokenizer: seed: -1, must be at least 0"),
        ("tokenizer.fit", None, "recipe.tokenizer.fit: missing"),
        ("policies", {}, "recipe: policies: none, must name at least one"),
        ("policies", ["draft"], "recipe.policies: ['draft'], must be a mapping"),
        ("policies.draft.fit.steps", None, "recipe.policies.draft.fit.steps: missing"),
        ("policies.draft.fit.steps", 0, "recipe.policies.draft.fit: fit.steps: 0, must be at least 1"),
        (
            "policies.draft.fit.epochs",
            3,
            "recipe.policies.draft.fit.epochs: unknown, must be one of batch_size,",
        ),
        (
            "policies.draft.fit.learning_rate",
            "1e-3",
            "recipe.policies.draft.fit.learning_rate: '1e-3', must be",
        ),
        (
            "policies.draft.fit.learning_rate",
            -1.0,
            "recipe.policies.draft.fit: fit.learning_rate: -1.0, must be",
        ),
        (
            "policies.draft.size.depth",
            2,
            "recipe.policies.draft.size.depth: unknown, must be one of head_hidden,",
        ),
        ("policies.draft.size.codebooks", 2, "recipe.policies.draft.size.codebooks: unknown"),
        (
            "policies.draft.size.heads",
            3,
            "recipe.policies.draft.size: policy.width: 4, must be a multiple of",
        ),
        ("policies.draft.size.layers", 0, "recipe.policies.draft.size: policy.layers: 0, must be at least 1"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, field: str, value: Any, message: str) -> None:
    recipe = whole()
    part: dict[str, Any] = recipe
    *parents, last = field.split(".")
    for parent in parents:
        part = part[parent]
    if value is None:
        del part[last]
    else:
        part[last] = value
    path = write(tmp_path / "recipe.yaml", recipe)
    with pytest.raises(RecipeError, match=f"^{re.escape(f'{path}: {message}')}"):
        load_recipe(path)


@pytest.mark.parametrize(
    ("text", "message"), [("", "recipe: None, must be a mapping"), ("a: [1", "not YAML: ")]
)
def test_another_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(RecipeError, match=f"^{re.escape(f'{path}: {message}')}"):
        load_recipe(path)
