"""The verifier's answer is the target's to the robot's window, whichever way its cameras are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from sensor_msgs.msg import CompressedImage

from adahi_ros.acceptance.verifier import TargetVerifier, verification_uniforms
from adahi_ros.nodes.common.messages import describe, fingerprint_number, verify_qos
from adahi_ros.nodes.robot.question import Answer, Question
from adahi_ros.nodes.robot.verifier_client import Link, VerifierClient
from adahi_ros.policy.backends import load_policy
from adahi_ros.policy.distribution import counted
from adahi_ros.policy.interface import Policy
from adahi_ros.vision.encoder import Encoder
from adahi_ros.vision.images import from_jpeg, to_jpeg
from adahi_ros.wire.request import RequestFault, VerificationRequest
from adahi_ros.wire.window import WireWindow

SEED = 5
H, S, CAMERAS, STEPS = 3, 2, 2, 5
GOAL = np.float32([0.1, -0.1])
SIZE = (12, 16)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Encoder]:
    """Two features of each image, so that two cameras make what O = 6 lacks; and where it is."""
    import torch

    from adahi_ros.vision.export import make_network, save_encoder

    config = {"architecture": "keypoints", "image_size": SIZE, "channels": 2, "layers": 1, "keypoints": 1}
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("encoders") / "tiny"
    save_encoder(path, make_network(config).eval(), config, {"seed": 0})
    return path, Encoder.load(path)


@pytest.fixture(scope="module")
def target(exported: Path) -> Policy:
    return load_policy(exported / "target", "onnxruntime")


@pytest.fixture(scope="module")
def verifier(stage: Any, exported: Path, encoder: tuple[Path, Encoder]) -> Iterator[Any]:
    process = stage.start(
        "target_verifier_node",
        checkpoint=str(exported / "target"),
        encoder=str(encoder[0]),
        seed=SEED,
        verification__reliability="reliable",
    )
    yield process
    process.ask_to_end()
    process.end()
    assert process.exit_code == 0
    assert "Traceback" not in process.output


@pytest.fixture
def connect(stage: Any, target: Policy) -> Iterator[Callable[[str | None], VerifierClient]]:
    """From the fingerprint of the robot's encoder to its client, when a verifier has described itself."""
    clients: list[VerifierClient] = []

    def make(fingerprint: str | None) -> VerifierClient:
        client = VerifierClient(stage.node, target, "robot", "reliable", lambda: None, fingerprint)
        clients.append(client)
        client.start()
        stage.wait(lambda: client.link is not Link.ABSENT, "a verifier")
        return client

    yield make
    for client in clients:
        client.destroy()


def features_of(encoder: Encoder, frames: np.ndarray) -> np.ndarray:
    """Features (T, C F) of frames (T, C, rows, columns, 3)."""
    return encoder.encode(frames.reshape(-1, *SIZE, 3)).reshape(len(frames), -1)


