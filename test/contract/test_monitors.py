"""The contract's section `driver`: which states of the driver allow motion."""

from __future__ import annotations

import re
from typing import Any

import pytest

from adahi_lab.evaluation.plain_contract import plain_values
from adahi_ros.contract.monitors import Monitor
from adahi_ros.contract.parsing import parse_contract

MODE: dict[str, Any] = {
    "topic": "io_and_status_controller/robot_mode",
    "type": "ur_dashboard_msgs/msg/RobotMode",
    "field": "mode",
    "running": [7],
}


def contract(driver: Any) -> Any:
    return parse_contract({**plain_values("arm", 20.0, ["a"], 2, 0, ["a"], "positions"), "driver": driver})


def test_a_contract_says_which_states_of_the_driver_allow_motion() -> None:
    latched = {
        **MODE,
        "field": "controllers.arm_controller.state.label",
        "running": ["active"],
        "latched": True,
    }
    assert contract([MODE, {**latched, "timeout_s": 2}]).driver == (
        Monitor(MODE["topic"], MODE["type"], "mode", (7,)),
        Monitor(MODE["topic"], MODE["type"], latched["field"], ("active",), True, 2.0),
    )
    assert contract([]).driver == ()


@pytest.mark.parametrize(
    ("driver", "fault"),
    [
        ({}, "driver: {}, must be a list"),
        ([MODE] * 9, "driver: ["),
        ([{**MODE, "mode": 1}], "driver[0].mode: unknown, must be one of topic, type, field, running"),
        ([{key: MODE[key] for key in ("topic", "type", "field")}], "driver[0].running: missing"),
        ([{**MODE, "topic": "a//b"}], "driver[0].topic: 'a//b', must be names of letters"),
        ([{**MODE, "topic": "a" * 101}], "driver[0].topic: 'aaa"),
        ([{**MODE, "type": "RobotMode"}], "driver[0].type: 'RobotMode', must be PACKAGE/msg/TYPE"),
        ([{**MODE, "field": "mode..x"}], "driver[0].field: 'mode..x', must be at most 10 names or indices"),
        (
            [{**MODE, "field": "__class__.__init__ "}],
            "driver[0].field: '__class__.__init__ ', must be at most 10 names",
        ),
        ([{**MODE, "running": []}], "driver[0].running: [], must be a list of 1 to 32"),
        ([{**MODE, "running": 7}], "driver[0].running: 7, must be a list of 1 to 32"),
        ([{**MODE, "running": [7.0]}], "driver[0].running: [7.0], must be a list of 1 to 32"),
        ([{**MODE, "running": [7] * 33}], "driver[0].running: ["),
        ([{**MODE, "timeout_s": -1}], "driver[0].timeout_s: -1, must be a number from 0 to 1e+06"),
    ],
)
def test_a_fault_in_the_drivers_section_is_named(driver: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}"):
        contract(driver)
