"""Where windows are asked for now and then, each has the JPEGs of its own frames."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.robot.target_view import Jpegs
from adahi_ros.vision.images import to_jpeg

H, QUALITY = 3, 50
GOAL = np.zeros(0, dtype=np.float32)


@pytest.mark.parametrize("every", [1, 2, 5])
def test_a_window_has_the_images_of_its_own_observations(every: int) -> None:
    view = Jpegs(H, 1, QUALITY)
    draw = np.random.default_rng(0)
    jpegs: list[bytes] = []
    for step in range(40):
        frame = draw.integers(256, size=(8, 8, 3), dtype=np.uint8)
        view.add([frame])
        jpegs.append(to_jpeg(frame, QUALITY))
        if step % every == 0:
            expected = ([jpegs[0]] * H + jpegs)[-H:]
            sent = view.window(np.zeros((H, 1), dtype=np.float32), GOAL)
            assert list(sent.rows.images) == expected


def test_an_image_is_compressed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(image: np.ndarray, quality: int) -> bytes:
        calls.append(quality)
        return to_jpeg(image, quality)

    monkeypatch.setattr("adahi_ros.robot.target_view.to_jpeg", counted)
    view = Jpegs(H, 1, QUALITY)
    for number in range(5):
        view.add([np.full((8, 8, 3), number, dtype=np.uint8)])
        view.window(np.zeros((H, 1), dtype=np.float32), GOAL)
    assert len(calls) == 5
