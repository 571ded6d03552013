"""The reference says what the code says."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NODES = ("draft_policy_node", "target_verifier_node", "robot_simulator_node")


@pytest.mark.parametrize("node", NODES)
def test_every_parameter_is_in_the_reference_as_it_is_declared(node: str) -> None:
    section = (ROOT / "docs/nodes.md").read_text().split(f"\n## {node}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    documented = {line.split("`")[1]: line for line in rows}
    table = importlib.import_module(f"adahi_ros.nodes.{node}").TABLE
    for row in table:
        line = documented[row.name]
        assert row.description in line
        assert row.allowed in line
        default = ", ".join(row.default) if isinstance(row.default, list) else str(row.default)
        assert f"| {default.lower() if isinstance(row.default, bool) else default} |" in line
        assert line.endswith("| yes |" if row.live else "|  |")


def test_links_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for part in page.read_text().split("](")[1:]:
            target = part.split(")")[0]
            assert (page.parent / target).exists(), f"{page.name}: {target}"
