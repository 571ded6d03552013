from __future__ import annotations

import hashlib
import json
from pathlib import Path

import onnx

from adahi_ros.core.assets import asset
from adahi_ros.policies.networks.onnx_export import export
from adahi_ros.policies.networks.onnx_files import DIGEST
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint

ROOT = Path(__file__).parents[3]
SHIPPED = sorted(path.relative_to(asset("checkpoints")) for path in asset("checkpoints").rglob("*.onnx"))


def check_names_no_file(path: Path) -> None:
    content = path.read_bytes()
    for found in (str(ROOT), "site-packages", "vqbet.py", "File "):
        assert found.encode() not in content, found


def test_an_export_names_its_weights_and_no_file_of_this_machine(checkpoints: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(checkpoints / "draft")
    export(checkpoint, tmp_path / "draft.onnx")
    check_names_no_file(tmp_path / "draft.onnx")
    model = onnx.load(tmp_path / "draft.onnx")
    assert {each.key: each.value for each in model.metadata_props} == {DIGEST: checkpoint.digest()}
    onnx.checker.check_model(model, full_check=True)
    content = (tmp_path / "draft.onnx").read_bytes()
    found = json.loads((tmp_path / "draft.json").read_text())
    assert found == {"onnx_sha256": hashlib.sha256(content).hexdigest()}
