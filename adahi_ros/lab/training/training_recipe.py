# SPDX-License-Identifier: Apache-2.0
"""Training recipes in YAML: what they have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator

from adahi_ros.core.schema import Schema, at_least, checked, within
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.lab.training.fitting import FitConfig

T = TypeVar("T")
F = TypeVar("F", bound=FitConfig)
VQBET = "vqbet"
Seed = Annotated[int, at_least(0)]
Positive = Annotated[int, at_least(1)]


class RecipeError(ValueError):
    """A recipe that cannot be followed; the message names file, field, value and what was allowed."""


@dataclass(frozen=True)
class DemonstrationRecipe(Schema):
    """Which demonstrations to record; see `tasks.demonstrations.collect_parallel`."""

    episodes: Positive
    seed: Seed
    action_noise: Annotated[float, within(0.0, 1.0)]


@dataclass(frozen=True)
class NetworkRecipe(Schema, Generic[F]):
    """How to make one network.

    Attributes:
        seed: of its weights and batches.
        size: arguments of the network's configuration beyond those that the data gives.
        fit: how long and how fast to train.
    """

    seed: Seed
    size: dict[str, Any]
    fit: F


@dataclass(frozen=True)
class ModelRecipe(NetworkRecipe[F]):
    """How to make a policy, of a kind."""

    kind: str = VQBET


def size_of(kind: type) -> AfterValidator:
    """Return the check of a size: arguments of a network's configuration but for those that data gives."""

    def check(size: dict[str, Any]) -> dict[str, Any]:
        # What has no default comes from the data, as image_dim does; any value will do to check the others.
        given = [each.name for each in fields(kind) if each.default is MISSING or each.name == "image_dim"]
        free = [each.name for each in fields(kind) if each.name not in given]
        for name in size:
            if name not in free:
                raise ValueError(f"{name}: unknown, must be one of {', '.join(free)}")
        checked(kind, {**dict.fromkeys(given, 1), **size})
        return size

    return AfterValidator(check)


def read_recipe(path: Path, make: Callable[[Any], T]) -> T:
    """Make a recipe of what a YAML file says; raises as `load_recipe` does."""
    try:
        return make(read_yaml(path))
    except ValueError as error:
        raise RecipeError(f"{path}: {error}") from None