@pytest.mark.parametrize("sent", ["features", "images", "nothing"])
def test_the_target_sees_what_was_meant(
    sent: str,
    stage: Any,
    verifier: Any,
    connect: Callable[[str | None], VerifierClient],
    encoder: tuple[Path, Encoder],
    target: Policy,
) -> None:
    eye = encoder[1]
    draw = np.random.default_rng(3)
    numbers = draw.normal(size=(H + STEPS, S)).astype(np.float32)
    frames = draw.integers(256, size=(H + STEPS, CAMERAS, *SIZE, 3), dtype=np.uint8)
    jpegs = [to_jpeg(frame, 50) for frame in frames.reshape(-1, *SIZE, 3)]
    features = {
        "features": features_of(eye, frames),
        "images": features_of(eye, np.stack([from_jpeg(jpeg) for jpeg in jpegs]).reshape(frames.shape)),
        "nothing": np.zeros((H + STEPS, 4), np.float32),
    }[sent]
    client = connect(eye.fingerprint if sent == "images" else None)
    assert client.link is Link.READY
    judge = TargetVerifier(target)
    sizes = []
    for step in range(STEPS):
        rows = slice(step, step + H)
        window = np.concatenate([numbers[rows], features[rows]], axis=1)
        wire = {
            "features": WireWindow.of(numbers[rows], GOAL, features=features[rows]),
            "images": WireWindow.of(numbers[rows], GOAL, images=jpegs[CAMERAS * step : CAMERAS * (step + H)]),
            "nothing": WireWindow.of(numbers[rows], GOAL),
        }[sent]
        counts = counted(draw.dirichlet(np.ones(8), size=(1, 2)))
        request = VerificationRequest(window[None], GOAL[None], draw.integers(8, size=(1, 2)), counts)
        answers: list[Answer] = []
        client.ask(Question(request, 2, step, wire), 30.0, answers.append)
        stage.wait(lambda answers=answers: bool(answers), "answer")
        got = answers[0].verification
        assert got is not None, answers[0].message
        expected = judge.verify(request, verification_uniforms(SEED, "robot", 2, step, 2))
        np.testing.assert_array_equal(got.codes, expected.codes)
        np.testing.assert_array_equal(got.accepted, expected.accepted)
        np.testing.assert_array_equal(got.offset, expected.offset)
        sizes.append(client.request_bytes)
    assert client.windows_resent == 0
    assert max(sizes[1:]) < sizes[0]


def test_a_robot_that_sends_images_needs_a_verifier_with_its_encoder(
    stage: Any, verifier: Any, connect: Callable[[str | None], VerifierClient], encoder: tuple[Path, Encoder]
) -> None:
    client = connect("0123456789abcdef")
    assert client.link is Link.MISMATCHED
    assert client.trouble == (
        f"encoder_fingerprint: the draft's is 0123456789abcdef, the target's {encoder[1].fingerprint!r}; "
        "must be the same"
    )


def test_each_start_of_a_robot_is_a_session(
    connect: Callable[[str | None], VerifierClient], verifier: Any, target: Policy
) -> None:
    numbers = np.zeros((H, S + 4), np.float32)
    counts = np.full((1, 2, 8), [[8192] * 7 + [8191]], np.uint16)
    request = VerificationRequest(numbers[None], GOAL[None], np.zeros((1, 2), np.int64), counts)
    question = Question(request, 1, 0, WireWindow.of(numbers[:, :S], GOAL))
    first, second = (connect(None) for _ in range(2))
    sessions = [client._message_of(question).session_id for client in (first, first, second)]
    assert sessions[0] == sessions[1] != sessions[2]


def test_it_describes_its_encoder(
    stage: Any, verifier: Any, target: Policy, encoder: tuple[Path, Encoder]
) -> None:
    client = stage.node.create_client(DescribeTarget, "describe_target")
    description = stage.call(client, DescribeTarget.Request())
    assert description == describe(target, encoder[1].fingerprint)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            to_jpeg(np.zeros((*SIZE[::-1], 3), np.uint8), 50),
            "images[0].data: 16 x 12 pixels, must be 12 x 16",
        ),
        (b"\xff\xd8\xff\xd9", "images[0].data: 4 bytes, must be a JPEG"),
    ],
)
def test_what_is_no_image_is_refused(
    stage: Any, verifier: Any, target: Policy, data: bytes, message: str
) -> None:
    client = stage.node.create_client(VerifyDraft, "verify_draft", qos_profile=verify_qos("reliable"))
    request = VerifyDraft.Request(
        robot_id="stranger",
        tokenizer_fingerprint=fingerprint_number(target.decoder.fingerprint),
        observation_window=[0.0] * (H * S),
        images=[CompressedImage(format="jpeg", data=data)] * (H * CAMERAS),
        goal=[0.0, 0.0],
    )
    response = stage.call(client, request)
    assert response.status == RequestFault.WRONG_SHAPE
    assert response.message.startswith(message)
