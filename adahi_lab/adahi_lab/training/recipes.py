# SPDX-License-Identifier: Apache-2.0
"""Training recipes: everything that makes a set of checkpoints, or an encoder, in one YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from adahi_lab.faults import faults_of
from adahi_lab.papers.tokens.token_checkpoint import CodecSizes
from adahi_lab.papers.tokens.token_sizes import TokenConfig
from adahi_lab.training.fitting import FitConfig
from adahi_lab.training.flow_training import FlowFitConfig
from adahi_lab.training.tokenizer import TokenizerConfig
from adahi_lab.training.vqbet_training import CodeFitConfig
from adahi_ros.core.schema import LARGEST, Listed, Schema, at_least, checked, must, within
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorConfig
from adahi_ros.policies.flow.flow_checkpoint import FlowConfig
from adahi_ros.policies.intent.intent_checkpoint import EncoderConfig
from adahi_ros.policies.vqbet.vqbet_sizes import VQBeTConfig

TARGET = "target"
CORRECTOR = "corrector"
DISTILLED = "distilled"
INTENT, INTENT_OF_PLAN = "intent", "intent_of_plan"
GOAL_ONCE = "goal_once"
STUDENTS = (CORRECTOR, DISTILLED, INTENT, INTENT_OF_PLAN)
F = TypeVar("F", bound=FitConfig)
VQBET, TOKENS, FLOW = "vqbet", "tokens", "flow"
SEARCHED_FLOW, UNSEARCHED_FLOW = "searched_flow", "unsearched_flow"
Seed = Annotated[int, at_least(0)]
Positive = Annotated[int, at_least(1)]


Rate = Annotated[float, within(0.0, 1.0)]
MOST_RESTS = 0.5  # of the steps


@dataclass(frozen=True)
class DemonstrationRecipe(Schema):
    """Which demonstrations to record; see `tasks.demonstrations.collect_parallel`."""

    episodes: Positive
    seed: Seed
    action_noise: Annotated[float, within(0.0, 1.0)]
    rests: Annotated[float, within(0.0, MOST_RESTS)] = 0.0


@dataclass(frozen=True)
class OwnStatesRecipe(Schema):
    """In which of its own states the target learns from the expert; see `training.own_states`.

    Attributes:
        rounds: each trains a target on what there is, and lets it act.
        episodes: of each round.
        steps: of the training in each round; the last target has its own `fit.steps`.
    """

    rounds: Positive
    episodes: Positive
    steps: Positive


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
    """Return the check of a size: arguments of a network's configuration except those that data gives."""

    def check(size: dict[str, object]) -> dict[str, object]:
        # What has no default comes from the data, as image_dim does; any value will do to check the others.
        given = [each.name for each in fields(kind) if each.default is MISSING or each.name == "image_dim"]
        free = [each.name for each in fields(kind) if each.name not in given]
        for name in size:
            if name not in free:
                raise ValueError(f"{name}: unknown, must be one of {', '.join(free)}")
        checked(kind, {**dict.fromkeys(given, 1), **size})
        return size

    return AfterValidator(check)


@dataclass(frozen=True)
class CorrectorRecipe(NetworkRecipe[FitConfig]):
    """How to make a corrector for the plans of the policy named target, or another student, in simulation.

    Attributes:
        seed: of its weights, batches and rollouts.
        size: arguments of `CorrectorConfig` beyond those that the data gives.
        fit: how long and how fast to train, after every round.
        rounds: of rollouts; the first executes uncorrected plans with noise, later ones use the corrector of
            the rounds before.
        episodes: of each round, at each rate.
        asking_rates: request rates of new plans; the lower, the older the plans.
        samples: fresh plans at every step; those that agree with the old one count.
        noise: of the first round, in action scales.
        beta: from 0 to 1; larger values give more weight to uncertain examples, see `corrector_loss`.
    """

    size: Annotated[dict[str, Any], size_of(CorrectorConfig)]
    fit: FitConfig
    rounds: Positive = 3
    episodes: Positive = 120
    asking_rates: Annotated[Listed[Rate], must("be numbers from 0 to 1", bool)] = (0.01, 0.12, 0.35)
    samples: Positive = 8
    noise: Annotated[float, within(0.0, LARGEST)] = 0.5
    beta: Rate = 0.0


def _at_every_step(values: object) -> object:
    if isinstance(values, dict):
        if "asking_rates" in values:
            raise ValueError("asking_rates: must be left out, the target is asked at every step")
        values = {**values, "asking_rates": [1.0]}
    return values


Distilled = Annotated[CorrectorRecipe, BeforeValidator(_at_every_step)]


