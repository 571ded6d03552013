"""A target that reads images gets those that belong to its observations, or the request is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adahi_ros.core.proposal import ActionRange, Proposal
from adahi_ros.core.signature import Feature, ImageInput, Observations, Signature
from adahi_ros.policies.absent import LARGEST
from adahi_ros.policies.direct import DirectPolicy
from adahi_ros.policies.interface import TargetUnavailableError
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.request import Request, RequestError, RequestFault
from adahi_ros.protocol.window import SentWindows, WireWindow
from adahi_ros.robot.target_view import Numbers
from adahi_ros.server.engine import Engine
from adahi_ros.server.received_images import pictures
from adahi_ros.server.service import LoadedTarget, ServedTargets, VerificationService
from adahi_ros.server.verifier import TargetVerifier
from adahi_ros.server.window_cache import Pixels
from adahi_ros.vision.images import to_jpeg

H = 3
FRONT, WRIST = ImageInput("front", 8, 16), ImageInput("wrist", 8, 8, padded=True)


class Seeing(DirectPolicy):
    """Proposes the mean shade of each of the images that it sees."""

    def __init__(self) -> None:
        signature = Signature(H, 1, 2 * H, (Feature("state", 1),), images=(FRONT, WRIST), instruction=True)
        most = np.full(2 * H, LARGEST)
        super().__init__(signature, ActionRange(-most, most), np.ones(2 * H), "seeing")
        self.instructions: tuple[str, ...] = ()

    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        self.instructions = observations.instructions
        if self.instructions == ("fail",):
            raise TargetUnavailableError("openpi: ws://there:8000, stalled for 2 s")
        shades = [observations.images[each.name].mean(axis=(2, 3, 4)) for each in (FRONT, WRIST)]
        return np.stack(shades, axis=2).reshape(len(draws), 1, 2 * H)


def frames(step: int) -> dict[str, np.ndarray]:
    return {
        "front": np.full((8, 16, 3), 10 * step, np.uint8),
        "wrist": np.full((8, 8, 3), 5 * step, np.uint8),
    }


def request(update: Any, step: int, instruction: str = "stack the blocks") -> Request:
    draft = Proposal(np.zeros((1, 0, 2 * H), np.float32))
    return replace(Request.from_draft(draft, 0, step, update, instruction=instruction), robot_id="arm")


def test_each_observation_has_its_images_though_only_new_ones_are_sent() -> None:
    policy = Seeing()
    engine, view, sent = Engine(TargetVerifier(policy, "replace"), 0), Numbers(1), SentWindows()
    counts = []
    for step in range(8):
        view.add({"state": np.zeros(1, np.float32)}, frames(step))
        window = view.window(policy.signature)
        update = sent.update(window)
        counts.append(len(update.rows.images))
        reply = engine.verify(request(update, step), 1.0)
        sent.replied(window, reply.window_kept)
        seen = [max(0, step - H + 1 + row) for row in range(H)]
        expected = [shade for past in seen for shade in (10 * past, 5 * past)]
        np.testing.assert_allclose(reply.actions[: 2 * H], expected, atol=1.0)
    assert counts == [2 * H] + [2] * 7
    assert policy.instructions == ("stack the blocks",)


def test_images_that_are_missing_or_too_many_are_refused() -> None:
    policy = Seeing()
    engine, view = Engine(TargetVerifier(policy, "replace"), 0), Numbers(1)
    view.add({"state": np.zeros(1, np.float32)}, frames(1))
    update = SentWindows().update(view.window(policy.signature))
    for images in ((), update.rows.images[:-1], update.rows.images * 2):
        wrong = update._replace(rows=update.rows._replace(images=images))
        with pytest.raises(
            RequestError, match=rf"^images: {len(images)} values, must be 6, 2 per observation$"
        ):
            engine.verify(request(wrong, 0), 1.0)
    with pytest.raises(RequestError, match=r"^instruction: empty, must say what to do") as refusal:
        engine.verify(request(update, 0, " "), 1.0)
    assert refusal.value.fault is RequestFault.NO_INSTRUCTION


def test_an_unavailable_policy_is_reported_by_a_status_of_its_own() -> None:
    engine = Engine(TargetVerifier(Seeing(), "replace"), 0)
    description = Description("eye", "replace", Seeing().signature)
    service = VerificationService(ServedTargets(LoadedTarget(engine, description)))
    view = Numbers(1)
    view.add({"state": np.zeros(1, np.float32)}, frames(1))
    update = SentWindows().update(view.window(Seeing().signature))
    for instruction, status in (("fail", RequestFault.TARGET_UNAVAILABLE), ("go", 0)):
        (served,) = service.replies([request(update, 0, instruction)], 1.0)
        assert served.reply.status == status
    assert service.counts.replies == {"target_unavailable": 1, "ok": 1}


@pytest.mark.parametrize(
    ("jpeg", "message"),
    [
        (b"no", "images[1].data: 2 bytes, must be a JPEG"),
        (to_jpeg(np.zeros((9, 8, 3), np.uint8), 80), "images[1].data: 9 x 8 pixels, must be 8 x 8 at most"),
        (bytes(3 * 64 + 4097), "images[1].data: 4289 bytes, must be at most 4288"),
    ],
)
def test_what_is_no_picture_of_the_size_is_refused(jpeg: bytes, message: str) -> None:
    with pytest.raises(RequestError, match=f"^{re.escape(message)}"):
        pictures((FRONT, WRIST), (to_jpeg(frames(1)["front"], 80), jpeg))


def test_smaller_images_are_enlarged_and_padded_in_black() -> None:
    white = np.full((2, 4, 3), 255, np.uint8)
    read = pictures((FRONT, WRIST), (to_jpeg(white, 95), to_jpeg(white, 95)))
    assert read["front"].shape == (1, 8, 16, 3)
    assert read["front"].min() > 250
    rows = read["wrist"][0].min(axis=(1, 2))
    assert rows.tolist() == [0, 0, rows[2], rows[3], rows[4], rows[5], 0, 0]
    assert rows[2:6].min() > 250


def test_pictures_that_were_not_compressed_are_read_and_not_kept() -> None:
    """Of a door's client, which sends each window whole."""
    engine = Engine(TargetVerifier(Seeing(), "replace"), 0)
    shown = [Pixels.from_picture(frames(step)[name]) for step in range(H) for name in ("front", "wrist")]
    window = WireWindow.pack(np.zeros((H, 1), np.float32), np.zeros(0, np.float32), images=shown)
    reply = engine.verify(request(window, 7), 0.0)
    np.testing.assert_array_equal(reply.actions, [0, 0, 10, 5, 20, 10])
    assert not reply.window_kept
    large = WireWindow.pack(
        np.zeros((H, 1), np.float32),
        np.zeros(0, np.float32),
        images=[Pixels.from_picture(np.zeros((9, 16, 3), np.uint8))] * 6,
    )
    with pytest.raises(RequestError, match=r"images\[0\].data: 9 x 16 pixels, must be 8 x 16 at most"):
        engine.verify(request(large, 8), 0.0)
