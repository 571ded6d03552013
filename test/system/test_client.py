"""A node of one's own asks a verifier, without our side of the robot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from adahi_msgs.srv import DescribeTarget

from adahi_ros.client import Answer, VerifierClient, VerifierError
from adahi_ros.policies.backends import load_policy
from test.system.stage import Stage

WINDOW = np.linspace(-0.1, 0.1, 18).reshape(3, 6)
GOAL = np.array([0.1, -0.1])


def test_a_window_has_an_answer_and_again_the_same(stage: Stage, exported: Path) -> None:
    client = VerifierClient(stage.node, "my_arm", deadline_s=20.0)
    verifier = stage.start_verifier(exported, rule__name="replace")
    described = stage.awaited(client.describe)
    signature = load_policy(exported / "target", "onnxruntime").signature
    assert (described.acceptance, described.signature.history) == ("replace", 3)
    answers: list[Answer] = [stage.awaited(client.ask, WINDOW, GOAL, step=step) for step in (4, 4, 5)]
    assert answers[0].actions.shape == (1, signature.action_dim)
    assert answers[0].actions.tobytes() == answers[1].actions.tobytes()
    assert answers[0].actions.tobytes() != answers[2].actions.tobytes()  # other draws
    assert 0.0 < answers[0].compute_ms < answers[0].round_trip_ms
    with pytest.raises(ValueError, match=r"window: shape \(2, 6\), must be \(3, 6\)"):
        stage.awaited(client.ask, WINDOW[1:], GOAL)
    with pytest.raises(ValueError, match=r"goal: shape \(0,\), must be \(2,\)"):
        stage.awaited(client.ask, WINDOW)
    with pytest.raises(VerifierError, match=r"refused: observation_window"):
        stage.awaited(client.ask, np.where(WINDOW > 0, np.nan, WINDOW), GOAL)
    client.destroy()
    stage.processes.kill(verifier)


def test_without_a_verifier_there_is_an_error_by_the_deadline(stage: Stage) -> None:
    client = VerifierClient(stage.node, "my_arm", target="nobodys", deadline_s=0.2)
    with pytest.raises(VerifierError, match=r"describe_target: no reply for 0.2 s"):
        stage.awaited(client.describe)
    client.destroy()


def test_a_client_that_is_destroyed_says_so(stage: Stage) -> None:
    client = VerifierClient(stage.node, "my_arm", deadline_s=20.0)
    client.destroy()
    with pytest.raises(VerifierError, match=r"describe_target: the client was destroyed"):
        stage.awaited(client.describe)


def test_a_verifier_that_speaks_another_protocol_is_none(stage: Stage) -> None:
    strange = stage.node.create_service(DescribeTarget, "describe_target", lambda request, response: response)
    client = VerifierClient(stage.node, "my_arm", deadline_s=20.0)
    with pytest.raises(VerifierError, match=r"describe_target: protocol: 0, must be \d"):
        stage.awaited(client.describe)
    client.destroy()
    stage.node.destroy_service(strange)
