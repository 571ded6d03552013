from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from adahi_lab.training.fitting import FitConfig
from adahi_lab.training.recipes import load_pupils, load_recipe
from adahi_lab.training.vqbet_training import CodeFitConfig
from adahi_ros.core.assets import asset


def whole() -> dict[str, Any]:
    return {
        "demonstrations": {"episodes": 3, "seed": 0, "action_noise": 0.1},
        "tokenizer": {"seed": 1, "size": {"codebooks": 2, "hidden": 8}, "fit": {"steps": 5}},
        "window_length": 2,
        "policies": {
            "draft": {"seed": 2, "size": {"width": 4, "heads": 2}, "fit": {"steps": 4, "learning_rate": 1}},
        },
    }


def planning() -> dict[str, Any]:
    """A recipe of a target that plans, and of a corrector of its plans."""
    size = {"horizon": 4, "width": 8, "heads": 2, "noise": 0.5}
    return {
        "demonstrations": {"episodes": 3, "seed": 0, "action_noise": 0.1},
        "window_length": 2,
        "policies": {"target": {"kind": "flow", "seed": 2, "size": size, "fit": {"steps": 4}}},
        "corrector": {
            "seed": 3,
            "size": {"hidden": 8},
            "fit": {"steps": 5},
            "rounds": 2,
            "episodes": 6,
            "asking_rates": [0, 0.5],
        },
    }


def write(path: Path, recipe: Any) -> Path:
    path.write_text(yaml.safe_dump(recipe))
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path / "recipe.yaml", whole()))
    assert recipe.demonstrations.episodes == 3
    assert recipe.tokenizer is not None
    assert recipe.tokenizer.size == {"codebooks": 2, "hidden": 8}
    assert recipe.tokenizer.fit == FitConfig(5)
    assert recipe.policies["draft"].fit == CodeFitConfig(4, learning_rate=1)
    assert recipe.window_length == 2


OF_CODES = [
    ("extra", 1, "{}: unknown, must be one of demonstrations, window_length, policies, "),
    ("window_length", 0, "{}: 0, must be an integer of at least 1"),
    ("demonstrations.episodes", 0, "{}: 0, must be an integer of at least 1"),
    ("demonstrations.action_noise", 2, "{}: 2, must be a number"),
    ("tokenizer.size.depth", 2, "{}: unknown, must be one of chunk_length, "),
    ("tokenizer.size.action_dim", 2, "{}: unknown"),
    ("tokenizer.size.hidden", "8", "{}: '8', must be an integer"),
    ("tokenizer.size.codebooks", 99, "tokenizer.size.codebook_size ** codebooks: "),
    ("policies", {}, "{}: {}, must be of 1 entries at least"),
    ("policies.draft.fit.steps", 0, "policies.draft.fit.fit.steps: 0, must be at least 1"),
    ("policies.draft.fit.epochs", 3, "{}: unknown, must be one of steps, batch_size,"),
    ("policies.draft.fit.learning_rate", -1.0, "policies.draft.fit.fit.learning_rate: -1.0, must be"),
    ("policies.draft.size.depth", 2, "{}: unknown, must be one of width, layers, heads, head_hidden"),
    ("policies.draft.size.codebooks", 2, "{}: unknown"),
    ("policies.draft.size.heads", 3, "policies.draft.size.width: 4, must be a multiple of"),
    ("policies.draft.size.layers", 0, "{}: 0, must be an integer of at least 1"),
]
OF_PLANS = [
    ("policies.target.kind", "diffusion", "{}: 'diffusion', must be one of vqbet, flow"),
    ("policies.target.kind", 3, "{}: 3, must be one of vqbet, flow"),
    ("policies.target.kind", "vqbet", "policies.target.size.horizon: unknown"),
    ("policies.target.size.head_hidden", 8, "{}: unknown"),
    ("policies.target.size.action_dim", 2, "{}: unknown"),
    ("policies.target.size.horizon", 0, "{}: 0, must be an integer from 1 to 4096"),
    ("policies.target.size.noise", -1.0, "{}: -1.0, must be"),
    ("policies.target.size.heads", 3, "policies.target.size.width: 8, must be a multiple of"),
    ("policies.target.fit.code_weight", 1, "{}: unknown"),
    ("policies", {"draft": planning()["policies"]["target"]}, "corrector: there is no policy named"),
    ("tokenizer", whole()["tokenizer"], "{}: no policy speaks codes, must be left out"),
    ("corrector.width", 8, "{}: unknown, must be one of seed, size, fit, rounds,"),
    ("corrector.size.hidden", 0, "{}: 0, must be an integer from 1 to 4096"),
    ("corrector.size.horizon", 4, "{}: unknown, must be one of hidden"),
    ("corrector.fit.steps", 0, "corrector.fit.fit.steps: 0, must be at least 1"),
    ("corrector.rounds", 0, "{}: 0, must be an integer of at least 1"),
    ("corrector.beta", 1.5, "{}: 1.5, must be a number from 0 to 1"),
    ("corrector.noise", -0.1, "{}: -0.1, must be a number from 0"),
    ("corrector.asking_rates", 0.5, "{}: 0.5, must be numbers"),
    ("corrector.asking_rates", [], "{}: [], must be numbers from 0 to 1"),
    ("corrector.asking_rates", [1.5], "{}: [1.5], must be numbers from 0 to 1"),
]


