"""A robot with a camera and a verifier whose target runs behind openpi's server: asked, lost, found again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from sensor_msgs.msg import Image

from adahi_ros.client import VerifierClient, VerifierError
from adahi_ros.nodes.common.messages import to_stamp
from adahi_ros.protocol.records import Reason, StepRecord
from test.system.policy_server import PolicyServer, camera_contract, served, target_file
from test.system.stage import PATIENT, Robot, Stage, reliable_input

HORIZON = 3  # actions of a plan
ROWS, COLUMNS = 8, 12
PICTURE = np.full((ROWS, COLUMNS, 3), (200, 100, 50), np.uint8)
JOINTS = [0.01, -0.02]  # of the robot that the test plays
LOST = r"ws://127\.0\.0\.1:\d+: (not reachable: Connection refused|dropped the connection)"
INSTRUCTION = "balance the ball"


def plan_of(observation: dict[str, Any]) -> np.ndarray:
    """Return the plan (HORIZON, 2) float32 to what is seen: the joints, and how bright the picture is."""
    brightness = np.float32(observation["observation/image"].mean() / 255)
    ahead = np.arange(HORIZON, dtype=np.float32)[:, None] / 100
    plan: np.ndarray = observation["observation/state"] + ahead + brightness / 10
    return plan.astype(np.float32)


class Seeing(Robot):
    """A robot that the test plays, with a camera."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._camera = stage.node.create_publisher(Image, "camera/image_raw", 10)

    def show(self, episode: int, step: int) -> int:
        stamp = self.now()
        picture = Image(height=ROWS, width=COLUMNS, encoding="rgb8", step=3 * COLUMNS, data=PICTURE.tobytes())
        picture.header.stamp = to_stamp(stamp)
        self._camera.publish(picture)
        self.joints_out.publish(self.joints(stamp))
        self.state_out.publish(self.state(episode, step, stamp))
        return stamp


@pytest.fixture(scope="module")
def policy() -> Iterator[PolicyServer]:
    with served(plan_of) as policy:
        yield policy


@pytest.fixture(scope="module")
def verifier(stage: Stage, policy: PolicyServer, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("target") / "pi.yaml"
    path.write_text(yaml.safe_dump(target_file(policy.port, HORIZON, ROWS, COLUMNS)))
    return stage.start("target_verifier_node", checkpoint=str(path), rule__name="replace", target_name="pi")


def test_a_robot_executes_plans_of_a_policy_server_that_restarts(
    stage: Stage, policy: PolicyServer, verifier: Any, tmp_path: Path
) -> None:
    contract = tmp_path / "robot.yaml"
    contract.write_text(yaml.safe_dump(camera_contract(ROWS, COLUMNS)))
    stage.start(
        "draft_policy_node",
        checkpoint="",
        safety__limits="none",
        proposer__name="plan",
        contract=str(contract),
        instruction=INSTRUCTION,
        **PATIENT,
        qos_overrides=reliable_input("camera/image_raw"),
    )
    seeing = Seeing(stage)
    stage.activate()
    seeing.show_until_answered(1)

    record = seeing.next()
    assert (record.verified, record.reason) == (True, Reason.NONE), record.message
    received = policy.received[-1]
    assert received["prompt"] == INSTRUCTION
    np.testing.assert_array_equal(received["observation/state"], np.array(JOINTS, np.float32))
    assert received["observation/image"].shape == PICTURE.shape
    np.testing.assert_allclose(received["observation/image"], PICTURE, atol=4)  # it went as JPEG
    np.testing.assert_array_equal(np.array(record.action, np.float32), plan_of(received)[0])

    policy.stop()
    lost = [seeing.next() for _ in range(HORIZON + 1)]
    assert [each.verified for each in lost] == [False] * (HORIZON + 1)
    refused = [each for each in lost if each.reason is Reason.REFUSED]
    assert re.search(LOST, refused[0].message)
    for ahead in range(1, HORIZON):  # it goes on by its plan, and is held when there is no more of it
        np.testing.assert_array_equal(np.array(lost[ahead - 1].action, np.float32), plan_of(received)[ahead])
    assert [each.action for each in lost[HORIZON - 1 :]] == [(), ()]

    policy.start()
    seen: list[StepRecord] = []

    def verified_again() -> bool:
        seen.append(seeing.next())
        return seen[-1].verified

    stage.wait(verified_again, "a verified step")
    np.testing.assert_array_equal(np.array(seen[-1].action, np.float32), plan_of(policy.received[-1])[0])
    assert "Traceback" not in verifier.output


def test_a_node_of_ones_own_asks_it_with_images_and_a_sentence(
    stage: Stage, policy: PolicyServer, verifier: Any
) -> None:
    client = VerifierClient(stage.node, "my_arm", deadline_s=20.0)
    window = np.array([[0.1, 0.2]])
    large = np.kron(PICTURE, np.ones((2, 2, 1), np.uint8))[None]

    def propose(**changes: Any) -> Any:
        given = {"images": {"observation.images.camera": large}, "instruction": INSTRUCTION, **changes}
        return stage.awaited(client.ask, window, **given)

    answer = propose()
    received = policy.received[-1]
    assert received["prompt"] == INSTRUCTION
    assert received["observation/image"].shape == PICTURE.shape
    np.testing.assert_allclose(received["observation/image"], PICTURE, atol=4)
    np.testing.assert_array_equal(answer.actions, plan_of(received))
    with pytest.raises(ValueError, match=r"^images: none; must be observation\.images\.camera"):
        propose(images={})
    with pytest.raises(
        ValueError, match=r"^images\.observation\.images\.camera: uint8 \(2, .*\), must be uint8 \(1, "
    ):
        propose(images={"observation.images.camera": np.concatenate([large, large])})
    with pytest.raises(ValueError, match=r"^images\.observation\.images\.camera: float64"):
        propose(images={"observation.images.camera": large.astype(float)})
    with pytest.raises(ValueError, match=r"^instruction: empty, must say what to do"):
        propose(instruction=" ")
    policy.stop()
    with pytest.raises(VerifierError, match=f"refused: {LOST}"):
        propose(instruction="another one")  # an answer to the same question is remembered
    policy.start()
    client.destroy()
