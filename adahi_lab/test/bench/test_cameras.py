from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from adahi_lab.bench import cameras
from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.evaluation.rollout import Log, rollout
from adahi_lab.history import History
from adahi_lab.methods.methods import gated
from adahi_lab.tasks.camera import CameraTask
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.assets import asset
from adahi_ros.core.signature import OBSERVATION, Feature, Signature
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier, VerificationRequest
from adahi_ros.vision.encoder import Encoder
from adahi_ros.vision.images import from_jpeg, jpeg_within, to_jpeg

EPISODE = 3
See = Callable[[Encoder, np.ndarray], np.ndarray]


@pytest.fixture(scope="module")
def ball() -> Comparison:
    """The shipped policies, with a threshold that some drafts are above and others are not."""
    files = PolicyFiles(asset("checkpoints/ball_camera"), "onnxruntime")
    policies = files.load()
    digests = policies.draft.digest, policies.target.digest
    calibration = Calibration("ball_camera", *digests, 0.8, "std", 1.0, 0.6, {"deviation": 0.8})
    return Comparison("ball_camera", files, calibration, seed=5)


class Onlooker(TargetVerifier):
    """A verifier whose windows hold what it sees of the world's frames by itself."""

    def __init__(self, comparison: Comparison, world: CameraTask, see: See) -> None:
        super().__init__(comparison.bench().policies.target)
        self._world = world
        self._see = see
        feature = Feature(OBSERVATION, world.encoder.features)
        self._features = History(Signature(self.policy.signature.history, 1, 1, (feature,)), 1)

    def verdict(self, request: VerificationRequest, draws: np.ndarray) -> Verdict:
        features = self._see(self._world.encoder, self._world.images[0])[None]
        seen = self._features.push({OBSERVATION: features}).features[OBSERVATION]
        observations, width = request.observations, self._world.encoder.features
        numbers = observations.features[OBSERVATION][:, :, :-width]
        shown = {OBSERVATION: np.concatenate([numbers, seen], axis=2)}
        return super().verdict(replace(request, observations=replace(observations, features=shown)), draws)


def in_process(comparison: Comparison, method: str, see: See) -> Log:
    """One episode of the evaluation's rollout: no windows that are sent, no messages."""
    world, bench = cameras.camera_task("ball_camera"), comparison.bench()
    controller = Controller(bench.policies.draft, gated(method).config(bench.calibration))
    return rollout(world, controller, Onlooker(comparison, world, see), comparison.seed, [EPISODE])


def of_frame(encoder: Encoder, image: np.ndarray) -> np.ndarray:
    features: np.ndarray = encoder.encode(image[None])[0]
    return features


def of_jpeg(quality: int) -> See:
    return lambda encoder, image: of_frame(encoder, from_jpeg(to_jpeg(image, quality)))


def of_jpeg_within(budget: int) -> See:
    def see(encoder: Encoder, image: np.ndarray) -> np.ndarray:
        jpeg = to_jpeg(image, 80)
        if len(jpeg) > budget:
            smallest = to_jpeg(image, 1)
            jpeg = jpeg_within(image, budget) if len(smallest) <= budget else smallest
        return of_frame(encoder, from_jpeg(jpeg))

    return see


SEEN: dict[str, See] = {
    "features": of_frame,
    "raw": of_frame,
    "none": lambda encoder, image: np.zeros(encoder.features, np.float32),
    "jpeg_50": of_jpeg(50),
    **{f"jpeg_{budget}_bytes": of_jpeg_within(budget) for budget in cameras.BUDGETS_BYTES},
}


@pytest.mark.parametrize(("method", "view"), [("hybrid", "features"), *(("adahi", view) for view in SEEN)])
def test_an_episode_is_that_of_the_rollout_bit_for_bit(ball: Comparison, method: str, view: str) -> None:
    played, expected = cameras.play(ball, method, view, [EPISODE]), in_process(ball, method, SEEN[view])
    np.testing.assert_array_equal(played.log.action, expected.action)
    np.testing.assert_array_equal(played.log.deviation, expected.deviation)
    np.testing.assert_array_equal(played.log.transmitted, expected.transmitted)
    requested = expected.transmitted
    np.testing.assert_array_equal(played.log.accepted[requested], expected.accepted[requested])
    assert len(played.request_bytes) == len(played.response_bytes) == requested.sum()
    assert method == "hybrid" or not requested.all()


