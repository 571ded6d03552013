# SPDX-License-Identifier: Apache-2.0
"""Worlds whose camera is for the target alone: what is to be done is in the picture, and nowhere else.

The robot knows where its joints and the things are; it sends the picture with a request, as JPEG, and makes
nothing of it. Here, too, the target sees what a verifier makes of that JPEG.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adahi_ros.lab.tasks.camera import CameraExpert, WatchedTask
from adahi_ros.vision.encoder import Encoder
from adahi_ros.vision.images import as_sent


class SeenTask(WatchedTask):
    """A task whose goal is told to nobody: the camera shows it, and only the target looks. Implements `Task`.

    Args:
        name: of the task.
        watched: registry name of the task that is looked at.
        encoder: the verifier's; default: the shipped one of that task.

    Raises:
        CheckpointError: the encoder is missing or damaged.
        ValueError: no camera looks at the task, or its frames are not of the encoder's size.
    """

    def __init__(self, name: str, watched: str, encoder: Encoder | None = None) -> None:
        super().__init__(watched, encoder)
        self.spec = replace(
            self.watched.spec, name=name, goal_dim=0, goal_for_target=False, images_for_target=True
        )
        self.reset(0, [0])

    @property
    def goal(self) -> np.ndarray:
        """(E, 0) float64."""
        return self.watched.goal[:, :0]

    @property
    def image_features(self) -> np.ndarray:
        """(E, F) float32, what a verifier makes of the present frames as they are sent."""
        return self._encoded(as_sent)


class BallSeen(SeenTask):
    """Ball balancing to a mark in the ring round the post, which the target alone sees."""

    def __init__(self) -> None:
        super().__init__("ball_seen", "ball_instructed")


class BallSeenExpert(CameraExpert):
    """Goes round the post to the mark; knows where both are."""

    def __init__(self) -> None:
        super().__init__("ball_instructed")
