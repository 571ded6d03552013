# SPDX-License-Identifier: Apache-2.0
"""Recipes of encoders: everything that makes one, in one YAML file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from adahi_ros.lab.training.fitting import FitConfig
from adahi_ros.lab.training.training_recipe import DemonstrationRecipe, RecipeError, checked, read_recipe


@dataclass(frozen=True)
class EncoderRecipe:
    """How to make an encoder.

    Attributes:
        architecture: a key of `export.ARCHITECTURES`.
        size: sizes of its layers.
        frames: which episodes to photograph.
        seed: of weights and batches.
        fit: how long and how fast to train; None takes the weights as they are.
        weights: to start from, as `resnet.load_weights` takes it; None draws them.

    Raises:
        ValueError: neither `fit` nor `weights`, or a value out of range.
    """

    architecture: str
    size: dict[str, int | bool]
    frames: DemonstrationRecipe
    seed: int
    fit: FitConfig | None = None
    weights: str | None = None

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ValueError(f"seed: {self.seed}, must be at least 0")
        if self.fit is None and self.weights is None:
            raise ValueError("fit, weights: none, must give at least one")


def load_encoder_recipe(path: Path) -> EncoderRecipe:
    """Read a recipe.

    Raises:
        RecipeError: something in it is missing, unknown, of the wrong type or out of range.
        FileNotFoundError: no such file.
    """
    return read_recipe(path, _recipe)


def _recipe(values: Any) -> EncoderRecipe:
    if not isinstance(values, dict):
        raise RecipeError(f"recipe: {values!r}, must be a mapping")
    allowed = {field.name for field in fields(EncoderRecipe)}
    parts: dict[str, Any] = dict(values)
    for name in sorted(map(str, parts.keys() ^ allowed)):
        if name not in allowed:
            raise RecipeError(f"recipe.{name}: unknown, must be one of {', '.join(sorted(allowed))}")
        if name not in ("fit", "weights"):
            raise RecipeError(f"recipe.{name}: missing")
    for name, kind, words in (
        ("architecture", str, "a name"),
        ("size", dict, "a mapping"),
        ("seed", int, "an integer"),
        ("weights", str | None, "a file"),
    ):
        if isinstance(parts.get(name), bool) or not isinstance(parts.get(name), kind):
            raise RecipeError(f"recipe.{name}: {parts.get(name)!r}, must be {words}")
    parts["frames"] = checked(DemonstrationRecipe, parts["frames"], "recipe.frames")
    if parts.get("fit") is not None:
        parts["fit"] = checked(FitConfig, parts["fit"], "recipe.fit")
    return EncoderRecipe(**parts)
