"""The files of docs/how_to/run_lerobot.md work as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

pytest.importorskip("rclpy")

from adahi_lab.methods.node_parameters import parameters_for
from adahi_ros.contract.parsing import load_contract
from adahi_ros.nodes.common.parameters import filled
from adahi_ros.nodes.launching.fleet import SERVING
from adahi_ros.nodes.robot.draft_policy_parameters import DraftPolicyParameters
from adahi_ros.nodes.robot.draft_policy_parts import controller_of, policy_and_contract
from adahi_ros.safety.limits_file import load_limits
from adahi_ros.safety.named_limits import limits_path

PAGE = (Path(__file__).resolve().parents[2] / "docs/how_to/run_lerobot.md").read_text()
CONTRACT, TARGET, SERVER, PARAMETERS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def contract(tmp_path: Path) -> str:
    (tmp_path / "so101_act.yaml").write_text(CONTRACT)
    return str(tmp_path / "so101_act.yaml")


def test_the_target_names_the_actions_of_the_contract(contract: str) -> None:
    target, read = yaml.safe_load(TARGET), load_contract(contract)
    assert target["action_names"] == list(read.action.select)
    assert target["rate_hz"] == read.rate_hz
    assert [camera.key for camera in read.cameras] == ["observation.images.front", "observation.images.wrist"]


def test_what_the_log_says_on_the_page_is_what_the_verifier_logs() -> None:
    quoted = re.findall(r"The log says `(.*?)`", PAGE)
    assert quoted
    assert [each for each in quoted if not each.startswith(SERVING)] == []


def test_both_ends_send_requests_alike() -> None:
    ends = [next(iter(yaml.safe_load(file).values()))["ros__parameters"] for file in (SERVER, PARAMETERS)]
    assert [end["verification"] for end in ends] == [{"reliability": "reliable"}] * 2


def test_the_parameters_make_a_robot_that_is_held_until_a_plan_comes(contract: str) -> None:
    given = parameters_for(yaml.safe_load(PARAMETERS), "/draft_policy")
    values = filled(DraftPolicyParameters, {**given, "contract": contract})
    policy, read = policy_and_contract(values)
    assert controller_of(values, policy).config.trigger.name == "age"
    assert values.execution_horizon == 100  # of an ACT as LeRobot trains it: chunk_size, see the page
    names = [path.partition(".")[2] for path in read.action.select]
    assert load_limits(limits_path(values.safety.limits), names).velocity.min() > 0.0
