# SPDX-License-Identifier: Apache-2.0
"""Training recipes: everything that makes a set of checkpoints, in one YAML file."""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from adahi_ros.lab.training.fitting import FitConfig
from adahi_ros.lab.training.training_recipe import (
    VQBET,
    DemonstrationRecipe,
    F,
    ModelRecipe,
    RecipeError,
    build,
    check,
    checked,
    mapping,
    read_recipe,
)
from adahi_ros.lab.training.vqbet_training import CodeFitConfig
from adahi_ros.policies.corrector.corrector_network import CorrectorConfig
from adahi_ros.policies.flow.flow_network import FlowConfig
from adahi_ros.policies.vqbet.tokenizer import TokenizerConfig
from adahi_ros.policies.vqbet.vqbet_network import VQBeTConfig

TARGET = "target"
CORRECTOR = "corrector"
DISTILLED = "distilled"


@dataclass(frozen=True)
class CorrectorRecipe:
    """How to make a corrector of the plans of the policy named target, or another pupil, in simulation.

    Attributes:
        seed: of its weights, batches and rollouts.
        size: arguments of `CorrectorConfig` beyond those that the data gives.
        fit: how long and how fast to train, after every round.
        rounds: of rollouts; the first follows plans blindly and with noise, the others are corrected by what
            the rounds before have taught.
        episodes: of each round, at each rate.
        asking_rates: of new plans; the lower, the older the plans.
        samples: fresh plans at every step, of which those count that agree with the old one.
        noise: of the first round, in action scales.
        beta: from 0 to 1; the larger, the more what is hard to foresee counts, see `corrector_loss`.
    """

    seed: int
    size: dict[str, Any]
    fit: FitConfig
    rounds: int = 3
    episodes: int = 120
    asking_rates: tuple[float, ...] = (0.01, 0.12, 0.35)
    samples: int = 8
    noise: float = 0.5
    beta: float = 0.0

    def __post_init__(self) -> None:
        for name, smallest in (("seed", 0), ("rounds", 1), ("episodes", 1), ("samples", 1), ("noise", 0)):
            if not smallest <= getattr(self, name) < math.inf:
                raise ValueError(f"{name}: {getattr(self, name)}, must be at least {smallest} and finite")
        if not 0.0 <= self.beta <= 1.0:
            raise ValueError(f"beta: {self.beta}, must be from 0 to 1")
        if not self.asking_rates or not all(0.0 <= rate <= 1.0 for rate in self.asking_rates):
            raise ValueError(f"asking_rates: {list(self.asking_rates)}, must be numbers from 0 to 1")


S = TypeVar("S", DemonstrationRecipe, ModelRecipe[Any], ModelRecipe[FitConfig], CorrectorRecipe)
KINDS: dict[str, tuple[type, type[FitConfig]]] = {
    VQBET: (VQBeTConfig, CodeFitConfig),
    "flow": (FlowConfig, FitConfig),
}
"""Kinds of policies: their network's configuration, and how it is fitted."""


@dataclass(frozen=True)
class Recipe:
    """How to make policies, and the tokenizer of those that speak codes.

    Attributes:
        demonstrations: to learn from.
        window_length: H, observations that a policy reads.
        policies: by name, each of a kind of `KINDS`.
        tokenizer: None where no policy speaks codes.
        corrector: of the target's plans; None for none.
        distilled: a policy for the robot that does without plans what the target does on average; None for
            none.
    """

    demonstrations: DemonstrationRecipe
    window_length: int
    policies: dict[str, ModelRecipe[Any]]
    tokenizer: ModelRecipe[FitConfig] | None = None
    corrector: CorrectorRecipe | None = None
    distilled: CorrectorRecipe | None = None

    def __post_init__(self) -> None:
        if self.window_length < 1:
            raise ValueError(f"window_length: {self.window_length}, must be at least 1")
        if not self.policies:
            raise ValueError("policies: none, must name at least one")
        speaking = [name for name, policy in self.policies.items() if policy.kind == VQBET]
        if speaking and self.tokenizer is None:
            raise ValueError(f"tokenizer: missing, {speaking[0]!r} speaks codes")
        if not speaking and self.tokenizer is not None:
            raise ValueError("tokenizer: no policy speaks codes, must be left out")
        if self.corrector is not None and TARGET not in self.policies:
            raise ValueError(f"corrector: there is no policy named {TARGET!r} to correct the plans of")
        if self.distilled is not None and TARGET not in self.policies:
            raise ValueError(f"distilled: there is no policy named {TARGET!r} to learn from")

    @property
    def taught(self) -> dict[str, CorrectorRecipe]:
        """What is made of the target in rounds of rollouts, by name."""
        each = {CORRECTOR: self.corrector, DISTILLED: self.distilled}
        return {name: recipe for name, recipe in each.items() if recipe is not None}

    def moved(self, offset: int) -> Recipe:
        """Return the same recipe with every seed higher by an offset, that of the demonstrations, too."""

        def seeded(part: S) -> S:
            return replace(part, seed=part.seed + offset)

        return replace(
            self,
            demonstrations=seeded(self.demonstrations),
            policies={name: seeded(policy) for name, policy in self.policies.items()},
            tokenizer=None if self.tokenizer is None else seeded(self.tokenizer),
            corrector=None if self.corrector is None else seeded(self.corrector),
            distilled=None if self.distilled is None else seeded(self.distilled),
        )


