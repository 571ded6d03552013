"""The verifier's reply is the target's to the robot's window, whichever way its cameras are sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adahi_msgs.srv import DescribeTarget

from adahi_ros.core.proposal import Proposal, counted
from adahi_ros.core.signature import GOAL, OBSERVATION, Offer
from adahi_ros.nodes.common.timers import DueTimer
from adahi_ros.nodes.common.verifier_messages import to_request
from adahi_ros.nodes.robot.dds_transport import DdsTransport, VerifierClients
from adahi_ros.nodes.server.robot_messages import describe
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy, fingerprint_of
from adahi_ros.protocol.description import Description, Wants
from adahi_ros.protocol.request import (
    Request,
    Sender,
    sent_codes,
)
from adahi_ros.protocol.window import WireWindow
from adahi_ros.robot.outcomes import Outcome, PendingRequest
from adahi_ros.robot.session import VerifierSession, VerifierState
from adahi_ros.server.verifier import TargetVerifier, VerificationRequest, verification_uniforms
from adahi_ros.vision.encoder import Encoder
from adahi_ros.vision.images import from_jpeg, to_jpeg
from test.system.stage import Stage

SEED = 5
H, S, CAMERAS, STEPS = 3, 2, 2, 5
AIM = np.array([0.1, -0.1], np.float32)
SIZE = (12, 16)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Encoder]:
    """Two features of each image, so that two cameras make what O = 6 lacks; and where it is."""
    import torch

    from adahi_lab.encoders.encoder_export import make_network, save_encoder

    config = {"architecture": "keypoints", "image_size": SIZE, "channels": 2, "layers": 1, "keypoints": 1}
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("encoders") / "tiny"
    save_encoder(path, make_network(config).eval(), config, {"seed": 0})
    return path, Encoder.load(path)


@pytest.fixture(scope="module")
def target(exported: Path) -> Policy:
    return load_policy(exported / "target", "onnxruntime")


@pytest.fixture(scope="module")
def verifier(stage: Stage, exported: Path, encoder: tuple[Path, Encoder]) -> Iterator[Any]:
    process = stage.start_verifier(
        exported, encoder=str(encoder[0]), seed=SEED, verification__reliability="reliable"
    )
    yield process
    stage.end(process)


class End:
    """A robot's end: a session over DDS, spun by the stage's node."""

    def __init__(self, stage: Stage, policy: Policy, encoder_fingerprint: str | None) -> None:
        signature = policy.signature
        fingerprint = signature.codes.fingerprint if signature.codes else None
        self._clients = VerifierClients(stage.node, "reliable")
        self.transport = DdsTransport(
            self._clients, Sender.of_new_start("robot", "", fingerprint), self._poll
        )
        self._due = DueTimer(stage.node, self._poll)
        wants = Wants(signature, Offer({OBSERVATION: 6, GOAL: 2}), encoder_fingerprint=encoder_fingerprint)
        self.session = VerifierSession(self.transport, wants, False, lambda: None)
        self.session.start(time.monotonic())
        self._due.set(self.session.next_due_s)
        stage.wait(lambda: self.session.link is not VerifierState.ABSENT, "a verifier")

    def submit(self, request: Request, on_outcome: Callable[[Outcome], None]) -> PendingRequest:
        return self.session.submit(request, 30.0, time.monotonic(), on_outcome)

    def _poll(self) -> None:
        self.session.poll(time.monotonic())
        self._due.set(self.session.next_due_s)

    def destroy(self) -> None:
        self.session.stop()
        self._due.destroy()
        self._clients.destroy()


@pytest.fixture
def connect(stage: Stage, target: Policy) -> Iterator[Callable[[str | None], End]]:
    """From the fingerprint of the robot's encoder to its end, when a verifier has described itself."""
    ends: list[End] = []

    def make(fingerprint: str | None) -> End:
        ends.append(End(stage, target, fingerprint))
        return ends[-1]

    yield make
    for end in ends:
        end.destroy()


def features_of(encoder: Encoder, frames: np.ndarray) -> np.ndarray:
    """Features (T, C F) of frames (T, C, rows, columns, 3)."""
    return encoder.encode(frames.reshape(-1, *SIZE, 3)).reshape(len(frames), -1)


@pytest.mark.parametrize("sent", ["features", "images", "nothing"])
def test_the_target_sees_what_was_meant(
    sent: str,
    stage: Stage,
    verifier: Any,
    connect: Callable[[str | None], End],
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
    end = connect(eye.fingerprint if sent == "images" else None)
    assert end.session.link is VerifierState.READY
    judge = TargetVerifier(target)
    sizes = []
    for step in range(STEPS):
        rows = slice(step, step + H)
        window = np.concatenate([numbers[rows], features[rows]], axis=1)
        wire = {
            "features": WireWindow.pack(numbers[rows], AIM, features=features[rows]),
            "images": WireWindow.pack(
                numbers[rows], AIM, images=jpegs[CAMERAS * step : CAMERAS * (step + H)]
            ),
            "nothing": WireWindow.pack(numbers[rows], AIM),
        }[sent]
        counts = counted(draw.dirichlet(np.ones(8), size=(1, 2)))
        seen = target.signature.observations(window[None], AIM[None])
        drawn = sent_codes(draw.integers(8, size=(1, 2)), counts)
        request = VerificationRequest(seen, Proposal(np.zeros((1, 0, 2), np.float32), drawn))
        outcomes: list[Outcome] = []
        pending = end.submit(Request.from_draft(request.draft, 2, step, wire), outcomes.append)
        stage.wait(partial(bool, outcomes), "reply")
        got = outcomes[0].verification
        assert got is not None, outcomes[0].message
        expected = judge.verify(request, verification_uniforms(SEED, "robot", 2, step, 2))
        np.testing.assert_array_equal(got.accepted, expected.accepted)
        np.testing.assert_array_equal(got.actions, expected.actions)
        sizes.append(pending.request_bytes)
    assert end.session.windows_resent == 0
    assert max(sizes[1:]) < sizes[0]


def test_each_start_of_a_robot_is_a_session() -> None:
    numbers = np.zeros((H, S + 4), np.float32)
    counts = np.full((1, 2, 8), [[8192] * 7 + [8191]], np.uint16)
    draft = Proposal(np.zeros((1, 0, 2), np.float32), sent_codes(np.zeros((1, 2), np.int64), counts))
    requested = Request.from_draft(draft, 1, 0, WireWindow.pack(numbers[:, :S], AIM))
    first, second = (Sender.of_new_start("robot", "", None) for _ in range(2))
    sessions = [to_request(requested, requested.window, each).session_id for each in (first, first, second)]
    assert sessions[0] == sessions[1] != sessions[2]


def test_it_describes_its_encoder(
    stage: Stage, verifier: Any, target: Policy, encoder: tuple[Path, Encoder], exported: Path
) -> None:
    description = stage.client(DescribeTarget, "describe_target")(DescribeTarget.Request())
    assert list(description.targets) == [description.target]
    description.targets = []
    name, weights = "/".join(exported.parts[-1:]) + "/target", fingerprint_of(target)
    described = Description(name, "speculative", target.signature, encoder[1].fingerprint)
    assert description == describe(replace(described, policy_fingerprint=weights))
