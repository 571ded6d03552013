# SPDX-License-Identifier: Apache-2.0
"""Training of an encoder on frames with labels from the simulator.

A small head regresses a frame's contents from the features, and is then discarded. Only the simulator has
such labels; the frozen encoder needs none.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from adahi_lab.encoders.encoder_export import Network, make_network
from adahi_lab.encoders.resnet import load_weights
from adahi_lab.training.fitting import Run, fit, seeded
from adahi_lab.training.recipes import EncoderRecipe
from adahi_lab.training.step_dataset import Moments
from adahi_ros.vision.images import from_jpeg, to_jpeg

HEAD_HIDDEN = 64
JPEG_EVERY = 3  # one of three frames is compressed as JPEG, as in transmission
JPEG_QUALITIES = (30, 96)
HELD_OUT = 10  # one of ten frames measures the errors


class _Regression(nn.Module):
    """An encoder and a head that predicts the frames' labels."""

    def __init__(self, network: Network, labels: int) -> None:
        super().__init__()
        self.network = network
        self.head = nn.Sequential(
            nn.Linear(network.features, HEAD_HIDDEN), nn.ReLU(), nn.Linear(HEAD_HIDDEN, labels)
        )

    def forward(self, images: Tensor) -> Tensor:
        predicted: Tensor = self.head(self.network(images))
        return predicted


@dataclass(frozen=True)
class Trained:
    """The result of a recipe.

    Attributes:
        network: in eval mode.
        config: arguments of `make_network`.
        losses: of every step.
        errors: (L,) root mean square error of the labels on frames held out, in their units.
    """

    network: Network
    config: dict[str, Any]
    losses: list[float]
    errors: np.ndarray


def train_encoder(images: np.ndarray, labels: np.ndarray, recipe: EncoderRecipe, run: Run) -> Trained:
    """Train an encoder on frames and their labels.

    Args:
        images: (N, H, W, 3) uint8.
        labels: (N, L) float32, any units.
        recipe: of the encoder.
        run: seed, saved state and progress.

    Raises:
        ValueError: the recipe needs missing files.
    """
    config = {"architecture": recipe.architecture, "image_size": list(images.shape[1:3]), **recipe.size}
    moments = Moments.measure(labels)
    model = seeded(run.seed, lambda: _Regression(make_network(config), labels.shape[1]))
    network = model.network
    if recipe.weights is not None:
        load_weights(network, recipe.weights)
    losses: list[float] = []
    held_out = np.arange(len(images)) % HELD_OUT == 0
    targets = torch.from_numpy((labels - moments.mean) / moments.scale)
    if recipe.fit is not None:
        shown = torch.from_numpy(_through_jpeg(images[~held_out], run.seed))
        wanted = targets[torch.from_numpy(~held_out)]
        data = hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest()
        losses = fit(
            model,
            lambda batch: F.smooth_l1_loss(model(shown[batch]), wanted[batch], beta=0.1),
            len(shown),
            recipe.fit,
            run,
            {"encoder": config, "weights": recipe.weights, "data": data},
        )
    model.eval()
    with torch.no_grad():
        parts = torch.from_numpy(images[held_out]).split(256)
        predicted = torch.cat([model(part) for part in parts])
        error = (predicted - targets[torch.from_numpy(held_out)]).square().mean(dim=0).sqrt()
    return Trained(network.eval(), config, losses, error.numpy() * moments.scale)


def _through_jpeg(images: np.ndarray, seed: int) -> np.ndarray:
    """Return frames, some of them compressed and decompressed, each at a different quality."""
    images = images.copy()
    qualities = np.random.default_rng(seed).integers(*JPEG_QUALITIES, len(images))
    for row in range(0, len(images), JPEG_EVERY):
        images[row] = from_jpeg(to_jpeg(images[row], int(qualities[row])))
    return images
