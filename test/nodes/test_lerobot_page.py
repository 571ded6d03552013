"""docs/how_to/run_lerobot.md shows the files that `adahi lerobot init` writes, and they work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("rclpy")

from rclpy.context import Context

from adahi_ros.core.node_parameters import parameters_for
from adahi_ros.nodes.common.parameters import filled
from adahi_ros.nodes.launching.fleet import SERVING
from adahi_ros.nodes.robot.draft_policy_parameters import DraftPolicyParameters
from adahi_ros.nodes.robot.draft_policy_parts import controller_of, policy_and_contract
from adahi_ros.safety.limits_file import load_limits
from adahi_ros.safety.named_limits import limits_path
from test.cli.conftest import Run, run
from test.cli.test_lerobot_init import act

__all__ = ["run"]

PAGE = (Path(__file__).resolve().parents[2] / "docs/how_to/run_lerobot.md").read_text()
CONTRACT, PARAMETERS = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))


@pytest.fixture
def files(tmp_path: Path, run: Run) -> dict[str, Any]:
    """The content of the written files, by name."""
    run("lerobot", "init", act(tmp_path / "pretrained_model"), "--out", tmp_path / "arm")
    return {path.stem: yaml.safe_load(path.read_text()) for path in (tmp_path / "arm").iterdir()}


def test_the_page_shows_what_is_written(files: dict[str, Any], tmp_path: Path) -> None:
    assert files["contract"] == CONTRACT
    assert yaml.safe_load(yaml.safe_dump(files["params"]).replace(str(tmp_path), "/home/me")) == PARAMETERS


def test_rcl_reads_the_parameters(tmp_path: Path, run: Run) -> None:
    run("lerobot", "init", act(tmp_path / "pretrained_model"), "--out", tmp_path / "arm")
    context = Context()
    given = ["--ros-args", "--params-file", str(tmp_path / "arm/params.yaml")]
    context.init(given)
    context.shutdown()


def test_what_the_log_says_on_the_page_is_what_the_verifier_logs() -> None:
    quoted = re.findall(r"The log says `(.*?)`", PAGE)
    assert quoted
    assert [each for each in quoted if not each.startswith(SERVING)] == []


def test_the_parameters_make_a_robot_that_is_held_until_a_plan_comes(files: dict[str, Any]) -> None:
    for node in ("/draft_policy", "/target_verifier"):
        assert parameters_for(files["params"], node)["verification.reliability"] == "reliable"
    values = filled(DraftPolicyParameters, parameters_for(files["params"], "/draft_policy"))
    policy, read = policy_and_contract(values)
    assert controller_of(values, policy, read).config.trigger.name == "age"
    assert values.execution_horizon == 100  # of an ACT as LeRobot trains it: chunk_size, see the page
    limits = load_limits(limits_path(values.safety.limits), read.commanded_names)
    assert limits.velocity.min() > 0.0
