"""The target sees as many observations as it reads, with the JPEGs of their own frames."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.history import History
from adahi_ros.core.signature import GOAL, OBSERVATION, Feature, ImageInput, Signature, observed_features
from adahi_ros.protocol.description import LONGEST_HISTORY, MOST_PICTURED
from adahi_ros.protocol.window import WireWindow
from adahi_ros.robot.target_view import Features, Jpegs, Numbers, TargetView
from adahi_ros.vision.images import from_jpeg, to_jpeg

H, QUALITY = 3, 50
TARGET = Signature(H, 1, 1, (Feature(OBSERVATION, 1),))


def observed(value: float = 0.0) -> dict[str, np.ndarray]:
    return {OBSERVATION: np.full(1, value, dtype=np.float32), GOAL: np.zeros(0, dtype=np.float32)}


@pytest.mark.parametrize("every", [1, 2, 5])
def test_a_window_has_the_images_of_its_own_observations(every: int) -> None:
    view = Jpegs(1, QUALITY)
    draw = np.random.default_rng(0)
    jpegs: list[bytes] = []
    for step in range(40):
        frame = draw.integers(256, size=(8, 8, 3), dtype=np.uint8)
        view.add(observed(), {"front": frame})
        jpegs.append(to_jpeg(frame, QUALITY))
        if step % every == 0:
            expected = ([jpegs[0]] * H + jpegs)[-H:]
            assert list(view.window(TARGET).rows.images) == expected


def test_images_go_to_a_target_of_features_that_the_robot_does_not_make() -> None:
    view, target = Jpegs(1, QUALITY), Signature(H, 1, 1, observed_features(1 + 4, 4))
    frames = [np.full((8, 8, 3), shade, dtype=np.uint8) for shade in (10, 90, 200)]
    for step, frame in enumerate(frames):
        view.add(observed(step), {"front": frame})
    window = view.window(target)
    assert list(window.rows.images) == [to_jpeg(frame, QUALITY) for frame in frames]
    assert np.frombuffer(window.rows.numbers, np.float32).tolist() == [0.0, 1.0, 2.0]


def test_an_image_is_compressed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(image: np.ndarray, quality: int) -> bytes:
        calls.append(quality)
        return to_jpeg(image, quality)

    monkeypatch.setattr("adahi_ros.vision.images.to_jpeg", counted)
    view = Jpegs(1, QUALITY)
    for number in range(5):
        view.add(observed(), {"front": np.full((8, 8, 3), number, dtype=np.uint8)})
        view.window(TARGET)
    assert len(calls) == 5


@pytest.mark.parametrize("length", [1, 3, 5, LONGEST_HISTORY])
def test_a_short_history_repeats_its_first_observation(length: int) -> None:
    """As the target's own history would have it, also where only now and then one is sent."""
    target = Signature(length, 1, 1, (Feature(OBSERVATION, 2),), (Feature(GOAL, 1),))
    view, history = Features(2), History(target, 1)
    draw = np.random.default_rng(0)
    for step in range(LONGEST_HISTORY + 10):
        seen = {OBSERVATION: draw.normal(size=2), GOAL: draw.normal(size=1)}
        view.add(seen)
        expected = history.push({name: values[None] for name, values in seen.items()})
        if step % 7 == 0:
            window = WireWindow.pack(target.window(expected)[0], target.condition(expected)[0])
            assert view.window(target) == window


def test_an_episode_begins_again() -> None:
    view = Numbers(1)
    for value in (1.0, 2.0):
        view.add(observed(value))
    view.forget()
    view.add(observed(3.0))
    assert np.frombuffer(view.window(TARGET).rows.numbers, np.float32).tolist() == [3.0] * H


@pytest.mark.parametrize("view", [Features(2), Numbers(2)])
def test_what_a_target_does_not_read_is_not_sent(view: TargetView) -> None:
    view.add(
        {
            "a": np.array([1, 2], np.float32),
            "b": np.array([3], np.float32),
            "goal": np.array([4], np.float32),
            "c": np.array([5], np.float32),
        }
    )
    target = Signature(1, 1, 1, (Feature("c", 1), Feature("b", 1)))
    window = view.window(target)
    assert np.frombuffer(window.rows.numbers, np.float32).tolist() == [5.0, 3.0]
    assert window.goal == b""


@pytest.mark.parametrize(
    ("wanted", "size"),
    [
        (ImageInput("front", 8, 8), (8, 8)),
        (ImageInput("front", 8, 8, padded=True), (4, 8)),
        (ImageInput("front", 100, 20), (20, 20)),
        (ImageInput("front", 100, 100, padded=True), (20, 40)),
    ],
)
def test_a_target_gets_images_no_larger_than_it_reads_them(wanted: ImageInput, size: tuple[int, int]) -> None:
    """Nor larger than they are; black around them is not sent, either."""
    view = Features(1)
    view.add(observed(), {"wrist": np.zeros((4, 4, 3), np.uint8), "front": np.zeros((20, 40, 3), np.uint8)})
    window = view.window(Signature(1, 1, 1, (Feature(OBSERVATION, 1),), images=(wanted,)))
    (jpeg,) = window.rows.images
    assert from_jpeg(jpeg).shape[:2] == size


def test_images_are_kept_of_as_many_observations_as_a_target_may_read() -> None:
    view = Numbers(1)
    target = Signature(MOST_PICTURED, 1, 1, (Feature(OBSERVATION, 1),), images=(ImageInput("front", 8, 8),))
    frames = [np.full((8, 8, 3), 2 * step, dtype=np.uint8) for step in range(20)]
    for frame in frames:
        view.add(observed(), {"front": frame})
        view.window(target)
    assert list(view.window(target).rows.images) == [to_jpeg(each, 80) for each in frames[-MOST_PICTURED:]]
    kept = [bool(seen.images) for seen in view._seen.newest(20)]
    assert kept == [False] * (20 - MOST_PICTURED) + [True] * MOST_PICTURED
