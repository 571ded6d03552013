# SPDX-License-Identifier: Apache-2.0
"""Training recipes in YAML: what they have in common, checked field by field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.lab.training.fitting import FitConfig

T = TypeVar("T")
F = TypeVar("F", bound=FitConfig)
VQBET = "vqbet"

NUMBERS: dict[type, tuple[tuple[type, ...], str]] = {
    int: ((int,), "an integer"),
    float: ((int, float), "a number, such as 1.0e-3"),  # 1e-3 is a string in YAML 1.1
}


class RecipeError(ValueError):
    """A recipe that cannot be followed; the message names file, field, value and what was allowed."""


@dataclass(frozen=True)
class DemonstrationRecipe:
    """Which demonstrations to record; see `tasks.demonstrations.collect_parallel`."""

    episodes: int
    seed: int
    action_noise: float

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ValueError(f"episodes: {self.episodes}, must be at least 1")
        if self.seed < 0:
            raise ValueError(f"seed: {self.seed}, must be at least 0")
        if not 0.0 <= self.action_noise <= 1.0:
            raise ValueError(f"action_noise: {self.action_noise}, must be 0 to 1")


@dataclass(frozen=True)
class ModelRecipe(Generic[F]):
    """How to make one model.

    Attributes:
        seed: of its weights and batches.
        size: arguments of the network's configuration beyond those that the data gives.
        fit: how long and how fast to train.
        kind: of policy.
    """

    seed: int
    size: dict[str, Any]
    fit: F
    kind: str = VQBET

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ValueError(f"seed: {self.seed}, must be at least 0")


def mapping(values: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(values, Mapping):
        raise RecipeError(f"{where}: {values!r}, must be a mapping")
    return values


def check(kind: type, values: Any, where: str, given: frozenset[str] = frozenset()) -> None:
    """Check that values are the arguments of a dataclass but for the given ones, numbers of their type."""
    types = get_type_hints(kind)
    names = {field.name: field for field in fields(kind) if field.name not in given}
    for name, value in mapping(values, where).items():
        if name not in names:
            raise RecipeError(f"{where}.{name}: unknown, must be one of {', '.join(sorted(names))}")
        allowed, words = NUMBERS.get(types[name], ((object,), ""))
        if isinstance(value, bool) or not isinstance(value, allowed):
            raise RecipeError(f"{where}.{name}: {value!r}, must be {words}")
    for name, field in names.items():
        if field.default is MISSING and name not in values:
            raise RecipeError(f"{where}.{name}: missing")


def build(kind: type[T], values: Mapping[str, Any], where: str) -> T:
    try:
        return kind(**values)
    except ValueError as error:
        raise RecipeError(f"{where}: {error}") from None


def checked(kind: type[T], values: Any, where: str) -> T:
    """Make a dataclass of a mapping.

    Args:
        kind: of the dataclass.
        values: its arguments, of their types.
        where: it stands in the recipe.

    Raises:
        RecipeError: one is missing, unknown, of the wrong type or out of range.
    """
    check(kind, values, where)
    return build(kind, values, where)


def read_recipe(path: Path, make: Callable[[Any], T]) -> T:
    """Make a recipe of what a YAML file says; raises as `load_recipe` does."""
    try:
        return make(read_yaml(path))
    except ValueError as error:
        raise RecipeError(f"{path}: {error}") from None
