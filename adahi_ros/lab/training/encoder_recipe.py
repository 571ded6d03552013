# SPDX-License-Identifier: Apache-2.0
"""Recipes of encoders: everything that makes one, in one YAML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adahi_ros.core.schema import Schema, checked
from adahi_ros.lab.training.fitting import FitConfig
from adahi_ros.lab.training.training_recipe import DemonstrationRecipe, Seed, read_recipe


@dataclass(frozen=True)
class EncoderRecipe(Schema):
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
    size: dict[str, Any]
    frames: DemonstrationRecipe
    seed: Seed
    fit: FitConfig | None = None
    weights: str | None = None

    def __post_init__(self) -> None:
        if self.fit is None and self.weights is None:
            raise ValueError("fit, weights: none, must give at least one")


def load_encoder_recipe(path: Path) -> EncoderRecipe:
    """Read a recipe.

    Raises:
        RecipeError: something in it is missing, unknown, of the wrong type or out of range.
        FileNotFoundError: no such file.
    """
    return read_recipe(path, lambda values: checked(EncoderRecipe, values, "recipe"))
