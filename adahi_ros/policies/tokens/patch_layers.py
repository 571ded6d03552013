# SPDX-License-Identifier: Apache-2.0
"""The layers of a token policy's network over the positions of patches, some of which are not computed again.

On numpy: each layer computes other positions than the one before, which an exported network cannot.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from adahi_ros.core.tensor_files import read_tensors
from adahi_ros.policies.tokens.token_checkpoint import TokenCheckpoint

NORM = 1e-5  # added to variances, torch's default


@dataclass(eq=False)
class Positions:
    """What the layers made of some positions.

    Attributes:
        inputs: (L + 1, P, width), of each layer, and the output of the last one.
        keys, values: (L, heads, P, width / heads).
    """

    inputs: np.ndarray
    keys: np.ndarray
    values: np.ndarray

    def moved(self, source: np.ndarray) -> Positions:
        """Return them with position i from position `source[i]` (P,)."""
        return Positions(self.inputs[:, source], self.keys[:, :, source], self.values[:, :, source])

    @property
    def cache(self) -> np.ndarray:
        """(L, 2, heads, P, width / heads), as the network reads it."""
        return np.stack([self.keys, self.values], axis=1)


class PatchLayers:
    """Computes positions of patches, and then one of the goal, which attends to them.

    Args:
        checkpoint: of the network.

    Attributes:
        computed: positions of patches computed so far, summed over layers.
        offered: those that there were.
    """

    def __init__(self, checkpoint: TokenCheckpoint) -> None:
        weights, sizes = read_tensors(checkpoint.weights), checkpoint.sizes
        self._layers = [
            {
                name.removeprefix(f"blocks.{layer}."): values.astype(np.float32)
                for name, values in weights.items()
                if name.startswith(f"blocks.{layer}.")
            }
            for layer in range(sizes.layers)
        ]
        self._heads, self._size = sizes.heads, sizes.width // sizes.heads
        self.layers, self.patches, self.width = sizes.layers, sizes.patches, sizes.width
        self.computed = self.offered = 0

    def fresh(self, embedded: np.ndarray) -> Positions:
        """Return the patches (P, width), all of them computed."""
        shape = self.layers, self._heads, len(embedded), self._size
        made = Positions(
            np.zeros((self.layers + 1, *embedded.shape), dtype=np.float32),
            *(np.zeros(shape, dtype=np.float32) for _ in range(2)),
        )
        every = np.ones((self.layers, len(embedded)), dtype=bool)
        return self.renewed(made, embedded, every)

    def renewed(self, kept: Positions, embedded: np.ndarray, which: np.ndarray) -> Positions:
        """Compute some patches again, in place, and return them.

        Args:
            kept: of all patches.
            embedded: (P, width), the new first layer's input; used where that computes.
            which: (L, P) bool, of each layer. A patch that the layer before did not compute has its kept
                input.
        """
        self.computed += int(which.sum())
        self.offered += which.size
        if which.any():
            kept.inputs[0, which[0]] = embedded[which[0]]
        for layer in range(self.layers):
            rows = np.flatnonzero(which[layer])
            if not rows.size:
                continue
            kept.inputs[layer + 1, rows] = self._attended(layer, kept, kept.inputs[layer, rows], rows)[0]
        return kept

    def goal(self, kept: Positions, embedded: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the cache (L, 2, heads, P + 1, size) with the goal's position, and its attention (L, P).

        Args:
            kept: of the patches.
            embedded: (width,), of the goal.
        """
        shape = self.layers, self._heads, 1, self._size
        own = np.zeros((2, *shape), dtype=np.float32)
        tokens, attention = embedded[None], []
        for layer in range(self.layers):
            tokens, weights, new = self._attended(layer, kept, tokens, None)
            own[:, layer] = new
            attention.append(weights[:, 0, :-1].mean(axis=0))
        whole = np.concatenate([kept.cache, own.swapaxes(0, 1)], axis=3)
        return whole, np.stack(attention)

    def _attended(
        self, layer: int, kept: Positions, tokens: np.ndarray, rows: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return tokens (m, width) after a layer, their attention, and their keys and values.

        Args:
            layer: its number.
            kept: of the patches; gets the keys and values of these.
            tokens: its input.
            rows: which patches they are; None for one position after all of them.
        """
        weights = self._layers[layer]
        projected = self._linear(weights, "query_key_value", self._normed(weights, "attention_norm", tokens))
        query, key, value = projected.reshape(len(tokens), 3, self._heads, self._size).transpose(1, 2, 0, 3)
        keys, values = kept.keys[layer], kept.values[layer]
        if rows is None:
            keys, values = (np.concatenate(each, axis=1) for each in ((keys, key), (values, value)))
        else:
            keys[:, rows], values[:, rows] = key, value
        scores = query @ keys.swapaxes(-1, -2) * np.float32(self._size**-0.5)
        if rows is not None:
            scores[:, np.arange(keys.shape[1]) > rows[:, None]] = -np.inf
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        attention = scores / scores.sum(axis=-1, keepdims=True)
        mixed = (attention @ values).transpose(1, 0, 2).reshape(len(tokens), -1)
        tokens = tokens + self._linear(weights, "attention_out", mixed)
        inner = _gelu(self._linear(weights, "mlp.0", self._normed(weights, "mlp_norm", tokens)))
        return tokens + self._linear(weights, "mlp.2", inner), attention, np.stack([key, value])

    def _linear(self, weights: dict[str, np.ndarray], name: str, values: np.ndarray) -> np.ndarray:
        # For few rows, OpenBLAS is faster in this order.
        made: np.ndarray = (weights[f"{name}.weight"] @ values.T).T + weights[f"{name}.bias"]
        return made

    def _normed(self, weights: dict[str, np.ndarray], name: str, values: np.ndarray) -> np.ndarray:
        centred = values - values.mean(axis=-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + NORM)
        made: np.ndarray = centred / scale * weights[f"{name}.weight"] + weights[f"{name}.bias"]
        return made


def _gelu(values: np.ndarray) -> np.ndarray:
    """Return values times the normal distribution's share below them, to 1e-6."""
    made: np.ndarray = values * (0.5 + 0.5 * _erf(values * np.float32(math.sqrt(0.5))))
    return made


def _erf(values: np.ndarray) -> np.ndarray:
    """Return the error function; Abramowitz and Stegun, 7.1.26."""
    size = np.abs(values)
    near = np.float32(1.0) / (np.float32(1.0) + np.float32(0.3275911) * size)
    sum_of = np.zeros_like(values)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        sum_of = (sum_of + np.float32(factor)) * near
    made: np.ndarray = np.sign(values) * (np.float32(1.0) - sum_of * np.exp(-size * size))
    return made
