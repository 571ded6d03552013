# SPDX-License-Identifier: Apache-2.0
"""The layers of a token policy's network over the positions of patches, some of which are not computed again.

Each layer is an exported network of its own, because it may compute other positions than the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adahi_lab.papers.tokens.token_checkpoint import TokenCheckpoint
from adahi_ros.policies.networks.onnx_cache import Session, opened

OUTPUTS = "made", "new", "attention"


@dataclass(eq=False)
class Positions:
    """What the layers made of patches.

    Attributes:
        inputs: (L + 1, P, width), of each layer, and the output of the last one.
        cache: (L, 2, heads, P, width / heads), keys and values.
    """

    inputs: np.ndarray
    cache: np.ndarray

    def moved(self, source: np.ndarray) -> Positions:
        """Return them with position i from position `source[i]` (P,)."""
        return Positions(self.inputs[:, source], self.cache[:, :, :, source])


class PatchLayers:
    """Computes positions of patches, and then one of the goal, which attends to them.

    Args:
        checkpoint: of the network.

    Attributes:
        computed: positions of patches computed so far, summed over layers.
        offered: those that there were.
    """

    def __init__(self, checkpoint: TokenCheckpoint) -> None:
        sizes = checkpoint.sizes
        self._layers = [_session(checkpoint, layer) for layer in range(sizes.layers)]
        self._shape = sizes.layers, 2, sizes.heads, sizes.patches, sizes.width // sizes.heads
        self._width, self.layers = sizes.width, sizes.layers
        self.computed = self.offered = 0

    def none(self) -> Positions:
        """Return patches before any is computed."""
        inputs = np.zeros((self.layers + 1, self._shape[3], self._width), dtype=np.float32)
        return Positions(inputs, np.zeros(self._shape, dtype=np.float32))

    def renewed(
        self, kept: Positions, embedded: np.ndarray, which: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute some patches again, in place, and the goal after them.

        Args:
            kept: of all patches.
            embedded: (P + 1, width), the first layer's input, of patches and goal.
            which: (L, P) bool, the patches that each layer computes. One that the layer before did not
                compute has its kept input.

        Returns:
            The cache (L, 2, heads, P + 1, size) with the goal's position, and its attention (L, P).
        """
        self.computed += int(which.sum())
        self.offered += which.size
        patches = self._shape[3]
        whole = np.zeros((*self._shape[:3], patches + 1, self._shape[4]), dtype=np.float32)
        attention = np.zeros((self.layers, patches), dtype=np.float32)
        goal = embedded[patches:]
        kept.inputs[0, which[0]] = embedded[:patches][which[0]]
        for layer, session in enumerate(self._layers):
            rows, others = np.flatnonzero(which[layer]), np.flatnonzero(~which[layer])
            queries = np.append(rows, patches)
            order = np.concatenate([others, queries])
            given = {
                "tokens": np.concatenate([kept.inputs[layer, rows], goal]),
                "past": kept.cache[layer][:, :, others],
                # Causal, in the order of the picture.
                "mask": np.where(order > queries[:, None], np.float32(-np.inf), np.float32(0.0)),
            }
            made, new, weights = session.run(OUTPUTS, given)
            kept.inputs[layer + 1, rows], goal = made[:-1], made[-1:]
            kept.cache[layer][:, :, rows] = new[:, :, :-1]
            whole[layer, :, :, patches:] = new[:, :, -1:]
            attention[layer, order[:-1]] = weights[0, :, -1, :-1].mean(axis=0)
        whole[..., :patches, :] = kept.cache
        return whole, attention


def _session(checkpoint: TokenCheckpoint, layer: int) -> Session:
    def make(path: Path) -> None:
        from adahi_lab.papers.vln_cache.layer_export import export_layer

        export_layer(checkpoint, layer, path)

    return opened(checkpoint.weights, checkpoint.digest(), f".layer{layer}.onnx", make)[1]
