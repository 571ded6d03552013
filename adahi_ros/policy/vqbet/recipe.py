"""Training recipes: everything that makes a set of checkpoints, in one YAML file."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from adahi_ros.networks.fitting import FitConfig
from adahi_ros.networks.recipe import (
    DemonstrationRecipe,
    F,
    ModelRecipe,
    build,
    check,
    checked,
    mapping,
    read_recipe,
)
from adahi_ros.policy.vqbet.network import VQBeTConfig
from adahi_ros.policy.vqbet.tokenizer import TokenizerConfig
from adahi_ros.policy.vqbet.training import CodeFitConfig


@dataclass(frozen=True)
class Recipe:
    """How to make a tokenizer and the policies on it."""

    demonstrations: DemonstrationRecipe
    tokenizer: ModelRecipe[FitConfig]
    window_length: int
    policies: dict[str, ModelRecipe[CodeFitConfig]]

    def __post_init__(self) -> None:
        if self.window_length < 1:
            raise ValueError(f"window_length: {self.window_length}, must be at least 1")
        if not self.policies:
            raise ValueError("policies: none, must name at least one")


def _model(size_kind: type, fit_kind: type[F], values: Any, where: str) -> ModelRecipe[F]:
    check(ModelRecipe, values, where)
    # What has no default comes from the data; any value will do to check the others.
    given = frozenset(field.name for field in fields(size_kind) if field.default is MISSING)
    check(size_kind, values["size"], f"{where}.size", given)
    build(size_kind, {**dict.fromkeys(given, 1), **values["size"]}, f"{where}.size")
    fit = checked(fit_kind, values["fit"], f"{where}.fit")
    return build(ModelRecipe, {**values, "fit": fit}, where)


def _recipe(values: Any) -> Recipe:
    where = "recipe"
    check(Recipe, values, where)
    policies = mapping(values["policies"], f"{where}.policies")
    parts = {
        "demonstrations": checked(DemonstrationRecipe, values["demonstrations"], f"{where}.demonstrations"),
        "tokenizer": _model(TokenizerConfig, FitConfig, values["tokenizer"], f"{where}.tokenizer"),
        "policies": {
            name: _model(VQBeTConfig, CodeFitConfig, model, f"{where}.policies.{name}")
            for name, model in policies.items()
        },
    }
    return build(Recipe, {**values, **parts}, where)


def load_recipe(path: Path) -> Recipe:
    """Read a recipe.

    Raises:
        RecipeError: something in it is missing, unknown, of the wrong type or out of range.
        FileNotFoundError: no such file.
    """
    return read_recipe(path, _recipe)
