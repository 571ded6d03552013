# SPDX-License-Identifier: Apache-2.0
"""The settings that a search may vary, and its objective, from a YAML file."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from adahi_lab.evaluation.loaded_policies import PLANS
from adahi_lab.faults import faults_of
from adahi_lab.methods.methods import METHODS, gates_of_methods, parse_methods
from adahi_lab.training.recipes import Positive, Recipe, recipe_of
from adahi_ros.core.assets import asset, shipped
from adahi_ros.core.schema import LARGEST, Listed, Schema, checked, must, one_of, within
from adahi_ros.core.yaml_files import read_yaml

Value = int | float | str
SCALES = ("linear", "log")
STOPS = ("trend", "median", "never")
EVERYTHING = "everything"
COLDEST = 1e-3  # the nodes' lower limit of a draft's temperature


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


Number = Annotated[Any, must("be a number, such as 1.0e-3", _is_number)]  # 1e-3 is a string in YAML 1.1


@dataclass(frozen=True)
class Range(Schema):
    """Numbers from low to high, both included.

    Attributes:
        low, high: integers if both are integers.
        scale: linear or log; with log, a number is as likely as its double.
        step: from one integer to the next.
    """

    low: Number
    high: Number
    scale: Annotated[str, one_of(SCALES)] = "linear"
    step: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise ValueError(f"high: {self.high}, must be finite and at least low ({self.low})")
        if self.log and self.low <= 0:
            raise ValueError(f"low: {self.low}, must be above 0 where the scale is log")
        if self.step != 1 and (self.step < 1 or self.log or not self.whole):
            raise ValueError(f"step: {self.step}, must be at least 1, and 1 if not integer or not linear")

    @property
    def log(self) -> bool:
        """Whether the scale is logarithmic."""
        return self.scale == "log"

    @property
    def whole(self) -> bool:
        """Whether the numbers are integers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def ends(self) -> tuple[Value, ...]:
        """Values that must all be valid."""
        return self.low, self.high


@dataclass(frozen=True)
class Choices(Schema):
    """One of a few values."""

    choices: Annotated[
        Listed[Any],
        must(
            "be a list of numbers or strings",
            lambda values: values and all(_is_number(each) or isinstance(each, str) for each in values),
        ),
    ]

    @property
    def ends(self) -> tuple[Value, ...]:
        """See `Range`."""
        return self.choices


Varied = Range | Choices


@dataclass(frozen=True)
class StageConfig(Schema):
    """How a trial is evaluated while it trains.

    Attributes:
        count: parts of its last training.
        episodes: of the evaluation after each part except the last.
        stop: the pruner, one of `STOPS`.
    """

    count: Positive = 5
    episodes: Positive = 50
    stop: Annotated[str, one_of(STOPS)] = "trend"


@dataclass(frozen=True)
class Space:
    """The settings that a search may vary.

    Attributes:
        recipe: plain data of the trials' recipe.
        methods: by name, each with a range of thresholds, or None where it has none.
        train: models that each trial trains, in the recipe's order; empty for none.
        whole: whether these are all, with a new tokenizer; else they use the existing one.
        vary: values of the recipe, by path, such as policies.draft.fit.learning_rate.
        plans: whether the recipe makes the folder `plans` of the checkpoints.
        draft_temperature: at which the draft samples; None takes the calibration's.
        price: of a transmission at every step: the objective is success - price * rate.
        episodes: of a trial's evaluation.
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
            ValueError: the recipe is invalid.
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


def _varied(values: Any) -> Any:
    if not isinstance(values, dict):
        raise ValueError("must be low and high, or choices, a list")
    return checked(Choices if "choices" in values else Range, values)


@dataclass(frozen=True)
class _Method(Schema):
    threshold: Range | None = None


@dataclass(frozen=True)
class _File(Schema):
    """The fields of the file."""

    methods: Annotated[dict[str, _Method | None], Field(min_length=1)]
    recipe: str = ""
    folder: Annotated[str, must(f"be {PLANS}, or left out", lambda folder: folder in ("", PLANS))] = ""
    train: Any = EVERYTHING
    vary: dict[str, Annotated[Any, BeforeValidator(_varied)]] | None = None
    draft_temperature: Range | None = None
    price: Annotated[float, within(0.0, LARGEST)] = 0.0
    episodes: Positive = 100
    stages: StageConfig = StageConfig()


def load_space(path: Path, task: str) -> Space:
    """Read a space.

    Args:
        path: of the file.
        task: its spec's name; its recipe is used by default.

    Raises:
        ValueError: something in it is missing, unknown, of the wrong type or out of range, or the recipe is
            invalid at an end of a range; names file and field.
        FileNotFoundError: no such file, or no such recipe.
    """
    with faults_of(path):
        return _space(read_yaml(path), path.parent, task)


def _space(values: Any, folder: Path, task: str) -> Space:
    where = "space"
    file: _File = checked(_File, values, where)
    recipe = _recipe(file.recipe or (f"{task}-{PLANS}" if file.folder else task), folder)
    known = recipe_of(recipe)
    there_are = [*known.policies, *known.taught]
    whole = file.train == EVERYTHING
    requested = there_are if whole else file.train
    if not isinstance(requested, list) or any(name not in there_are for name in requested):
        raise ValueError(
            f"{where}.train: {requested!r}, must be {EVERYTHING} or a list of {', '.join(there_are)}"
        )
    space = Space(
        recipe,
        {name: _threshold(name, each, f"{where}.methods") for name, each in file.methods.items()},
        tuple(name for name in there_are if name in requested),
        whole,
        file.vary or {},
        file.folder == PLANS,
        file.draft_temperature,
        file.price,
        file.episodes,
        file.stages,
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
    recipe: dict[str, Any] = checked(dict[str, Any], read_yaml(path), f"space.recipe: {path}")
    return recipe


def _threshold(name: str, method: _Method | None, where: str) -> Range | None:
    if parse_methods(name) != [name]:
        raise ValueError(f"{where}: {name!r}, must be one method, such as {', '.join(METHODS)}")
    threshold = None if method is None else method.threshold
    if name in gates_of_methods([name]):
        if threshold is None:
            raise ValueError(f"{where}.{name}.threshold: missing: a threshold decides its rate")
    elif threshold is not None:
        raise ValueError(f"{where}.{name}.threshold: must be left out: it has none")
    return threshold


def _check_varied(space: Space, path: str, varied: Varied, where: str) -> None:
    """Check that a path leads into what is trained, and that the recipe is valid at each end."""
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
