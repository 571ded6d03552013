"""Parameter files, target files and link profiles on pages are accepted as they stand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("rclpy")
pytest.importorskip("torch")

from adahi_lab.link.link_profile import load_profile
from adahi_ros.core.node_parameters import parameters_for
from adahi_ros.core.registry import arguments_beside
from adahi_ros.core.schema import checked
from adahi_ros.nodes.common.parameters import filled, rows
from adahi_ros.nodes.robot.draft_policy_parameters import DraftPolicyParameters
from adahi_ros.nodes.server.target_verifier_parameters import TargetVerifierParameters
from adahi_ros.policies.remote.groot import GrootFile
from adahi_ros.policies.remote.lerobot_target import LeRobotFile
from adahi_ros.policies.remote.openpi import OpenPiFile

ROOT = Path(__file__).resolve().parents[2]
NODES = {"draft_policy": DraftPolicyParameters, "target_verifier": TargetVerifierParameters}
KINDS = {"openpi": OpenPiFile, "groot": GrootFile, "lerobot": LeRobotFile}
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL))
]


def parameters_of(kind: type[Any], given: Mapping[str, Any]) -> set[str]:
    """Return the names of a node's parameters, with those of the components that are given."""
    declared = rows(kind)
    values = {**{row.name: row.default for row in declared}, **given}
    beside = [each.name for row in declared for each in arguments_beside(row, values.get)]
    return {row.name for row in declared} | set(beside)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_file_on_a_page_is_accepted(block: str, tmp_path: Path) -> None:
    values = yaml.safe_load(block)
    if block.startswith("/**"):
        for section, content in values.items():
            given = parameters_for({"/**": content}, "/node")
            kinds = [kind for name, kind in NODES.items() if section in (f"/**/{name}", "/**:", "/**")]
            accepted = [kind for kind in kinds if given.keys() <= parameters_of(kind, given)]
            assert accepted
            filled(accepted[0], given)
    elif values.get("kind") in KINDS:
        checked(KINDS[values.pop("kind")], values)
    elif "like" in values:
        (tmp_path / "link.yaml").write_text(block)
        load_profile(tmp_path / "link.yaml")
