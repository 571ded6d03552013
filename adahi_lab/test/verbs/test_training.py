from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import onnxruntime
import yaml

from adahi_ros.core.assets import asset
from adahi_ros.policies.backends import load_policy
from test.cli.conftest import Fails, Measured, Run


def test_train_follows_a_recipe(
    recipe: dict[str, Any], tmp_path: Path, run: Run, measured: Measured, fails: Fails
) -> None:
    data = tmp_path / "demos.safetensors"
    run("data", "simulate", "ball", "--out", data, "--episodes", 4, "--workers", 1)
    recipe["demonstrations"]["episodes"] = 400  # which are not recorded, for there are some
    path, out = tmp_path / "recipe.yaml", tmp_path / "out"
    path.write_text(yaml.safe_dump(recipe))
    result, figures = measured("train", "ball", "--recipe", path, "--demos", data, "--out", out)
    text = result.output.replace("\n", " ")
    assert f"checkpoints: {out} " in text
    assert (
        f"other verbs take these policies with --checkpoints {out}, else {asset('checkpoints/ball')}" in text
    )
    assert figures["models"].keys() == {"tokenizer", "draft"}
    assert load_policy(out / "draft", "onnxruntime").signature.parameters > 0
    recipe["policies"]["draft"]["size"]["depth"] = 3
    path.write_text(yaml.safe_dump(recipe))
    expected = f"adahi: {path}: recipe.policies.draft.size.depth: unknown, must be one of width,"
    assert fails("train", "ball", "--recipe", path, "--out", out).startswith(expected)


def test_export_writes_what_runs_without_torch(checkpoints: Path, tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(checkpoints, folder)
    result = run("export", "ball", "--checkpoints", folder)
    for name in ("draft", "target"):
        assert f"{folder / name}.onnx: " in result.output
        session = onnxruntime.InferenceSession(folder / f"{name}.onnx", providers=["CPUExecutionProvider"])
        assert [each.name for each in session.get_inputs()] == ["windows", "goals"]
