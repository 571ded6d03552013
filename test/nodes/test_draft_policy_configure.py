"""What does not fit together is named when the draft policy node is configured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rclpy.lifecycle import TransitionCallbackReturn

from adahi_ros.nodes.robot.draft_policy_node import DraftPolicyNode
from test.nodes.conftest import Make

WITHOUT_LIMITS = {"safety.limits": "", "safety.require_limits": False}


@pytest.fixture
def configured(make_node: Make, exported: Path, capfd: pytest.CaptureFixture[str]) -> Any:
    """From parameters to whether a node could be configured with them, and what it said."""

    def configure(values: dict[str, Any]) -> tuple[bool, str]:
        node = make_node(
            DraftPolicyNode,
            given={
                "checkpoint": str(exported / "draft"),
                "contract": "ball",
                "safety.limits": "none",
                **values,
            },
        )
        fits = node.trigger_configure() is TransitionCallbackReturn.SUCCESS
        said = capfd.readouterr().err
        if fits:
            node.trigger_cleanup()  # ends its clients of actions
        return fits, said

    return configure


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"safety.limits": "nowhere"}, ["safety.limits: 'nowhere'", "config/limits/nowhere.yaml"]),
        ({"safety.limits": "ball.urdf"}, ["safety.limits: 'ball.urdf'"]),
        ({"safety.limits": ""}, ["safety.limits: '', must name a file of limits, or be none"]),
        ({"contract": "nowhere"}, ["contract: 'nowhere'", "one of ball"]),
        ({"contract": "kitchen"}, ["contract: 'kitchen'", "must be"]),
        ({"contract": "ball_camera"}, ["contract: 'ball_camera'", "features"]),
        ({"contract": ""}, ["contract: '', must be a YAML file or one of ball"]),
        ({"proposer.name": "corrector"}, ["proposer.file: '', must name a checkpoint"]),
        ({"proposer.name": "corrector", "proposer.file": "nowhere"}, ["proposer.file: 'nowhere', cannot be"]),
        ({"proposer": "plan"}, ["proposer: gone since 0.4.0, must be proposer.name"]),
        ({"control_rate_hz": 20.0}, ["control_rate_hz: gone since 0.4.0, must be in the contract, as fps"]),
        ({"command.field": "effort"}, ["command.field: gone since 0.4.0, must be in the contract"]),
        ({"corrector": "a/b"}, ["corrector: gone since 0.4.0, must be proposer.file"]),
        ({"intent.steps": 60}, ["intent.steps: gone since 0.4.0, must be proposer.steps"]),
    ],
)
def test_what_does_not_fit_is_named(configured: Any, values: dict[str, Any], words: list[str]) -> None:
    fits, text = configured(values)
    assert not fits
    assert "cannot be configured" in text
    for word in words:
        assert word in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("values", "times"),
    [(WITHOUT_LIMITS, 1), ({"safety.limits": "none"}, 1), ({"safety.limits": "ball"}, 0)],
)
def test_that_nothing_limits_the_commands_is_reported_once(
    configured: Any, values: dict[str, Any], times: int
) -> None:
    fits, text = configured(values)
    assert fits, text
    assert text.count("nothing limits where, and how fast, commands move") == times
    assert text.count("; name a file") == int(values == WITHOUT_LIMITS)


def test_what_is_unwise_is_reported(configured: Any) -> None:
    fits, text = configured({"calibration.draft": "0" * 16, "deadline_s": 1.0})
    assert fits, text
    assert "calibration.draft: 0000" in text
    assert "deadline_s: 1, should be below the control period" in text


def test_a_robot_without_a_policy_says_so(configured: Any) -> None:
    fits, text = configured(
        {"checkpoint": "", "contract": "so101", "proposer.name": "plan", "safety.limits": "so101"}
    )
    assert fits, text
    assert "no policy on the robot: it executes the target's plans" in text
    assert "0 parameters" not in text
