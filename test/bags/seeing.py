"""A toy robot with two cameras, and a target that reads its images as they are and is told what to do."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from adahi_ros.core.proposal import ActionRange
from adahi_ros.core.signature import GOAL, OBSERVATION, Feature, ImageInput, Observations, Signature
from adahi_ros.policies.absent import LARGEST
from adahi_ros.policies.direct import DirectPolicy
from adahi_ros.policies.interface import TargetUnavailableError
from adahi_ros.vision.images import to_jpeg
from test.bags.conftest import KINDS, LATE_NS, PERIOD_NS, START_NS, Line, command, header, joints, make, state

FRONT = ImageInput("observation.images.front", 6, 10)
WRIST = ImageInput("observation.images.wrist", 12, 12, padded=True)
HORIZON = 4
FRONT_TOPIC, WRIST_TOPIC = "front/image_raw", "wrist/image_raw/compressed"


def seeing_values(plain: dict[str, Any]) -> dict[str, Any]:
    """Return a plain contract with two cameras whose images are for the target."""
    values = deepcopy(plain)
    cameras = {FRONT.name: (FRONT_TOPIC, [8, 12]), WRIST.name: (WRIST_TOPIC, [9, 6])}
    for name, (topic, size) in cameras.items():
        values["observations"][name] = {
            "channel": {"topic": topic, "type": KINDS[topic]},
            "apply": [{"resize": size}],
            "align": {"strategy": "hold", "timeline": "header", "tolerance_ms": 40.0},
        }
    return {**values, "images_for_target": True}


class Seeing(DirectPolicy):
    """Plans from all that it reads, of each robot alone; notes what it has read.

    Args:
        folder: of its file.
        gain: changes what it plans.
        fails_after: so many observations, it is not to be had.
    """

    def __init__(self, folder: Path, gain: float = 1.0, fails_after: int = 10**9) -> None:
        signature = Signature(
            *(3, HORIZON, 2, (Feature("observation.joints", 2),), (Feature(GOAL, 2),)),
            instruction=True,
            images=(FRONT, WRIST),
        )
        most = np.full(2, LARGEST)
        super().__init__(signature, ActionRange(-most, most), np.ones(2), "seeing")
        self.fails_after = fails_after
        self.read: list[Observations] = []
        self.batches: list[int] = []
        self._gain = gain

    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        if len(self.read) + len(draws) > self.fails_after:
            raise TargetUnavailableError("seeing: ws://gpu:8000, dropped the connection")
        self.batches.append(len(draws))
        each = [observations.rows(np.array([row])) for row in range(len(draws))]
        self.read += each
        return np.stack([self._gain * self._plan(one) for one in each])

    def _plan(self, one: Observations) -> np.ndarray:
        shade = sum(float(image.mean()) for image in one.images.values()) / 1000
        given = len(one.instructions[0]) / 100
        start = one.features["observation.joints"][0, -1] + one.conditions[GOAL][0] / 10 + shade + given
        return np.stack([start + 0.01 * step for step in range(HORIZON)])


class Still(DirectPolicy):
    """A policy that stays where it is."""

    def __init__(self, folder: Path, horizon: int = 1) -> None:
        signature = Signature(1, horizon, 2, (Feature(OBSERVATION, 6),))
        super().__init__(signature, ActionRange(np.full(2, -9.0), np.full(2, 9.0)), np.ones(2), "still")

    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        return np.repeat(observations.features[OBSERVATION][:, -1:, :2], self.signature.horizon, axis=1)


def messages(seed: int = 3, episodes: int = 4, steps: int = 9) -> list[Line]:
    """Return what a robot says, with a lost picture, a state said twice and another instruction."""
    draw, lines, now = np.random.default_rng(seed), [], START_NS
    first = make(KINDS["instruction"], data="stack the blocks")
    for episode in range(episodes):
        goal = draw.normal(size=2)
        for step in range(steps):
            now += PERIOD_NS
            at = now + LATE_NS
            pixels = draw.integers(256, size=(16, 24, 3), dtype=np.uint8)
            front = make(
                KINDS[FRONT_TOPIC],
                header=header(now - 1000),
                height=16,
                width=24,
                encoding="rgb8",
                step=72,
                data=pixels.ravel(),
            )
            seen = np.frombuffer(to_jpeg(pixels[:, :12], 90), np.uint8)
            wrist = make(KINDS[WRIST_TOPIC], header=header(now - 2000), format="jpeg", data=seen)
            if (episode, step) != (1, 4):
                lines.append(Line(FRONT_TOPIC, front, at))
            lines.append(Line(WRIST_TOPIC, wrist, at + 1))
            lines.append(Line("joint_states", joints(now, draw.normal(size=2)), at + 2))
            given = state(now, draw.normal(size=4), goal, episode, step)
            lines.append(Line("task_state", given, at + 3))
            if (episode, step) == (0, 5):
                lines.append(Line("task_state", given, at + 4))
            lines.append(Line("command", command(now, draw.normal(size=2)), at + 5))
            if (episode, step) == (0, 1):
                lines.append(Line("instruction", first, at + 6))
            if (episode, step) == (2, 3):
                other = make(KINDS["instruction"], data="open the drawer")
                lines.append(Line("instruction", other, at + 6))
    return lines