@dataclass(frozen=True)
class IntentRecipe(NetworkRecipe[FitConfig]):
    """How to make intents of the policy named target, and the network that acts by them, in simulation.

    Attributes:
        seed: of weights, batches and rollouts.
        size: arguments of `EncoderConfig` beyond those that the data and this recipe give.
        fit: how long and how fast to train, after every round.
        reads_extra: the encoder reads what only the target reads, such as a goal, and so runs beside the
            target; else it reads plans alone, and runs on the robot.
        replies: number of the newest replies that the encoder reads; 1 beside the target.
        hidden: units of each layer of the acting network.
        rounds: of rollouts; the first executes the target's actions with noise, later ones act by the
            intents of the rounds before.
        episodes: of each round.
        noise: of the first round, in action scales.
        rests: share of the steps of all rounds in which the robot is held, see `Rests`.
        sensor_noise_m: of the robot's sensors in every second round, for an encoder beside the target, which
            has exact sensors; see `DisturbedWorld`.
        beta: see `CorrectorRecipe`.
    """

    size: Annotated[dict[str, Any], size_of(EncoderConfig)]
    fit: FitConfig
    reads_extra: bool = True
    replies: Positive = 1
    hidden: Positive = 128
    rounds: Positive = 4
    episodes: Positive = 400
    noise: Annotated[float, within(0.0, LARGEST)] = 0.5
    rests: Annotated[float, within(0.0, MOST_RESTS)] = 0.0
    sensor_noise_m: Annotated[float, within(0.0, 1.0)] = 0.0
    beta: Rate = 0.0

    def __post_init__(self) -> None:
        if self.reads_extra and self.replies > 1:
            raise ValueError(f"replies: {self.replies}, must be 1 where the encoder runs beside the target")
        if self.sensor_noise_m and not self.reads_extra:
            raise ValueError(f"sensor_noise_m: {self.sensor_noise_m}, must be 0 for an encoder on the robot")


@dataclass(frozen=True)
class _VqbetRecipe(ModelRecipe[CodeFitConfig]):
    size: Annotated[dict[str, Any], size_of(VQBeTConfig)]
    fit: CodeFitConfig
    kind: str = VQBET


@dataclass(frozen=True)
class _FlowRecipe(ModelRecipe[FlowFitConfig]):
    size: Annotated[dict[str, Any], size_of(FlowConfig)]
    fit: FlowFitConfig
    kind: str = FLOW


@dataclass(frozen=True)
class TokenRecipe(ModelRecipe[FitConfig]):
    """How to make a policy that speaks tokens; `half` as of `save_tokens`."""

    size: Annotated[dict[str, Any], size_of(TokenConfig)]
    fit: FitConfig
    kind: str = TOKENS
    half: bool = False


@dataclass(frozen=True)
class TokenizerRecipe(NetworkRecipe[FitConfig]):
    size: Annotated[dict[str, Any], size_of(TokenizerConfig)]
    fit: FitConfig


KINDS: dict[str, type[ModelRecipe[Any]]] = {
    VQBET: _VqbetRecipe,
    FLOW: _FlowRecipe,
    SEARCHED_FLOW: _FlowRecipe,
    UNSEARCHED_FLOW: _FlowRecipe,
    TOKENS: TokenRecipe,
}
"""Kinds of policies, and the recipe class of each."""


def _of_its_kind(values: object) -> object:
    if not isinstance(values, dict):
        return values
    kind = values.get("kind", VQBET)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind: {kind!r}, must be one of {', '.join(KINDS)}")
    return checked(KINDS[kind], values)


Policy = Annotated[ModelRecipe[Any], BeforeValidator(_of_its_kind)]


