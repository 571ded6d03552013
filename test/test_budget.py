"""No room has more lines than `budget.yaml` allows, and no configured node loads more (CONTRIBUTING.md)."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tools.count_lines import code_lines, configured

ROOT = Path(__file__).resolve().parents[1]
BUDGET = yaml.safe_load((ROOT / "test/budget.yaml").read_text())
BEST = ROOT / "adahi_lab/config/best"
TARGETS = ("ball", "ball_instructed", "ball_seen")
"""A target that plans, one with intents, and one that sees pictures: the others load as one of these."""


def rooms(folder: str) -> Counter[str]:
    """Count the lines of each room of a folder: of each folder in it, and of its own files together."""
    lines: Counter[str] = Counter()
    for file in (ROOT / folder).rglob("*.py"):
        inside = file.relative_to(ROOT / folder).parts
        lines[inside[0] if len(inside) > 1 else "."] += code_lines(file.read_text())
    return lines


def check_loaded(file: Path, node: str, most: dict[str, int]) -> None:
    lines = {name: code_lines(path.read_text()) for name, path in configured(file, node).items()}
    assert sum(lines.values()) <= most["lines"], sorted(lines.items(), key=lambda each: -each[1])[:20]
    assert len(lines) <= most["modules"], sorted(lines)


@pytest.mark.parametrize("package", BUDGET["rooms"])
def test_each_room_has_a_budget_and_keeps_it(package: str) -> None:
    most = BUDGET["rooms"][package]
    found = rooms(package)
    assert most.keys() == found.keys()
    assert {room: lines for room, lines in found.items() if lines > most[room]} == {}


@pytest.mark.parametrize("folder", BUDGET["folders"])
def test_tests_and_benchmarks_keep_their_budget(folder: str) -> None:
    assert rooms(folder).total() <= BUDGET["folders"][folder]


@pytest.mark.parametrize("file", sorted(BEST.glob("*.yaml")), ids=lambda file: file.stem)
def test_a_robot_with_the_best_method_loads_little(file: Path) -> None:
    check_loaded(file, "draft_policy", BUDGET["loaded"]["robot"])


@pytest.mark.parametrize("task", TARGETS)
def test_a_verifier_of_the_best_method_loads_little(task: str) -> None:
    check_loaded(BEST / f"{task}.yaml", "target_verifier", BUDGET["loaded"]["verifier"])


def test_a_robot_without_a_policy_loads_less(tmp_path: Path) -> None:
    """The parameters are those of README.md, with an arm whose contract and limits are shipped."""
    found = re.search(r"`arm-params.yaml`:\n\n```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    file = tmp_path / "arm-params.yaml"
    file.write_text(found[1].replace("arm.yaml", "ur5e") + "    safety: {limits: ur5e}\n")
    check_loaded(file, "draft_policy", BUDGET["loaded"]["readme"])
