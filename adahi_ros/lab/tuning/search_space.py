# SPDX-License-Identifier: Apache-2.0
"""What a search may vary, and what it is to find: a YAML file."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adahi_ros.core.assets import asset, shipped
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.lab.evaluation.loaded_policies import PLANS
from adahi_ros.lab.methods.methods import METHODS, gates_of_methods, parse_methods
from adahi_ros.lab.training.policy_recipe import Recipe, recipe_of
from adahi_ros.lab.training.training_recipe import build, check, checked, mapping

Value = int | float | str
SCALES = ("linear", "log")
STOPS = ("trend", "median", "never")
EVERYTHING = "everything"
COLDEST = 1e-3  # as the nodes take a draft's temperature


class SpaceError(ValueError):
    """A space that cannot be searched; the message names file, field, value and what was allowed."""


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, both included.

    Attributes:
        low, high: both integers, or the numbers are none.
        scale: linear, or log, where a number is as likely as its double.
        step: from one integer to the next.
    """

    low: float
    high: float
    scale: str = "linear"
    step: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise ValueError(f"high: {self.high}, must be finite and at least low ({self.low})")
        if self.scale not in SCALES:
            raise ValueError(f"scale: {self.scale!r}, must be one of {', '.join(SCALES)}")
        if self.log and self.low <= 0:
            raise ValueError(f"low: {self.low}, must be above 0 where the scale is log")
        if self.step != 1 and (self.step < 1 or self.log or not self.whole):
            raise ValueError(f"step: {self.step}, must be at least 1, 1 but for integers by a linear scale")

    @property
    def log(self) -> bool:
        """Whether its scale is."""
        return self.scale == "log"

    @property
    def whole(self) -> bool:
        """Whether the numbers are integers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def ends(self) -> tuple[Value, ...]:
        """Values that must be possible, or none is."""
        return self.low, self.high


@dataclass(frozen=True)
class Choices:
    """One of a few values."""

    choices: tuple[Value, ...]

    @property
    def ends(self) -> tuple[Value, ...]:
        """See `Range`."""
        return self.choices


Varied = Range | Choices


@dataclass(frozen=True)
class StageConfig:
    """How a trial is looked at while it trains.

    Attributes:
        count: parts of its last training.
        episodes: after each but the last.
        stop: by which pruner, one of `STOPS`.
    """

    count: int = 5
    episodes: int = 50
    stop: str = "trend"

    def __post_init__(self) -> None:
        for name in ("count", "episodes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)}, must be at least 1")
        if self.stop not in STOPS:
            raise ValueError(f"stop: {self.stop!r}, must be one of {', '.join(STOPS)}")


@dataclass(frozen=True)
class Space:
    """What a search may vary.

    Attributes:
        recipe: plain data of the recipe that trials begin with.
        methods: what acts, by name, each with a range of thresholds, or None where it has none.
        train: models that each trial trains, in the recipe's order; empty for none.
        whole: whether these are all, on a tokenizer of their own; else they take the tokenizer that is there.
        vary: values of the recipe, by path, such as policies.draft.fit.learning_rate.
        plans: whether the recipe is of what lies in the folder `plans` of the checkpoints.
        draft_temperature: at which the draft samples; None takes the calibration's.
        price: success that a transmission at every step is worth: the objective is success - price * rate.
        episodes: that a trial is judged by.
        stages: of its training.
    """

    recipe: dict[str, Any]
    methods: dict[str, Range | None]
    train: tuple[str, ...] = ()
    whole: bool = False
    vary: dict[str, Varied] = field(default_factory=dict)
    plans: bool = False
    draft_temperature: Range | None = None
    price: float = 0.0
    episodes: int = 100
    stages: StageConfig = field(default_factory=StageConfig)

    def recipe_with(self, values: Mapping[str, Value]) -> Recipe:
        """Return the recipe with some values, by path.

        Raises:
            RecipeError: it cannot be followed.
        """
        return recipe_of(self.plain_with(values))

    def plain_with(self, values: Mapping[str, Value]) -> dict[str, Any]:
        """Return the plain data of that recipe."""
        changed = copy.deepcopy(self.recipe)
        for path, value in values.items():
            *parents, leaf = path.split(".")
            part = changed
            for parent in parents:
                part = part[parent]
            part[leaf] = value
        return changed


@dataclass(frozen=True)
class _File:
    """The fields of the file, as it has them."""

    methods: dict[str, Any]
    recipe: str = ""
    folder: str = ""
    train: Any = EVERYTHING
    vary: Any = None
    draft_temperature: Any = None
    price: float = 0.0
    episodes: int = 100
    stages: Any = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.price < math.inf:
            raise ValueError(f"price: {self.price}, must be finite and not negative")
        if self.episodes < 1:
            raise ValueError(f"episodes: {self.episodes}, must be at least 1")
        if self.folder not in ("", PLANS):
            raise ValueError(f"folder: {self.folder!r}, must be {PLANS}, or left out")
        if not isinstance(self.recipe, str):
            raise ValueError(f"recipe: {self.recipe!r}, must be a file, or the name of one that is shipped")


def load_space(path: Path, task: str) -> Space:
    """Read a space.

    Args:
        path: of the file.
        task: its spec's name, whose recipe is taken unless the file names another.

    Raises:
        SpaceError: something in it is missing, unknown, of the wrong type or out of range, or the recipe that
            it names cannot be followed at an end of a range.
        FileNotFoundError: no such file, or no such recipe.
    """
    try:
        return _space(read_yaml(path), path.parent, task)
    except ValueError as error:
        raise SpaceError(f"{path}: {error}") from None


def _space(values: Any, folder: Path, task: str) -> Space:
    where = "space"
    check(_File, values, where)
    file = build(_File, values, where)
    recipe = _recipe(file.recipe or (f"{task}-{PLANS}" if file.folder else task), folder)
    known = recipe_of(recipe)
    there_are = [*known.policies, *known.taught]
    whole = file.train == EVERYTHING
    asked = there_are if whole else file.train
    if not isinstance(asked, list) or any(name not in there_are for name in asked):
        raise ValueError(
            f"{where}.train: {asked!r}, must be {EVERYTHING} or a list of {', '.join(there_are)}"
        )
    space = Space(
        recipe,
        _methods(file.methods, f"{where}.methods"),
        tuple(name for name in there_are if name in asked),
        whole,
        {
            name: _varied(each, f"{where}.vary.{name}")
            for name, each in mapping(file.vary or {}, f"{where}.vary").items()
        },
        file.folder == PLANS,
        None
        if file.draft_temperature is None
        else _range(file.draft_temperature, f"{where}.draft_temperature"),
        float(file.price),
        file.episodes,
        checked(StageConfig, file.stages or {}, f"{where}.stages"),
    )
    for name, each in space.vary.items():
        _check_varied(space, name, each, f"{where}.vary.{name}")
    temperature = space.draft_temperature
    if temperature is not None and temperature.low < COLDEST:
        raise ValueError(f"{where}.draft_temperature.low: {temperature.low}, must be at least {COLDEST}")
    return space


def _recipe(name: str, folder: Path) -> dict[str, Any]:
    """Return the plain data of a recipe: a file beside the space, or anywhere, or a shipped one."""
    if name.endswith((".yaml", ".yml")):
        path = folder / Path(name).expanduser()
    elif shipped(f"config/recipes/{name}.yaml"):
        path = asset(f"config/recipes/{name}.yaml")
    else:
        raise ValueError(f"space.recipe: {name!r}, must be a .yaml file, or the name of one that is shipped")
    return dict(mapping(read_yaml(path), f"space.recipe: {path}"))


def _methods(values: Any, where: str) -> dict[str, Range | None]:
    found: dict[str, Range | None] = {}
    for name, told in mapping(values, where).items():
        if parse_methods(str(name)) != [name]:
            raise ValueError(f"{where}: {name!r}, must be one method")
        check_it = mapping(told or {}, f"{where}.{name}")
        unknown = sorted(set(check_it) - {"threshold"})
        if unknown:
            raise ValueError(f"{where}.{name}.{unknown[0]}: unknown, must be threshold")
        needed = name in gates_of_methods([name])
        if needed != ("threshold" in check_it):
            fault = "missing: a threshold decides its rate" if needed else "must be left out: it has none"
            raise ValueError(f"{where}.{name}.threshold: {fault}")
        found[name] = _range(check_it["threshold"], f"{where}.{name}.threshold") if needed else None
    if not found:
        raise ValueError(f"{where}: none, must name at least one of {', '.join(METHODS)}, ...")
    return found


def _range(values: Any, where: str) -> Range:
    try:
        return checked(Range, values, where)
    except TypeError:
        raise ValueError(f"{where}: low and high must be numbers") from None


def _varied(values: Any, where: str) -> Varied:
    if "choices" not in mapping(values, where):
        return _range(values, where)
    choices = values["choices"]
    if len(values) > 1 or not isinstance(choices, list) or not choices:
        raise ValueError(f"{where}: {dict(values)!r}, must be low and high, or choices, a list")
    if any(isinstance(each, bool) or not isinstance(each, int | float | str) for each in choices):
        raise ValueError(f"{where}.choices: {choices!r}, must be numbers or strings")
    return Choices(tuple(choices))


def _check_varied(space: Space, path: str, varied: Varied, where: str) -> None:
    """Check that a path leads into what is trained, and that the recipe can be followed at each end."""
    first, *rest = path.split(".")
    model = rest[0] if first == "policies" and rest else first
    if model == "tokenizer" and not space.whole:
        raise ValueError(f"{where}: must be left out, unless train is {EVERYTHING}")
    if not space.train or (first in ("policies", "corrector", "distilled") and model not in space.train):
        raise ValueError(f"{where}: must be of what is trained: {', '.join(space.train) or 'nothing'}")
    for value in varied.ends:
        try:
            space.recipe_with({path: value})
        except (KeyError, TypeError):
            raise ValueError(f"{where}: no such value in the recipe") from None
