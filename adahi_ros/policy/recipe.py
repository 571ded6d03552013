"""Training recipes: everything that makes a set of checkpoints, in one YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import yaml

from adahi_ros.policy.training import FitConfig

T = TypeVar("T")


class RecipeError(ValueError):
    """A recipe that cannot be followed; the message names file, field, value and what was allowed."""


@dataclass(frozen=True)
class DemonstrationRecipe:
    """Which demonstrations to record; see `tasks.demonstrations.collect`."""

    episodes: int
    seed: int
    action_noise: float


@dataclass(frozen=True)
class ModelRecipe:
    """How to make one model.

    Attributes:
        seed: of its weights and batches.
        size: arguments of `TokenizerConfig` or `VQBeTConfig` beyond those that the data gives.
        fit: how long and how fast to train.
    """

    seed: int
    size: dict[str, int]
    fit: FitConfig


@dataclass(frozen=True)
class Recipe:
    """How to make a tokenizer and the policies on it."""

    demonstrations: DemonstrationRecipe
    tokenizer: ModelRecipe
    window_length: int
    policies: dict[str, ModelRecipe]


def _build(kind: type[T], values: Any, where: str) -> T:
    if not isinstance(values, Mapping):
        raise RecipeError(f"{where}: {values!r}, must be a mapping")
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(map(str, values.keys() - names))
    if unknown:
        raise RecipeError(f"{where}.{unknown[0]}: unknown, must be one of {', '.join(sorted(names))}")
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        raise RecipeError(f"{where}: {error}") from None


def _model(values: Any, where: str) -> ModelRecipe:
    model = _build(ModelRecipe, values, where)
    return ModelRecipe(model.seed, model.size, _build(FitConfig, model.fit, f"{where}.fit"))


def load_recipe(path: Path) -> Recipe:
    """Read a recipe.

    Raises:
        RecipeError: something in it is missing, unknown or out of range.
        FileNotFoundError: no such file.
    """
    try:
        values = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise RecipeError(f"{path}: not YAML ({error})") from None
    recipe = _build(Recipe, values, str(path))
    if not isinstance(recipe.policies, Mapping) or not recipe.policies:
        raise RecipeError(f"{path}.policies: {recipe.policies!r}, must name at least one policy")
    if not isinstance(recipe.window_length, int) or recipe.window_length < 1:
        raise RecipeError(f"{path}.window_length: {recipe.window_length!r}, must be at least 1")
    return Recipe(
        _build(DemonstrationRecipe, recipe.demonstrations, f"{path}: demonstrations"),
        _model(recipe.tokenizer, f"{path}: tokenizer"),
        recipe.window_length,
        {name: _model(model, f"{path}: policies.{name}") for name, model in recipe.policies.items()},
    )
