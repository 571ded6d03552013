# SPDX-License-Identifier: Apache-2.0
"""Compares ways to send camera images to the target: bytes of a verification against success.

Episodes run in one process. Draft and target still exchange what a network would carry: window updates
and serialized messages. The verifier keeps its windows and runs its encoder. Only DDS is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np

from adahi_lab.bench.verification_calls import VerificationCalls
from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.evaluate import Comparison, batches
from adahi_lab.evaluation.metrics import transmission_rate, wilson_interval
from adahi_lab.evaluation.rollout import Log, Logged
from adahi_lab.figures import Figures
from adahi_lab.methods.methods import gated
from adahi_lab.nodes.called_verifier import CalledTransport, CalledVerifier
from adahi_lab.parallel import Job, run_jobs
from adahi_lab.tasks import make
from adahi_lab.tasks.camera import CameraTask
from adahi_lab.tasks.episodes import episodes
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.signature import GOAL, OBSERVATION, Feature, Offer, Signature
from adahi_ros.protocol.description import Wants
from adahi_ros.robot.controller import Controller
from adahi_ros.robot.target_view import VIEWS, Jpegs, TargetView
from adahi_ros.server.received_images import ReceivedImages
from adahi_ros.server.verifier import TargetVerifier
from adahi_ros.server.window_cache import ImageEncoder
from adahi_ros.vision.encoder import Encoder

QUALITIES = (90, 50, 20)
BUDGETS_BYTES = (1000, 800)
FRAMES_TIMED = 100
CAMERA = "observation.images.camera"

T = TypeVar("T")


class Frames(Jpegs):
    """Uncompressed images instead of JPEGs, as a reference; no node offers this."""

    def _compress(self, image: np.ndarray) -> bytes:
        return image.tobytes()


class ReceivedFrames:
    """Makes features of the images of `Frames`; an `ImageEncoder`."""

    def __init__(self, encoder: Encoder) -> None:
        self.features = encoder.features
        self._encoder = encoder

    def encode(self, frame: bytes) -> np.ndarray:
        """Return the features (features,) float32 of an image."""
        image = np.frombuffer(frame, dtype=np.uint8).reshape(1, *self._encoder.image_size, 3)
        features: np.ndarray = self._encoder.encode(image)[0]
        return features


@dataclass(frozen=True)
class VisionSetting:
    """How camera images are sent to the target, by the parameters of the robot's node.

    Attributes:
        vision: `verification.vision`, or raw.
        quality: `verification.jpeg_quality`.
        budget_bytes: `verification.jpeg_budget_bytes`.
    """

    vision: str
    quality: int = 80
    budget_bytes: int = 0

    def view(self, number_dim: int) -> TargetView:
        """Return a robot's view; arguments as `TargetView`."""
        if self.vision == "raw":
            return Frames(number_dim)
        return VIEWS[self.vision](number_dim, self.quality, self.budget_bytes)

    def images(self, encoder: Encoder) -> ImageEncoder | None:
        """Return what the verifier makes features by; None where no images are sent."""
        if self.vision == "raw":
            return ReceivedFrames(encoder)
        return ReceivedImages(encoder) if self.vision == "jpeg" else None


VISION_SETTINGS: dict[str, VisionSetting] = {
    "features": VisionSetting("features"),
    "raw": VisionSetting("raw"),
    **{f"jpeg_{quality}": VisionSetting("jpeg", quality) for quality in QUALITIES},
    **{f"jpeg_{budget}_bytes": VisionSetting("jpeg", budget_bytes=budget) for budget in BUDGETS_BYTES},
    "none": VisionSetting("none"),
}


@dataclass(frozen=True)
class Played(Logged):
    """E episodes of one method and view.

    Attributes:
        log: step by step, as a robot knows it: `accepted` is False without a request.
        success: (E,) bool.
        request_bytes: of each verification, serialized.
        response_bytes: of each reply.
    """

    success: np.ndarray
    request_bytes: np.ndarray
    response_bytes: np.ndarray


