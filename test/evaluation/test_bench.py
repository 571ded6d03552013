from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from adahi_ros.evaluation.bench import CHUNKS, Policies, PolicyFiles
from adahi_ros.policy.backends import load_policy
from adahi_ros.policy.checkpoint import CheckpointError


def test_policies_of_two_tokenizers_are_refused(
    checkpoints: Path, make_checkpoints: Callable[..., Path]
) -> None:
    draft = load_policy(checkpoints / "draft", "torch")
    target = load_policy(make_checkpoints(seed=1) / "target", "torch")
    ours, theirs = draft.decoder.fingerprint, target.decoder.fingerprint
    with pytest.raises(ValueError, match=f"the draft's is {ours}, the target's {theirs}"):
        Policies(draft, target)


def test_a_target_on_chunks_is_loaded_where_there_is_one(files: PolicyFiles, checkpoints: Path) -> None:
    with_chunks, without = files.load(), PolicyFiles(checkpoints, "torch").load()
    assert without.chunks is None
    assert with_chunks.chunks is not None
    assert with_chunks.chunks.spec.chunk_length == 8
    assert with_chunks.chunks.digest == load_policy(files.folder / CHUNKS / "target", "torch").digest
    assert with_chunks.draft.digest == without.draft.digest


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
