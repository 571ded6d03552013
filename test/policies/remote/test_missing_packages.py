"""Where the packages of a kind are not installed, its file says what to install."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.policies.backends import load_policy


@pytest.mark.parametrize("kind", ["openpi", "groot", "lerobot_remote"])
def test_a_kind_whose_packages_are_missing_says_what_to_install(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("msgpack", "websockets", "zmq"):
        monkeypatch.setitem(sys.modules, package, None)
    path = tmp_path / "target.yaml"
    path.write_text(f"kind: {kind}\n")
    message = r"msgpack: must be installed .*: pip install -r requirements/remote_targets\.txt"
    with pytest.raises(CheckpointError, match=message):
        load_policy(path, "onnxruntime")
