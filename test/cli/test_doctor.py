"""`adahi doctor` beside an arm that is not there: it names what is wrong, and moves nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from adahi_lab.nodes.domain import loopback_environment
from adahi_lab.nodes.observer import Observer
from adahi_ros.cli.doctor import _show
from adahi_ros.core.assets import asset
from adahi_ros.core.health_level import Level
from adahi_ros.nodes.robot.examination import MOST_REPORTED, Examination
from adahi_ros.nodes.robot.mock_arm import MockArm
from adahi_ros.robot.checks import Finding
from test.cli.conftest import Run
from test.nodes.conftest import make_node, nodes, observer
from test.nodes.in_process import NodesInProcess

__all__ = ["make_node", "nodes", "observer"]

CONTRACT = asset("config/contracts/so101.yaml").read_text()
PARAMETERS = {
    "contract": "so101",
    "checkpoint": "",
    "proposer.name": "plan",
    "wait_policy": "ahead",
    "safety": {"limits": "so101"},
}
Doctor = Callable[..., dict[str, list[str]]]


@pytest.fixture
def doctor(observer: Observer, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """From an exit status to the sentences of each check that are not well."""
    for name, value in loopback_environment(observer.context.get_domain_id()).items():
        monkeypatch.setenv(name, value)

    def examine(status: int, key: str = "text", **changes: Any) -> dict[str, list[str]]:
        path = tmp_path / "params.yaml"
        path.write_text(yaml.safe_dump({"/**/draft_policy": {"ros__parameters": PARAMETERS | changes}}))
        found: dict[str, list[str]] = {}
        for each in json.loads(run("doctor", path, "--duration", 2, "--json", status=status).output):
            if each["level"] != "OK" and each["check"] not in ("middleware", "disk", "gpu"):
                found.setdefault(each["check"], []).append(each[key])
        return found

    return examine


@pytest.fixture
def play(make_node: Any, nodes: NodesInProcess, tmp_path: Path) -> Callable[[str], MockArm]:
    def start(contract: str) -> MockArm:
        path = tmp_path / "played.yaml"
        path.write_text(contract)
        arm: MockArm = make_node(MockArm, given={"contract": str(path)})
        nodes.spin(arm)
        return arm

    return start


def test_a_misspelt_topic_is_named(doctor: Doctor, play: Callable[[str], MockArm]) -> None:
    arm = play(CONTRACT.replace("joint_states", "joint_state").replace("arm_controller", "arm_controler"))
    found = doctor(1)
    assert found["topics"] == ["/joint_states has no publisher; there is /joint_state (/mock_arm)"]
    assert found["observations"] == ["none can be made"]
    (fault,) = found["controller"]
    assert fault.endswith("; there is /arm_controler/joint_trajectory (/mock_arm)")
    assert found["verifier"] == ["no verifier: /describe_target is not there"]
    assert arm.commands == 0


def test_other_joint_names_are_named(doctor: Doctor, play: Callable[[str], MockArm]) -> None:
    other = CONTRACT.replace("robot_type: so101", "robot_type: mine")
    play(other.replace("position.", "position.my_"))
    (fault, none) = doctor(1)["observations"]
    assert "times joint_states.name: ['my_shoulder_pan', " in fault
    assert fault.endswith("(did you mean 'my_shoulder_pan'?)")
    assert none == "none can be made"


def test_an_arm_that_fits_lacks_only_its_verifier(doctor: Doctor, play: Callable[[str], MockArm]) -> None:
    play(CONTRACT)
    found = doctor(1)
    assert set(found) - {"topics"} == {"verifier"}  # a busy machine is slow


def test_a_wrong_parameter_is_an_error_of_its_own(doctor: Doctor) -> None:
    found = doctor(1, contract="so102")
    (fault,) = found["parameters"]
    assert fault.startswith("contract: 'so102'")
    assert set(found) == {"parameters"}
    assert doctor(1, "action", contract="so102")["parameters"] == ["correct it; then run this again"]
    assert "--limits" in doctor(1, "action", safety={"limits": "so102"})["parameters"][0]


def test_limits_that_the_node_refuses_are_an_error(doctor: Doctor, tmp_path: Path) -> None:
    limits = yaml.safe_load(asset("config/limits/so101.yaml").read_text())
    box = {"low": [0.0, 0.0, 0.0], "high": [1.0, 1.0, 1.0]}
    limits["workspace"] = {"urdf": "nowhere.urdf", "base": "base", "tip": "tip", **box}
    (tmp_path / "limits.yaml").write_text(yaml.safe_dump(limits))
    (fault,) = doctor(1, safety={"limits": str(tmp_path / "limits.yaml")})["parameters"]
    assert "nowhere.urdf" in fault


def test_words_of_other_nodes_forge_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    _show("health", Finding(Level.WARN, "arm: cold\nok        disk", "wait\nok"))
    first, second = capsys.readouterr().out.splitlines()
    assert "arm: cold?ok" in first
    assert "wait?ok" in second


def test_reports_under_ever_new_names_are_bounded() -> None:
    listener: Any = SimpleNamespace(_health={}, _compare_clock=lambda name, info: None)
    for number in range(2 * MOST_REPORTED):
        message = DiagnosticArray(status=[DiagnosticStatus(name=str(number)), DiagnosticStatus(name="0")])
        Examination._on_diagnostics(listener, message, {})
    assert len(listener._health) == MOST_REPORTED
