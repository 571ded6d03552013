"""What is shipped belongs together: weights, their export, their calibration, the recipe."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import yaml

from adahi_lab.calibration.calibrate import node_parameters
from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.evaluation.loaded_policies import PLANS, PolicyFiles
from adahi_lab.papers.tokens.token_checkpoint import load_tokens
from adahi_lab.tasks import goal_is_for_target, make, names
from adahi_lab.training.recipes import GOAL_ONCE, IntentRecipe, Recipe, load_recipe
from adahi_ros.core.assets import asset
from adahi_ros.core.checkpoint_files import kind_of
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.corrector.corrector_checkpoint import load_corrector
from adahi_ros.policies.flow.flow_checkpoint import load_flow
from adahi_ros.policies.intent.intent_checkpoint import (
    SUFFIX,
    load_encoder_checkpoint,
    load_intent_checkpoint,
)
from adahi_ros.policies.networks.onnx_files import DIGEST
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint

POLICIES = ("draft", "target")
LOADERS: dict[str | None, Callable[[Path], Any]] = {
    "vqbet": load_checkpoint,
    "flow": load_flow,
    "tokens": load_tokens,
    "corrector": load_corrector,
    "intent": load_intent_checkpoint,
    "intent_encoder": load_encoder_checkpoint,
}
TRAINED = sorted(names())
MADE_ANYWHERE = sorted(set(TRAINED) - {"libero_goal"})  # that one needs a converted scene
PLANNED = sorted(
    path.stem.removesuffix(f"-{PLANS}") for path in asset("config/recipes").glob(f"*-{PLANS}.yaml")
)


def folder(task: str) -> Path:
    return asset(f"checkpoints/{task}")


def folders(tasks: list[str]) -> pytest.MarkDecorator:
    """Test what is in each task's folder, which does not need the task itself."""
    return pytest.mark.parametrize("models", list(map(folder, tasks)), ids=tasks)


def check_export(checkpoint: Path) -> None:
    session = onnxruntime.InferenceSession(
        checkpoint.with_suffix(".onnx"), providers=["CPUExecutionProvider"]
    )
    made_of = session.get_modelmeta().custom_metadata_map[DIGEST]
    assert made_of == LOADERS[kind_of(checkpoint)](checkpoint).digest()


def check_notes(models: Path, recipe: Recipe, command: str) -> None:
    """Every model there was made by the command, alone or not, and is what the recipe asks for."""
    made = {"tokenizer": recipe.tokenizer, **recipe.policies, **recipe.taught}
    for name, model in made.items():
        if model is None:
            continue
        notes = json.loads((models / f"{name}.json").read_text())
        made_by = notes["training"]["command"].replace("adahi train policy", "adahi train")
        assert made_by in (command, f"{command} --only {name}")
        assert notes["training"]["seed"] == model.seed
        assert notes["training"]["steps"] == model.fit.steps
        if name == GOAL_ONCE:  # a fair yardstick: the intent's lessons, steps and units
            assert model == recipe.intent
            assert (
                json.loads((models / f"{name}.json").read_text())["config"]["hidden"] == recipe.intent.hidden
            )
            continue
        sized = f"{name}{SUFFIX}" if isinstance(model, IntentRecipe) else name
        config = json.loads((models / f"{sized}.json").read_text())["config"]
        assert model.size.items() <= config.items()


def test_the_tokens_are_what_their_recipe_makes() -> None:
    name = "metaworld-tokens"
    recipe, models = load_recipe(asset(f"config/recipes/{name}.yaml")), folder("metaworld") / "tokens"
    command = "adahi train metaworld --recipe config/recipes/{}.yaml --out checkpoints/metaworld/tokens"
    check_notes(models, recipe, command.format(name))
    policies = PolicyFiles(models, "onnxruntime").load()
    policies.check_goal_is_for_target()
    assert policies.share_codes
    assert policies.draft.signature.parameters < policies.target.signature.parameters / 10
    for policy in POLICIES:
        check_export(models / policy)


@pytest.mark.parametrize("task", [task for task in MADE_ANYWHERE if goal_is_for_target(task)])
def test_a_goal_for_the_target_alone_is_read_by_nothing_on_the_robot(task: str) -> None:
    policies = PolicyFiles(folder(task), "onnxruntime").load()
    policies.check_goal_is_for_target()
    assert policies.target.signature.goal_dim == make(task).spec.goal_dim > 0
    if policies.plans is not None:
        assert policies.plans.signature.goal_dim == policies.target.signature.goal_dim


@pytest.mark.parametrize("task", [task for task in MADE_ANYWHERE if make(task).spec.images_for_target])
def test_images_for_the_target_alone_are_read_by_every_target(task: str) -> None:
    policies = PolicyFiles(folder(task), "onnxruntime").load()  # which lets nothing on the robot read them
    features = make(task).image_features.shape[1]  # type: ignore[attr-defined]
    for target in (policies.target, policies.plans):
        assert target is not None
        assert target.signature.image_dim == features > 0


@folders(TRAINED)
@pytest.mark.parametrize("name", POLICIES)
def test_the_export_is_of_the_weights_beside_it(models: Path, name: str) -> None:
    check_export(models / name)


@folders(PLANNED)
def test_the_export_of_what_plans_is_of_the_weights_beside_it(models: Path) -> None:
    made = sorted((models / PLANS).glob("*.safetensors"))
    assert made
    for weights in made:
        check_export(weights.with_suffix(""))


@folders(PLANNED)
def test_a_robots_draft_takes_every_plan_that_the_target_was_shown(models: Path) -> None:
    plans = load_flow(models / PLANS / "target")
    shown = np.stack([plans.action_low, plans.action_high])[:, None]
    assert load_policy(models / "draft", "onnxruntime").sound(shown).all()


@folders(TRAINED)
def test_the_calibration_is_of_the_shipped_policies(models: Path) -> None:
    calibration = load_calibration(asset(f"config/{models.name}.yaml"))
    assert calibration.task == models.name
    for name in POLICIES:
        assert getattr(calibration, name) == load_checkpoint(models / name).digest()


@folders(MADE_ANYWHERE)
def test_the_parameters_of_the_robots_node_are_the_tasks(models: Path) -> None:
    task = models.name
    parameters = yaml.safe_load(asset(f"config/{task}.yaml").read_text())["/**"]["ros__parameters"]
    expected = node_parameters(task, f"{task}/draft", models)
    assert {name: parameters.get(name) for name in expected} == expected


@folders(TRAINED)
def test_the_recipe_is_what_the_policies_were_made_by(models: Path) -> None:
    recipe = load_recipe(asset(f"config/recipes/{models.name}.yaml"))
    assert set(recipe.policies) == set(POLICIES)
    check_notes(models, recipe, f"adahi train {models.name}")


@folders(PLANNED)
def test_the_recipe_of_plans_is_what_target_and_corrector_were_made_by(models: Path) -> None:
    task, recipe = models.name, f"config/recipes/{models.name}-{PLANS}.yaml"
    out = f"checkpoints/{task}/{PLANS}"
    check_notes(asset(out), load_recipe(asset(recipe)), f"adahi train {task} --recipe {recipe} --out {out}")
