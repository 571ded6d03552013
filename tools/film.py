# SPDX-License-Identifier: Apache-2.0
"""Film episodes of the ball with the method `best`, for the README: a GIF.

python tools/film.py docs/images/ball.gif
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from ball_picture import draw
from PIL import Image, ImageDraw

from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.methods.methods import on_task
from adahi_lab.tasks.ball import BallBalancing
from adahi_ros.core.assets import asset

TASK, METHOD, SEED = "ball", "best", 0
SIZE = (320, 240)  # pixels
COLOURS = 32
SHOWN_STEPS = 3  # of a request's mark
SENT, PLAIN = "#0072B2", "#777777"


class Filmed(BallBalancing):
    """The ball's world, which keeps a picture of each step."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[np.ndarray] = []

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """See `BallBalancing.reset`."""
        super().reset(seed, episodes)
        self.places = [self.state[0, :2]]

    def step(self, action: np.ndarray) -> None:
        """See `BallBalancing.step`."""
        super().step(action)
        self.places.append(self.state[0, :2])
        self.frames.append(draw(self, np.array(self.places)))


def film(episodes: Sequence[int]) -> list[Image.Image]:
    """Return the pictures of episodes, one after the other, with a mark where a request was sent."""
    files = PolicyFiles(asset(f"checkpoints/{TASK}"), "onnxruntime")
    found = load_calibration(asset(f"config/{TASK}.yaml"))
    bench = Comparison(TASK, files, found, SEED).bench()
    method = on_task(METHOD, TASK)
    pictures = []
    for episode in episodes:
        world = Filmed()
        log = method.run(bench, world, SEED, [episode])
        sent = log.transmitted[:, 0]
        for step, frame in enumerate(world.frames):
            requests = int(sent[: step + 1].sum())
            pictures.append(
                _labelled(frame, requests, bool(sent[max(0, step - SHOWN_STEPS) : step + 1].any()))
            )
    return pictures


def _labelled(frame: np.ndarray, requests: int, sent: bool) -> Image.Image:
    picture = Image.fromarray(frame).resize(SIZE)
    pen = ImageDraw.Draw(picture)
    pen.text((SIZE[0] - 120, SIZE[1] - 20), f"requests: {requests}", fill=SENT if sent else PLAIN)
    if sent:
        pen.ellipse((SIZE[0] - 136, SIZE[1] - 18, SIZE[0] - 126, SIZE[1] - 8), fill=SENT)
    return picture.quantize(COLOURS)


def main() -> None:
    """Write the film."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--episodes", type=int, default=2)
    arguments = parser.parse_args()
    first, *rest = film(range(arguments.episodes))
    period_ms = round(1000 / BallBalancing().spec.control_rate_hz)
    first.save(arguments.file, save_all=True, append_images=rest, duration=period_ms, loop=0, optimize=True)


if __name__ == "__main__":
    main()