def test_a_request_carries_what_its_view_shows_and_only_what_is_new(ball: Comparison) -> None:
    sent = {
        view: cameras.play(ball, "hybrid", view, [EPISODE]).request_bytes
        for view in ("none", "features", "jpeg_800_bytes", "jpeg_90", "raw")
    }
    encoder = cameras.camera_task("ball_camera").encoder
    features_bytes = 2 * encoder.features
    frame_bytes = 3 * encoder.image_size[0] * encoder.image_size[1]
    whole = ball.bench().policies.draft.signature.history
    for first, second, *_ in sent.values():
        assert second < first
    means = [sizes.mean() for sizes in sent.values()]
    assert means == sorted(means)
    for index, frames in ((0, whole), (1, 1)):
        none = sent["none"][index]
        assert features_bytes * frames <= sent["features"][index] - none < features_bytes * frames + 8
        assert frame_bytes * frames <= sent["raw"][index] - none < (frame_bytes + 64) * frames
        assert sent["jpeg_90"][index] < none + frame_bytes * frames


def test_raw_frames_are_seen_as_features_are_in_episodes_side_by_side(ball: Comparison) -> None:
    raw, features = (cameras.play(ball, "adahi", view, [1, 2, 4]) for view in ("raw", "features"))
    assert cameras.same_steps(raw.log, features.log)
    assert raw.log.active.shape[1] == 3
    blind = cameras.play(ball, "adahi", "none", [1, 2, 4])
    assert not cameras.same_steps(blind.log, features.log)


def played_by_hand(requested: bool = True) -> cameras.Played:
    """Two episodes of two steps, the second over after one; both codes of three transmitted drafts."""
    active = np.array([[True, True], [True, False]])
    transmitted = np.array([[True, True], [True, False]]) & requested
    accepted = np.zeros((2, 2, 2), dtype=bool)
    accepted[0, 0] = [True, False]
    numbers = np.zeros((2, 2))
    actions = np.zeros((2, 2, 1), dtype=np.float32)
    log = Log(
        active,
        transmitted,
        numbers,
        numbers,
        accepted & requested,
        actions,
        actions,
        ~active,
        numbers,
        ~active,
    )
    count = 3 * requested
    sizes = np.array([300, 100, 200])[:count], np.array([50, 60, 70])[:count]
    return cameras.Played(log, np.array([True, False]), *sizes)


def test_figures_by_hand() -> None:
    figures = cameras.view_figures(played_by_hand())
    assert figures["success_rate"] == 0.5
    assert figures["success_ci95"][0] < 0.5 < figures["success_ci95"][1]
    assert figures["transmission_rate"] == 1.0
    assert figures["acceptance"] == pytest.approx(1 / 6)
    assert figures["request_bytes"] == 200.0
    assert figures["response_bytes"] == 60.0


def test_images_take_time_at_both_ends_where_they_are_sent() -> None:
    world = cameras.camera_task("ball_camera")
    world.reset(0, range(4))
    for view in cameras.VISION_SETTINGS:
        times = cameras.image_times(view, world.encoder, world.images, 6)
        if view in ("features", "none"):
            assert set(times.values()) == {None}
        else:
            assert all(value is not None and value > 0.0 for value in times.values())


def test_a_task_without_a_camera_is_refused() -> None:
    with pytest.raises(ValueError, match="task: 'ball', must be one that a camera looks at"):
        cameras.measure_cameras("ball", 1, ["adahi"])


def test_the_figures_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    views = {name: cameras.VISION_SETTINGS[name] for name in ("features", "raw", "jpeg_20")}
    monkeypatch.setattr(cameras, "VISION_SETTINGS", views)
    done: list[tuple[str, int]] = []
    figures = cameras.measure_cameras(
        "ball_camera", 1, ["adahi"], on_done=lambda view, count: done.append((view, count))
    )
    assert done == [(name, 1) for name in views]
    assert figures["raw_as_features"] is True
    assert figures["views"].keys() == figures["image_ms"].keys() == views.keys()
    sizes = [figures["views"][name]["adahi"]["request_bytes"] for name in ("features", "jpeg_20", "raw")]
    assert sizes == sorted(sizes)
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
