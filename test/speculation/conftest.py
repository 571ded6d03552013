from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from adahi_ros.policy.interface import PolicySpec, Prediction
from adahi_ros.policy.vqbet.decoder import ActionDecoder


class FixedPolicy:
    """Predicts the same logits (N, K) and offsets (N, K, W, A) whatever it sees; H 2, O 3, G 1.

    The chunk of codes (i, j) is [[i, 10 j], ...], so that codes can be read off an action.
    """

    def __init__(self, logits: np.ndarray, offset: float, chunk_length: int) -> None:
        size = logits.shape[1]
        first, second = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
        table = np.stack([first, 10.0 * second], axis=-1)[:, :, None].repeat(chunk_length, axis=2)
        self.decoder = ActionDecoder(table.astype(np.float32), np.array([2.0, 4.0], np.float32))
        self.spec = PolicySpec(2, 3, 1, 2, size, chunk_length, 2, 0)
        self.digest = "fixed"
        self._logits = logits.astype(np.float32)
        self._offsets = np.full((2, size, chunk_length, 2), offset / 2, np.float32)

    def predict(self, windows: np.ndarray, goals: np.ndarray) -> Prediction:
        batch = len(windows)
        assert windows.shape == (batch, 2, 3)
        assert goals.shape == (batch, 1)
        return Prediction(np.stack([self._logits] * batch), np.stack([self._offsets] * batch))


@pytest.fixture
def fixed_policy() -> Callable[..., FixedPolicy]:
    """From `probabilities` (2, K), and what to add to each action, to a policy that is always so."""

    def make(probabilities: list[list[float]], offset: float = 0.0, chunk_length: int = 1) -> FixedPolicy:
        return FixedPolicy(np.log(np.array(probabilities)), offset, chunk_length)

    return make
