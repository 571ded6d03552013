from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test.toys import code_policy

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.evaluation.loaded_policies import Policies, PolicyFiles, check_fits
from adahi_ros.core.assets import asset
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.signature import Feature
from adahi_ros.policies.backends import load_policy


def test_policies_of_two_tokenizers_are_refused(
    checkpoints: Path, make_checkpoints: Callable[..., Path]
) -> None:
    draft = load_policy(checkpoints / "draft", "torch")
    target = load_policy(make_checkpoints(seed=1) / "target", "torch")
    ours, theirs = (code_policy(policy).decoder.fingerprint for policy in (draft, target))
    with pytest.raises(ValueError, match=f"the draft's is {ours}, the target's {theirs}"):
        Policies(draft, target)


def test_a_task_without_policies_of_codes_needs_only_those_of_plans(tmp_path: Path) -> None:
    shutil.copytree(asset("checkpoints/ball/plans"), tmp_path / "plans")
    files = PolicyFiles(tmp_path, "onnxruntime")
    made = files.load()
    assert made.draft.digest == load_policy(tmp_path / "plans/distilled", "onnxruntime").digest
    assert made.plans is not None
    assert made.target.digest == made.plans.digest
    (tmp_path / "plans/distilled.json").unlink()
    with pytest.raises(CheckpointError, match="draft"):
        files.load()


def test_draft_and_target_may_read_unlike_histories_and_features(policies: Policies) -> None:
    def reading(**changes: Any) -> Any:
        return SimpleNamespace(signature=replace(policies.target.signature, **changes))

    Policies(policies.draft, reading(history=9))
    Policies(policies.draft, reading(conditions=()))
    Policies(policies.draft, reading(conditions=(Feature("goal", 2), Feature("object", 3))))
    with pytest.raises(ValueError, match=r"^goal: the draft's is 2, the target's 3; must be the same$"):
        Policies(policies.draft, reading(conditions=(Feature("goal", 3),)))


def test_a_goal_may_be_for_the_target_alone(policies: Policies) -> None:
    def untold(actor: Any) -> Any:
        return SimpleNamespace(signature=replace(actor.signature, conditions=()))

    blind = untold(policies.target)
    alone = replace(policies, draft=untold(policies.draft), corrector=blind, distilled=blind)
    alone.check_goal_is_for_target()
    with pytest.raises(ValueError, match=r"^goal_dim: that of plans is 0, the target's 2; must be the same$"):
        replace(policies, plans=blind)
    bare: Any = SimpleNamespace(signature=policies.target.signature)
    for name in ("draft", "corrector", "distilled"):
        message = f"^{name}: reads a goal, which this task tells to the target alone$"
        with pytest.raises(ValueError, match=message):
            replace(alone, **{name: bare}).check_goal_is_for_target()


def test_images_may_be_for_the_target_alone(policies: Policies) -> None:
    def seeing(actor: Any) -> Any:
        features = (*actor.signature.features, Feature("image_features", 4))
        return SimpleNamespace(signature=replace(actor.signature, features=features))

    blind: Any = SimpleNamespace(signature=policies.target.signature)
    seen = Policies(policies.draft, seeing(policies.target), None, blind, blind)
    with pytest.raises(
        ValueError, match=r"^image_dim: that of plans is 8, the target's 4; must be the same$"
    ):
        replace(seen, plans=seeing(seeing(policies.target)))
    for name in ("draft", "corrector", "distilled"):
        message = f"^{name}: reads image_features, of images that a robot only sends$"
        with pytest.raises(ValueError, match=message):
            replace(seen, **{name: seeing(policies.target)})


def test_a_calibration_that_fits_is_of_this_task_and_these_policies(
    policies: Policies, calibration: Calibration
) -> None:
    check_fits(calibration, "ball", policies)
    for other, named in (
        (replace(calibration, task="swarm"), "swarm"),
        (replace(calibration, draft="0" * 16), "ball"),
        (replace(calibration, target="0" * 16), "ball"),
    ):
        message = (
            f"calibration: made for other policies or another task ({named}); run 'adahi thresholds ball'"
        )
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            check_fits(other, "ball", policies)


def test_files_are_read_once_until_they_change(files: PolicyFiles, tmp_path: Path) -> None:
    copy = replace(files, folder=tmp_path / "copy")
    shutil.copytree(files.folder, copy.folder)
    first = copy.load()
    assert PolicyFiles(copy.folder, "torch").load() is first
    for suffix in (".json", ".safetensors"):
        shutil.copy(copy.folder / f"draft{suffix}", copy.folder / f"target{suffix}")
    newest = max(path.stat().st_mtime_ns for path in files.folder.rglob("*"))
    os.utime(copy.folder / "target.json", ns=(newest, newest + 1))
    again = copy.load()
    assert again.target.digest == first.draft.digest != first.target.digest


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere"
    with pytest.raises(CheckpointError, match=re.escape(f"{missing / 'draft.json'}: no such checkpoint")):
        PolicyFiles(missing, "torch").load()
