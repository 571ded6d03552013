"""A search on toy policies: tiny networks, few episodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from adahi_lab.calibration.parameter_file import Calibration, load_calibration
from adahi_lab.evaluation.loaded_policies import PolicyFiles

SPACE: dict[str, Any] = {
    "recipe": "recipe.yaml",
    "train": ["draft"],
    "vary": {"policies.draft.fit.learning_rate": {"low": 1.0e-4, "high": 1.0e-2, "scale": "log"}},
    "methods": {"adahi": {"threshold": {"low": 0.1, "high": 2.0}}},
    "price": 0.5,
    "episodes": 2,
    "stages": {"count": 4, "episodes": 1, "stop": "never"},
}


@pytest.fixture
def space_file(tmp_path: Path, recipe_of: Callable[..., str]) -> Callable[..., Path]:
    """From what is different, or "absent", to a file of a space, beside its recipe."""
    (tmp_path / "recipe.yaml").write_text(recipe_of(10, draft=8, target=8))

    def write(**changes: Any) -> Path:
        path = tmp_path / "space.yaml"
        values = {name: value for name, value in {**SPACE, **changes}.items() if value != "absent"}
        path.write_text(yaml.safe_dump(values))
        return path

    return write


@pytest.fixture
def toy_calibration(exported: Path, tmp_path: Path) -> Path:
    policies = PolicyFiles(exported, "onnxruntime").load()
    path = tmp_path / "toy.yaml"
    digests = policies.draft.digest, policies.target.digest
    Calibration("ball", *digests, 0.5, "std", 1.0, 0.6, {"deviation": 0.4}).save(path, "deviation", "by hand")
    return path


@pytest.fixture
def plan_in(
    exported: Path, tmp_path: Path, space_file: Callable[..., Path], toy_calibration: Path
) -> Callable[..., Any]:
    """From the name of a folder and what is different in the space to a plan of a search there."""
    search = pytest.importorskip("adahi_lab.tuning.search", reason="pip install -r requirements/tune.txt")
    from adahi_lab.tuning.search_space import load_space
    from adahi_lab.tuning.trial import Ground

    def make(name: str, trials: int = 2, seed: int = 0, **changes: Any) -> Any:
        out = tmp_path / name
        out.mkdir(exist_ok=True)
        space = load_space(space_file(**changes), "ball")
        calibration = replace(load_calibration(toy_calibration), thresholds={})
        ground = Ground("ball", space, exported, calibration, 0, out, "adahi lab tune ball")
        return search.Plan(ground, f"sqlite:///{out / 'study.db'}", "ball", trials, seed, 3600.0, 1)

    return make