@pytest.mark.parametrize(
    ("recipe", "field", "value", "message"),
    [*((whole, *row) for row in OF_CODES), *((planning, *row) for row in OF_PLANS)],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, recipe: Callable[[], dict[str, Any]], field: str, value: Any, message: str
) -> None:
    check_refused(tmp_path, recipe(), field, value, f"recipe.{message.replace('{}', field, 1)}")


def check_refused(folder: Path, recipe: dict[str, Any], field: str, value: Any, message: str) -> None:
    """Check that a recipe is refused with a field changed, or left out where its value is None."""
    part: dict[str, Any] = recipe
    *parents, last = field.split(".")
    for parent in parents:
        part = part[parent]
    if value is None:
        del part[last]
    else:
        part[last] = value
    path = write(folder / "recipe.yaml", recipe)
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {message}')}"):
        load_recipe(path)


def test_what_is_distilled_asks_its_target_at_every_step(tmp_path: Path) -> None:
    values = planning()
    values["distilled"] = {name: each for name, each in values["corrector"].items() if name != "asking_rates"}
    recipe = load_recipe(write(tmp_path / "recipe.yaml", values))
    assert recipe.corrector is not None
    assert recipe.distilled == replace(recipe.corrector, asking_rates=(1.0,))
    assert recipe.taught == {"corrector": recipe.corrector, "distilled": recipe.distilled}
    assert load_recipe(write(tmp_path / "recipe.yaml", planning())).taught.keys() == {"corrector"}
    message = "recipe.distilled.asking_rates: must be left out, the target is asked at every step"
    check_refused(tmp_path, values, "distilled.asking_rates", [0.5], message)
    values["policies"] = {"draft": values["policies"]["target"]}
    del values["corrector"], values["distilled"]["asking_rates"]
    check_refused(tmp_path, values, "window_length", 1, "recipe.distilled: there is no policy named 'target'")


def test_codes_need_a_tokenizer(tmp_path: Path) -> None:
    check_refused(tmp_path, whole(), "tokenizer", None, "recipe.tokenizer: missing, 'draft' speaks codes")


@pytest.mark.parametrize(
    ("text", "message"), [("", "recipe: None, must be a mapping"), ("a: [1", "not YAML: ")]
)
def test_another_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {message}')}"):
        load_recipe(path)


def test_an_offset_moves_every_seed_and_nothing_else(tmp_path: Path) -> None:
    for written in (whole(), {**planning(), "distilled": {**planning()["corrector"]}}):
        written.get("distilled", {}).pop("asking_rates", None)
        recipe = load_recipe(write(tmp_path / "recipe.yaml", written))
        for part in [written["demonstrations"], *written["policies"].values()]:
            part["seed"] += 100
        for name in ("tokenizer", "corrector", "distilled"):
            if name in written:
                written[name]["seed"] += 100
        assert recipe.moved(100) == load_recipe(write(tmp_path / "moved.yaml", written)) != recipe


def test_what_distils_needs_no_recipe_of_the_target(tmp_path: Path) -> None:
    shipped = load_pupils(asset("config/recipes/distill/default.yaml"))
    assert shipped.corrector.fit.steps == shipped.distilled.fit.steps > 1000
    corrector = planning()["corrector"]
    alone = load_pupils(write(tmp_path / "alone.yaml", {"corrector": corrector}))
    assert alone.distilled == alone.corrector
    assert load_pupils(write(tmp_path / "whole.yaml", planning())) == alone
    distilled = {"seed": 9, "size": {"hidden": 4}, "fit": {"steps": 7}}
    both = load_pupils(write(tmp_path / "both.yaml", {"corrector": corrector, "distilled": distilled}))
    assert (both.corrector, both.distilled.seed) == (alone.corrector, 9)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"distilled": planning()["corrector"]}, "recipe.distilled.asking_rates: must be left out"),
        ({"corrected": {}}, "recipe.corrected: unknown, must be one of corrector, distilled"),
        (whole(), "recipe.corrector: missing"),
        ({"corrector": {"seed": 1, "size": {}}}, "recipe.corrector.fit: missing"),
        ([1], "recipe: [1], must be a mapping"),
    ],
)
def test_what_is_wrong_with_a_recipe_to_distil_by_is_named(tmp_path: Path, recipe: Any, message: str) -> None:
    path = write(tmp_path / "recipe.yaml", recipe)
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {message}')}"):
        load_pupils(path)


def speaking() -> dict[str, Any]:
    """A recipe of a draft that speaks tokens."""
    return {
        "demonstrations": {"episodes": 3, "seed": 0, "action_noise": 0.1},
        "tokens": {"kind": "bins", "chunk_length": 4, "codebook_size": 16},
        "window_length": 2,
        "policies": {
            "draft": {"kind": "tokens", "seed": 2, "size": {"width": 4, "heads": 2}, "fit": {"steps": 4}}
        },
    }


def test_a_recipe_of_tokens_says_what_a_token_means(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path / "recipe.yaml", speaking()))
    assert recipe.tokens is not None
    assert recipe.tokens.chunk_length == 4
    without = {name: part for name, part in speaking().items() if name != "tokens"}
    for wrong in (without, {**planning(), "tokens": speaking()["tokens"]}):
        with pytest.raises(ValueError, match="tokens: must be given where a policy speaks tokens, and only"):
            load_recipe(write(tmp_path / "recipe.yaml", wrong))
    mixed = {**whole(), "tokens": speaking()["tokens"]}
    mixed["policies"] = {**mixed["policies"], "target": speaking()["policies"]["draft"]}
    with pytest.raises(ValueError, match="tokens: 'draft' speaks codes, must be left out"):
        load_recipe(write(tmp_path / "recipe.yaml", mixed))
