"""What a configured robot and verifier load stays small; `make closure` shows it as a list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.count_lines import code_lines, configured

ROOT = Path(__file__).resolve().parents[1]
BEST = ROOT / "adahi_lab/config/best"
TARGETS = ("ball", "ball_instructed", "ball_seen")
"""A target that plans, one with intents, and one that sees pictures: the others load as one of these."""


def check(file: Path, node: str, most_lines: int, most_modules: int) -> None:
    lines = {name: code_lines(path.read_text()) for name, path in configured(file, node).items()}
    assert sum(lines.values()) <= most_lines, sorted(lines.items(), key=lambda each: -each[1])[:20]
    assert len(lines) <= most_modules, sorted(lines)


@pytest.mark.parametrize("file", sorted(BEST.glob("*.yaml")), ids=lambda file: file.stem)
def test_a_robot_with_the_best_method_loads_little(file: Path) -> None:
    check(file, "draft_policy", 11188, 148)


@pytest.mark.parametrize("task", TARGETS)
def test_a_verifier_of_the_best_method_loads_little(task: str) -> None:
    check(BEST / f"{task}.yaml", "target_verifier", 6394, 93)


def test_a_robot_without_a_policy_loads_less(tmp_path: Path) -> None:
    """The parameters are those of README.md, with an arm whose contract and limits are shipped."""
    found = re.search(r"`arm-params.yaml`:\n\n```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    file = tmp_path / "arm-params.yaml"
    file.write_text(found[1].replace("arm.yaml", "ur5e") + "    safety: {limits: ur5e}\n")
    check(file, "draft_policy", 10631, 142)