@dataclass(frozen=True)
class Recipe(Schema):
    """How to make policies, and the tokenizer of those with codes.

    Attributes:
        demonstrations: to learn from.
        window_length: H, observations that a policy reads.
        policies: by name, each of a kind of `KINDS`.
        tokenizer: None where no policy has codes.
        tokens: what a token means; None where no policy speaks tokens.
        corrector: of the target's plans; None for none.
        distilled: a policy for the robot with the target's average action and no plans; None for none.
        intent: acts by what an encoder beside the target sends; None for none.
        intent_of_plan: acts by what an encoder on the robot finds in the target's plans; None for none.
        goal_once: a policy for a robot that is given the goal, and no target, to compare intents with: the
            lessons, steps and units of their recipe, without their encoder; None for none.
        own_states: of the target, where the expert is asked, too; None for none.
    """

    demonstrations: DemonstrationRecipe
    window_length: Positive
    policies: Annotated[dict[str, Policy], Field(min_length=1)]
    tokenizer: TokenizerRecipe | None = None
    tokens: CodecSizes | None = None
    corrector: CorrectorRecipe | None = None
    distilled: Distilled | None = None
    intent: IntentRecipe | None = None
    intent_of_plan: IntentRecipe | None = None
    goal_once: IntentRecipe | None = None
    own_states: OwnStatesRecipe | None = None

    def __post_init__(self) -> None:
        target = self.policies.get(TARGET)
        if self.own_states is not None and (target is None or target.kind != FLOW):
            raise ValueError(f"own_states: must be left out, except for a policy {TARGET!r} of kind {FLOW!r}")
        speaking = [name for name, policy in self.policies.items() if policy.kind == VQBET]
        if speaking and self.tokenizer is None:
            raise ValueError(f"tokenizer: missing, {speaking[0]!r} speaks codes")
        if not speaking and self.tokenizer is not None:
            raise ValueError("tokenizer: no policy speaks codes, must be left out")
        if (self.tokens is None) != all(policy.kind != TOKENS for policy in self.policies.values()):
            raise ValueError("tokens: must be given where a policy speaks tokens, and only there")
        if speaking and self.tokens is not None:
            raise ValueError(f"tokens: {speaking[0]!r} speaks codes, must be left out")
        for name in self.taught:
            if TARGET not in self.policies:
                raise ValueError(f"{name}: there is no policy named {TARGET!r} to learn from")
        for name, recipe in ((INTENT, self.intent), (INTENT_OF_PLAN, self.intent_of_plan)):
            if recipe is not None and recipe.reads_extra != (name == INTENT):
                raise ValueError(f"{name}.reads_extra: {recipe.reads_extra}, must be {name == INTENT}")

    @property
    def taught(self) -> dict[str, CorrectorRecipe | IntentRecipe]:
        """The students trained from the target in rounds of rollouts, by name."""
        each: dict[str, CorrectorRecipe | IntentRecipe | None] = {
            CORRECTOR: self.corrector,
            DISTILLED: self.distilled,
            INTENT: self.intent,
            INTENT_OF_PLAN: self.intent_of_plan,
            GOAL_ONCE: self.goal_once,
        }
        return {name: recipe for name, recipe in each.items() if recipe is not None}

    def moved(self, offset: int) -> Recipe:
        """Return the same recipe with an offset added to every seed, also of the demonstrations."""

        def seeded(part: Any) -> Any:
            return replace(part, seed=part.seed + offset)

        made = {name: seeded(recipe) for name, recipe in self.taught.items()}
        if self.tokenizer is not None:
            made["tokenizer"] = seeded(self.tokenizer)
        policies = {name: seeded(policy) for name, policy in self.policies.items()}
        return replace(self, demonstrations=seeded(self.demonstrations), policies=policies, **made)


def recipe_of(values: Any) -> Recipe:
    """Return the recipe in plain data; raises as `load_recipe`, without the file."""
    recipe: Recipe = checked(Recipe, values, "recipe")
    return recipe


@dataclass(frozen=True)
class _PupilFile(Schema):
    corrector: CorrectorRecipe
    distilled: Distilled | None = None
    intent: IntentRecipe | None = None
    intent_of_plan: IntentRecipe | None = None


@dataclass(frozen=True)
class PupilRecipes:
    """How to make a robot's policies from a target's plans.

    Attributes:
        corrector: of the plans.
        distilled: a policy without plans.
        intents: by name, `INTENT` and `INTENT_OF_PLAN`, those that the file has.
    """

    corrector: CorrectorRecipe
    distilled: CorrectorRecipe
    intents: Mapping[str, IntentRecipe] = field(default_factory=dict)


def _pupils(values: Any) -> PupilRecipes:
    """Return a recipe's students; if it has only one recipe, both use it."""
    if isinstance(values, dict) and "policies" in values:
        recipe_of(values)
        values = {name: values[name] for name in STUDENTS if name in values}
    file: _PupilFile = checked(_PupilFile, values, "recipe")
    intents = {INTENT: file.intent, INTENT_OF_PLAN: file.intent_of_plan}
    made = {name: recipe for name, recipe in intents.items() if recipe is not None}
    return PupilRecipes(file.corrector, file.distilled or file.corrector, made)


@dataclass(frozen=True)
class EncoderRecipe(Schema):
    """How to make an encoder.

    Attributes:
        architecture: a key of `export.ARCHITECTURES`.
        size: sizes of its layers.
        frames: which episodes to render.
        seed: of weights and batches.
        fit: how long and how fast to train; None takes the weights as they are.
        weights: to start from, for `resnet.load_weights`; None draws them.

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


def load_recipe(path: Path) -> Recipe:
    """Read a recipe.

    Raises:
        ValueError: something in it is missing, unknown, of the wrong type or out of range; it names the file.
        FileNotFoundError: no such file.
    """
    with faults_of(path):
        return recipe_of(read_yaml(path))


def load_pupils(path: Path) -> PupilRecipes:
    """Read the recipe of a corrector and of a policy distilled from plans; raises as `load_recipe`.

    The file may have other parts.
    """
    with faults_of(path):
        return _pupils(read_yaml(path))


def load_encoder_recipe(path: Path) -> EncoderRecipe:
    """Read a recipe of an encoder; raises as `load_recipe`."""
    with faults_of(path):
        recipe: EncoderRecipe = checked(EncoderRecipe, read_yaml(path), "recipe")
        return recipe
