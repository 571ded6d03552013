"""What a robot and a verifier import stays small; `make closure` shows it as a list."""

from __future__ import annotations

import pytest

from tools.count_lines import code_lines, loaded

ROBOT = "adahi_ros.nodes.robot.draft_policy_node"
VERIFIER = "adahi_ros.nodes.server.target_verifier_node"
OPTIONAL = (
    "adahi_ros.gates.online",
    "adahi_ros.gates.plans",
    "adahi_ros.nodes.common.manager_bond",
    "adahi_ros.nodes.robot.goal_sink",
    "adahi_ros.nodes.server.added_target",
    "adahi_ros.nodes.server.idle_target",
    "adahi_ros.policies.corrector",
    "adahi_ros.policies.intent",
    "adahi_ros.policies.remote",
    "adahi_ros.policies.retrieval",
    "adahi_ros.robot.hedged_transport",
    "adahi_ros.robot.lockstep_loop",
    "adahi_ros.safety.command_limits",
    "adahi_ros.safety.limits_file",
    "adahi_ros.safety.workspace",
    "adahi_ros.server.ray",
    "adahi_ros.vision.images",
)
"""What is imported where a parameter, a contract or a checkpoint names it."""


@pytest.mark.parametrize(
    ("modules", "most_lines", "most_modules"),
    [((ROBOT,), 8750, 105), ((ROBOT, VERIFIER), 10750, 125)],
    ids=["robot", "both ends"],
)
def test_what_a_node_imports_is_small(
    modules: tuple[str, ...], most_lines: int, most_modules: int, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = {name: code_lines(file.read_text()) for name, file in loaded(list(modules)).items()}
    with capsys.disabled():
        print(f"\n{' and '.join(modules)}: {sum(lines.values())} lines of code in {len(lines)} modules")
    strange = [name for name in lines if name.startswith(OPTIONAL)]
    assert not strange
    assert sum(lines.values()) <= most_lines, sorted(lines.items(), key=lambda each: -each[1])[:20]
    assert len(lines) <= most_modules, sorted(lines)
