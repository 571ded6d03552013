"""An operator assigns a goal at a verifier: replies are those to it, and a notice has its revision alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adahi_msgs.msg import Assignments
from adahi_msgs.srv import Assign, VerifyDraft

from adahi_ros.core.proposal import counted
from adahi_ros.nodes.common.qos import notice_qos, verify_qos
from adahi_ros.nodes.server.target_verifier_node import TargetVerifierNode
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_decoder
from adahi_ros.protocol.notice import Notice
from adahi_ros.protocol.request import PROTOCOL_VERSION, fingerprint_number
from test.nodes.in_process import DEADLINE_S, NodesInProcess

OWN, ASSIGNED = [0.1, -0.1], [-0.5, 0.7]


class Verifier:
    """A verifier that is spun, an operator, and what is published."""

    def __init__(self, nodes: NodesInProcess, exported: Path, **values: Any) -> None:
        given = {"checkpoint": str(exported / "target"), "assigns": True, **values}
        nodes.spin(nodes.start(TargetVerifierNode, given))
        self.nodes, node = nodes, nodes.observer.node
        self._assigning = node.create_client(Assign, "target_verifier/assign")
        qos = verify_qos("best_effort")
        self._verifying = node.create_client(VerifyDraft, "verify_draft", qos_profile=qos)
        self._tokenizer = fingerprint_number(load_decoder(exported).fingerprint)

    def assign(self, robot: str, goal: list[float], instruction: str = "") -> Assign.Response:
        request = Assign.Request(robot_id=robot, goal=goal, instruction=instruction)
        return self.nodes.call(self._assigning, request)

    @property
    def offers_assignments(self) -> bool:
        """Whether there is a service ~/assign."""
        return bool(self._assigning.service_is_ready())

    def verify(self, goal: list[float], step: int = 7, robot: str = "arm") -> VerifyDraft.Response:
        draw = np.random.default_rng(1)
        return self.nodes.call(
            self._verifying,
            VerifyDraft.Request(
                protocol=PROTOCOL_VERSION,
                robot_id=robot,
                step_id=step,
                first_step=step,
                tokenizer_fingerprint=self._tokenizer,
                observation_window=draw.normal(size=18).tolist(),
                goal=goal,
                codes=[2, 5],
                draft_probabilities=counted(draw.dirichlet(np.ones(8), size=2)).ravel().tolist(),
            ),
        )

    def notices(self, topic: str = "assignments") -> list[Assignments]:
        """Return the list to which the newest message and all later ones are added."""
        messages: list[Assignments] = []
        node = self.nodes.observer.node
        node.create_subscription(Assignments, topic, messages.append, notice_qos())
        self.nodes.wait(lambda: bool(messages), "a notice")
        return messages

    def change_state(self, *labels: str) -> None:
        for label in labels:
            change = self.nodes.observer.change_state
            assert change("target_verifier", label, DEADLINE_S, lambda: None)


@pytest.fixture
def verifier(nodes: NodesInProcess, exported: Path) -> Verifier:
    return Verifier(nodes, exported)


def revisions(message: Assignments) -> dict[str, int]:
    return dict(zip(message.robot_ids, message.revisions, strict=True))


def test_a_reply_is_that_to_the_assigned_goal_until_the_assignment_ends(verifier: Verifier) -> None:
    for_own, for_assigned = verifier.verify(OWN, 1), verifier.verify(ASSIGNED, 2)
    assert (for_own.status, for_own.assignment, for_assigned.assignment) == (0, 0, 0)
    assert verifier.assign("arm", ASSIGNED).revision == 1
    expected = verifier.verify(ASSIGNED, 3, "arm")
    reply = verifier.verify(OWN, 3, "arm")
    assert (reply.assignment, reply.actions) == (1, expected.actions)
    assert verifier.verify(OWN, 3, "leg").assignment == 0
    assert verifier.assign("arm", []).revision == 2
    ended = verifier.verify(OWN, 1)
    assert (ended.assignment, ended.actions) == (0, for_own.actions)


def test_a_repeated_request_gets_the_reply_to_the_newest_goal(verifier: Verifier) -> None:
    before = verifier.verify(OWN)
    verifier.assign("arm", ASSIGNED)
    after = verifier.verify(OWN)
    assert (before.assignment, after.assignment) == (0, 1)
    assert verifier.verify(ASSIGNED).actions == after.actions


def test_a_late_subscriber_gets_the_newest_revision_of_every_robot(verifier: Verifier) -> None:
    verifier.assign("arm", ASSIGNED)
    verifier.assign("leg", ASSIGNED)
    verifier.assign("arm", OWN)
    (message,) = verifier.notices()
    assert (message.revision, revisions(message)) == (3, {"arm": 3, "leg": 2})
    notices = [Notice.from_message(message, robot).own for robot in ("arm", "leg", "wheel")]
    assert notices == [3, 2, 0]


def test_assignments_end_with_the_activation_and_a_restart_shows(verifier: Verifier) -> None:
    messages = verifier.notices()
    verifier.assign("arm", ASSIGNED)
    verifier.nodes.wait(lambda: messages[-1].revision == 1, "the notice")
    verifier.change_state("deactivate")
    verifier.nodes.wait(lambda: not verifier.offers_assignments, "the end of ~/assign")
    before = len(messages)
    verifier.change_state("activate")
    verifier.nodes.wait(lambda: len(messages) > before, "the notice of the restart")
    first, last = (Notice.from_message(each, "arm") for each in (messages[0], messages[-1]))
    assert (last.revision, last.own) == (0, 0)
    assert last.started_ns > first.started_ns
    assert verifier.verify(OWN).assignment == 0


def test_what_cannot_be_assigned_is_refused(verifier: Verifier) -> None:
    for robot, goal, instruction, message in (
        ("arm", [1.0], "", "goal: 1 values, must be 2"),
        ("arm", [], "push", "instruction: 'push', must be empty: no target reads"),
        ("", OWN, "", "robot_id: '', must have from 1 to 64 characters"),
    ):
        refused = verifier.assign(robot, goal, instruction)
        assert (refused.success, refused.revision) == (False, 0)
        assert refused.message.startswith(message)
    assert verifier.notices()[-1].revision == 0


def test_nothing_is_assigned_unless_the_parameter_allows_it(nodes: NodesInProcess, exported: Path) -> None:
    verifier = Verifier(nodes, exported, assigns=False)
    assert verifier.verify(OWN).assignment == 0
    assert not verifier.offers_assignments


def test_a_robot_with_its_own_topic_sees_no_other(nodes: NodesInProcess, exported: Path) -> None:
    verifier = Verifier(nodes, exported, robots=["arm", "leg"])
    verifier.assign("arm", ASSIGNED)
    assert verifier.assign("wheel", ASSIGNED).message.startswith("robot_id: 'wheel', must be one of")
    assert revisions(verifier.notices("arm/assignments")[-1]) == {"arm": 1}
    assert revisions(verifier.notices("leg/assignments")[-1]) == {}


GARBAGE: dict[str, Callable[[Assignments], None]] = {
    "revisions: 0, must be as many": lambda message: setattr(message, "robot_ids", ["arm"]),
    "revisions: 7, must be from 1 to 2": lambda message: _list(message, "arm", 7),
    "revisions: 0, must be from 1 to 2": lambda message: _list(message, "arm", 0),
    "robot_ids: '', must have from 1 to 64": lambda message: _list(message, "", 1),
    "started: -1 s, must be at least 0": lambda message: setattr(message.started, "sec", -1),
}


def _list(message: Assignments, robot: str, revision: int) -> None:
    message.robot_ids, message.revisions = [robot], [revision]


@pytest.mark.parametrize("fault", GARBAGE)
def test_a_malformed_notice_is_refused(fault: str) -> None:
    message = Assignments(revision=2)
    GARBAGE[fault](message)
    with pytest.raises(ValueError, match=fault):
        Notice.from_message(message, "arm")