def _model(size_kind: type, fit_kind: type[F], values: Any, where: str) -> ModelRecipe[F]:
    check(ModelRecipe, values, where)
    # What has no default comes from the data, as image_dim does; any value will do to check the others.
    given = frozenset(
        field.name for field in fields(size_kind) if field.default is MISSING or field.name == "image_dim"
    )
    check(size_kind, values["size"], f"{where}.size", given)
    build(size_kind, {**dict.fromkeys(given, 1), **values["size"]}, f"{where}.size")
    fit = checked(fit_kind, values["fit"], f"{where}.fit")
    return build(ModelRecipe, {**values, "fit": fit}, where)


def _policy(values: Any, where: str) -> ModelRecipe[Any]:
    kind = mapping(values, where).get("kind", VQBET)
    if not isinstance(kind, str) or kind not in KINDS:
        raise RecipeError(f"{where}.kind: {kind!r}, must be one of {', '.join(KINDS)}")
    return _model(*KINDS[kind], values, where)


def recipe_of(values: Any) -> Recipe:
    """Return the recipe that plain data says; raises RecipeError as `load_recipe` does."""
    where = "recipe"
    check(Recipe, values, where)
    policies = mapping(values["policies"], f"{where}.policies")
    parts = {
        "demonstrations": checked(DemonstrationRecipe, values["demonstrations"], f"{where}.demonstrations"),
        "policies": {name: _policy(model, f"{where}.policies.{name}") for name, model in policies.items()},
    }
    if "tokenizer" in values:
        parts["tokenizer"] = _model(TokenizerConfig, FitConfig, values["tokenizer"], f"{where}.tokenizer")
    if "corrector" in values:
        parts["corrector"] = _corrector(values["corrector"], f"{where}.corrector")
    if "distilled" in values:
        parts["distilled"] = _distilled(values["distilled"], f"{where}.distilled")
    return build(Recipe, {**values, **parts}, where)


def _corrector(values: Any, where: str) -> CorrectorRecipe:
    check(CorrectorRecipe, values, where)
    given = frozenset(field.name for field in fields(CorrectorConfig) if field.default is MISSING)
    check(CorrectorConfig, values["size"], f"{where}.size", given)
    build(CorrectorConfig, {**dict.fromkeys(given, 1), **values["size"]}, f"{where}.size")
    rates = values.get("asking_rates", list(CorrectorRecipe.asking_rates))
    if not isinstance(rates, list) or not all(type(rate) in (int, float) for rate in rates):
        raise RecipeError(f"{where}.asking_rates: {rates!r}, must be a list of numbers")
    fit = checked(FitConfig, values["fit"], f"{where}.fit")
    return build(CorrectorRecipe, {**values, "fit": fit, "asking_rates": tuple(rates)}, where)


def _distilled(values: Any, where: str) -> CorrectorRecipe:
    if "asking_rates" in mapping(values, where):
        raise RecipeError(f"{where}.asking_rates: must be left out, the target is asked at every step")
    return replace(_corrector(values, where), asking_rates=(1.0,))


@dataclass(frozen=True)
class PupilRecipes:
    """How to make of a target's plans what a robot has of its own.

    Attributes:
        corrector: of the plans.
        distilled: a policy that is told no plan.
    """

    corrector: CorrectorRecipe
    distilled: CorrectorRecipe


def _pupils(values: Any) -> PupilRecipes:
    """Return what a recipe says of pupils; who has but one recipe for both, has that for both."""
    if "policies" in mapping(values, "recipe"):
        whole = recipe_of(values)
        corrector, distilled = whole.corrector, whole.distilled
    else:
        unknown = sorted(values.keys() - {CORRECTOR, DISTILLED})
        if unknown:
            raise RecipeError(f"recipe.{unknown[0]}: unknown, must be one of {CORRECTOR}, {DISTILLED}")
        corrector = _corrector(values[CORRECTOR], f"recipe.{CORRECTOR}") if CORRECTOR in values else None
        distilled = _distilled(values[DISTILLED], f"recipe.{DISTILLED}") if DISTILLED in values else None
    if corrector is None:
        raise RecipeError("recipe.corrector: missing")
    return PupilRecipes(corrector, corrector if distilled is None else distilled)


def load_pupils(path: Path) -> PupilRecipes:
    """Read how a corrector and a policy distilled from plans are made, of a recipe that may have more.

    Raises:
        RecipeError: something in it is missing, unknown, of the wrong type or out of range.
        FileNotFoundError: no such file.
    """
    return read_recipe(path, _pupils)


def load_recipe(path: Path) -> Recipe:
    """Read a recipe.

    Raises:
        RecipeError: something in it is missing, unknown, of the wrong type or out of range.
        FileNotFoundError: no such file.
    """
    return read_recipe(path, recipe_of)