@dataclass(frozen=True)
class _Robot:
    """What belongs to one episode: the view of its window, and its way to the verifier."""

    episode: int
    view: TargetView
    calls: VerificationCalls


def measure_cameras(
    task: str,
    episodes: int,
    methods: Sequence[str],
    seed: int = 0,
    workers: int = 1,
    on_done: Callable[[str, int], None] = lambda view, episodes: None,
) -> Figures:
    """Run every method with every view of cameras, on the same episodes.

    Args:
        task: one that a camera looks at, with shipped policies.
        episodes: per method and view.
        methods: names of what robots can do.
        seed: of the world's and the policies' draws.
        workers: processes.
        on_done: called with a view and the number of its episodes that have just ended.

    Returns:
        `views`: by view and method, the figures of `view_figures`; `image_ms`: by view, those of
        `image_times`; `raw_as_features`: whether raw frames led to the same actions as features, bit for bit.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """
    world = camera_task(task)
    name = world.spec.name
    comparison = Comparison.shipped(task, seed)
    parts = batches(evaluation_episodes(episodes))
    jobs: list[Job[Played]] = [
        (play, (comparison, method, view, part))
        for view in VISION_SETTINGS
        for method in methods
        for part in parts
    ]
    results = iter(run_jobs(jobs, workers, lambda at: on_done(jobs[at][1][2], len(jobs[at][1][3]))))
    played = {
        view: {method: Played.side_by_side([next(results) for _ in parts]) for method in methods}
        for view in VISION_SETTINGS
    }
    world.reset(seed, evaluation_episodes(FRAMES_TIMED))
    length = comparison.files.load().target.signature.history
    return {
        "task": name,
        "episodes": episodes,
        "seed": seed,
        "image_size": list(world.encoder.image_size),
        "views": {
            view: {method: view_figures(each) for method, each in by_method.items()}
            for view, by_method in played.items()
        },
        "image_ms": {
            view: image_times(view, world.encoder, world.images, length) for view in VISION_SETTINGS
        },
        "raw_as_features": all(
            same_steps(played["raw"][method].log, played["features"][method].log) for method in methods
        ),
    }


def camera_task(task: str) -> CameraTask:
    """Make a task with a camera.

    Raises:
        ValueError: the task has no camera.
    """
    world = make(task)
    if not isinstance(world, CameraTask):
        raise ValueError(f"task: {task!r}, must be one that a camera looks at, such as ball_camera")
    return world


def play(comparison: Comparison, method: str, view: str, numbers: Sequence[int]) -> Played:
    """Run episodes with one method and one view for the target."""
    world, bench, way = camera_task(comparison.task), comparison.bench(), gated(method)
    controller = Controller(bench.policies.draft, way.config(bench.calibration))
    verifier = TargetVerifier(bench.policies.target, way.acceptance)
    target = verifier.policy.signature
    robots = []
    for episode in numbers:
        images = VISION_SETTINGS[view].images(world.encoder)
        called = CalledVerifier(verifier, way.acceptance, comparison.seed, images)
        shown = VISION_SETTINGS[view].view(target.observation_dim - world.encoder.features)
        robots.append(_Robot(episode, shown, _calls(called, bench.policies.draft.signature, world)))
    rows = []
    for active in episodes(world, comparison.seed, numbers, controller):
        observed = {OBSERVATION: world.observation, GOAL: world.goal}
        step = controller.begin(observed)
        for index, (robot, image) in enumerate(zip(robots, world.images, strict=True)):
            robot.view.add({name: values[index] for name, values in observed.items()}, {CAMERA: image})
        requested = step.transmit & active
        verdicts = []
        for row in np.flatnonzero(requested):
            asking, draft = robots[row], step.draft(np.array([row]))
            window = asking.view.window(target)
            verdicts.append(asking.calls.ask(draft, window, asking.episode, step.index))
        accepted = np.zeros((len(robots), verifier.policy.draws), dtype=bool)
        verdict = _joined(verdicts) if verdicts else None
        if verdict is not None:
            accepted[requested] = verdict.accepted
        action = controller.finish(step, verdict, requested)
        controller.executed(action)
        world.step(action)
        refused = np.zeros_like(active)  # a refusal would have raised an error; and no robot is held
        of_step = active, requested, step.deviation, step.score, accepted, step.intended, action, refused
        rows.append((*of_step, controller.held.age(step.index), refused))
    return Played(
        Log(*(np.stack(column) for column in zip(*rows, strict=True))),
        world.success,
        np.array(list(chain.from_iterable(robot.calls.request_bytes for robot in robots))),
        np.array(list(chain.from_iterable(robot.calls.response_bytes for robot in robots))),
    )


def _calls(called: CalledVerifier, draft: Signature, world: CameraTask) -> VerificationCalls:
    """Return a robot's way to a verifier of its own."""
    fingerprint = None if draft.codes is None else draft.codes.fingerprint
    offered = Offer({OBSERVATION: world.spec.observation_dim, GOAL: world.spec.goal_dim})
    transport = CalledTransport(called.describe, called.verify, fingerprint)
    return VerificationCalls(transport, Wants(draft, offered))


def _joined(verdicts: Sequence[Verdict]) -> Verdict:
    return Verdict(
        np.concatenate([verdict.actions for verdict in verdicts]),
        np.concatenate([verdict.accepted for verdict in verdicts]),
    )


def view_figures(played: Played) -> Figures:
    """Return success, rates and mean bytes; None where nothing was transmitted.

    `acceptance` is the share of the transmitted codes that the target kept.
    """
    log, episodes, successes = played.log, len(played.success), int(played.success.sum())
    requested = log.transmitted
    return {
        "success_rate": successes / episodes,
        "success_ci95": list(wilson_interval(successes, episodes)),
        "transmission_rate": transmission_rate(requested, log.active),
        "acceptance": float(log.accepted[requested].mean()) if requested.any() else None,
        "request_bytes": float(played.request_bytes.mean()) if requested.any() else None,
        "response_bytes": float(played.response_bytes.mean()) if requested.any() else None,
    }


def same_steps(one: Log, other: Log) -> bool:
    """Whether two logs have the same actions and verdicts, bit for bit."""
    if not np.array_equal(one.active, other.active):
        return False
    return all(
        mine[one.active].tobytes() == its[one.active].tobytes()
        for mine, its in ((one.action, other.action), (one.accepted, other.accepted))
    )


def image_times(view: str, encoder: Encoder, images: np.ndarray, length: int) -> dict[str, float | None]:
    """Return the median time that an image takes, in ms; None where no images are sent.

    Args:
        view: a key of `VISION_SETTINGS`.
        encoder: the verifier's.
        images: (B, rows, columns, 3) uint8, to be sent.
        length: H.

    Returns:
        `robot`, to encode the image; `verifier`, to compute its features.
    """
    received = VISION_SETTINGS[view].images(encoder)
    if received is None:
        return {"robot": None, "verifier": None}
    looking = VISION_SETTINGS[view].view(0)
    target = Signature(length, 1, 1, (Feature(OBSERVATION, 0),))
    nothing = {OBSERVATION: np.zeros(0, dtype=np.float32)}
    robot_ms, verifier_ms = [], []
    for image in images:
        looking.forget()
        looking.add(nothing, {CAMERA: image})
        sent, took_ms = _timed(looking.window, target)
        robot_ms.append(took_ms)
        verifier_ms.append(_timed(received.encode, sent.rows.images[-1])[1])
    return {"robot": float(np.median(robot_ms)), "verifier": float(np.median(verifier_ms))}


def _timed(work: Callable[..., T], *arguments: object) -> tuple[T, float]:
    start = time.perf_counter()
    result = work(*arguments)
    return result, 1e3 * (time.perf_counter() - start)
