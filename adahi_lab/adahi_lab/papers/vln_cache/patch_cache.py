# SPDX-License-Identifier: Apache-2.0
"""A policy of tokens that keeps the positions of patches from proposal to proposal.

After VLN-Cache (Zheng et al., arXiv 2603.07080):

- *View-aligned remapping*: where a camera moves, each patch's place is projected to the view of the kept
  picture, by the camera's pose before and now, onto an assumed plane. A patch that shows the same is reused.
- *Saliency*: patches that the instruction attends to are computed again, whatever they show; and so is all of
  the picture once the instruction is another.
- *Entropy*: a layer in which the instruction attends to few patches reuses more of the others.

Here patches come before the instruction, and causal attention hides it from them. So what is kept depends on
pictures alone: those of one robot in one episode.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adahi_lab.papers.tokens.patches import patches_of
from adahi_lab.papers.tokens.token_checkpoint import TokenCheckpoint, load_tokens
from adahi_lab.papers.tokens.token_policy import Decoding, TokenPolicy
from adahi_lab.papers.vln_cache.patch_layers import PatchLayers, Positions
from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.core.schema import Listed, Schema, checked
from adahi_ros.core.signature import Observations
from adahi_ros.policies.backends import is_policy
from adahi_ros.policies.networks.network_checkpoint import RunNetwork

KEPT_MOST = 128  # robots and episodes, with a picture each of about 0.5 MB; the least recent leaves first
NOWHERE = -1


@dataclass(frozen=True)
class MovingCamera(Schema):
    """A camera on the hand, which moves with it and does not turn.

    Attributes:
        columns: first and one past the last column of patches that show its picture.
        position: entries of an observation with the hand's x, y, z, m.
        offset_m: from there to the camera.
        axes: x (right), y (up) and z (backwards) of the camera in the world, three numbers each.
        field_deg: its vertical field of view.
        plane_m: height of what it sees.
    """

    columns: Listed[int]
    position: Listed[int]
    offset_m: Listed[float]
    axes: Listed[float]
    field_deg: float
    plane_m: float

    def __post_init__(self) -> None:
        for name, count in (("columns", 2), ("position", 3), ("offset_m", 3), ("axes", 9)):
            if len(getattr(self, name)) != count:
                raise ValueError(f"{name}: {getattr(self, name)}, must be {count} numbers")
        if not 0.0 < self.field_deg < 180.0:
            raise ValueError(f"field_deg: {self.field_deg}, must be above 0 and below 180")

    def source(self, hand: np.ndarray, before: np.ndarray, rows: int, side: int) -> np.ndarray:
        """Return where each patch of the picture was in an earlier one, (rows, columns, 2), in patches.

        Args:
            hand: (3,) m, now.
            before: (3,) m, then.
            rows: of patches.
            side: of a patch, px.

        Returns:
            Row and column of the earlier patch, from this camera's first; NaN where its ray meets no plane.
        """
        columns = self.columns[1] - self.columns[0]
        focal = 0.5 * rows * side / math.tan(math.radians(self.field_deg) / 2.0)
        down, right = np.meshgrid(np.arange(rows) + 0.5, np.arange(columns) + 0.5, indexing="ij")
        x, y = (right - columns / 2.0) * side / focal, -(down - rows / 2.0) * side / focal
        axes = np.array(self.axes).reshape(3, 3)
        rays = np.stack([x, y, -np.ones_like(x)], axis=-1) @ axes
        now, then = (np.asarray(place) + self.offset_m for place in (hand, before))
        with np.errstate(divide="ignore", invalid="ignore"):
            far = (self.plane_m - now[2]) / rays[..., 2]
            seen = (now + np.where(far > 0.0, far, np.nan)[..., None] * rays - then) @ axes.T
            earlier = -seen[..., :2] / seen[..., 2:] * focal / side
        return np.stack([rows / 2.0 - earlier[..., 1], columns / 2.0 + earlier[..., 0]], axis=-1)


@dataclass(eq=False)
class _Kept:
    """One picture.

    Attributes:
        goal: bytes of the instruction.
        pixels: (P, 3 side^2), as the positions were computed from.
        state: (S,), the observation then.
        positions: of the patches.
        attention: (L, P), of the instruction.
    """

    goal: bytes
    pixels: np.ndarray
    state: np.ndarray
    positions: Positions
    attention: np.ndarray


class CachedTokens(TokenPolicy):
    """Proposes as a `TokenPolicy` does, with patches that were computed before.

    It has a memory: a proposal depends on pictures that the same robot showed before, in the same episode. It
    computes all patches of a robot that `Observations.episodes` does not name.

    Args:
        checkpoint: of a network that reads patches.
        run: the network.
        tolerance: largest change of a reused patch; levels of 255, root mean square.
        salient: attention of the instruction, in multiples of the mean, from which on a patch is not reused.
        adaptive: whether layers reuse by their entropy; else all that may be.
        camera: that moves; None for pictures of still cameras.

    Attributes:
        layers: computes patches; counts.
        chunks: number of pictures.

    Raises:
        ValueError: the network reads no patches, or a value is out of range.
    """

    def __init__(
        self,
        checkpoint: TokenCheckpoint,
        run: RunNetwork,
        tolerance: float,
        salient: float,
        adaptive: bool = True,
        camera: MovingCamera | None = None,
    ) -> None:
        super().__init__(checkpoint, run)
        if not checkpoint.sizes.patch or not checkpoint.sizes.goal_dim:
            raise ValueError(f"checkpoint: {checkpoint.weights.stem}, must read patches and a goal")
        if not tolerance >= 0.0 or not salient >= 0.0:
            raise ValueError(f"tolerance, salient: {tolerance}, {salient}, must not be negative")
        if camera is not None and not 0 <= camera.columns[0] < camera.columns[1] <= checkpoint.sizes.grid[1]:
            raise ValueError(f"columns: {camera.columns}, must be within {checkpoint.sizes.grid[1]} columns")
        self.layers = PatchLayers(checkpoint)
        self._tolerance, self._salient, self._adaptive, self._camera = tolerance, salient, adaptive, camera
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self.chunks = 0

    def forget(self) -> None:
        """Clear the memory."""
        self._kept.clear()

    def begin(self, observations: Observations, codes: np.ndarray | None = None) -> Decoding:
        """See `TokenPolicy.begin`; patches and goal come from `PatchLayers`, the rest from the network."""
        windows, goals = self.signature.window(observations), self.signature.condition(observations)
        embedded, sizes = self._embedding.of_context(windows, goals), self._sizes
        pixels = patches_of(windows[:, -1, sizes.state_dim :], sizes)
        states, episodes = windows[:, -1, : sizes.state_dim], observations.episodes or (None,) * len(windows)
        shown = zip(episodes, (goal.tobytes() for goal in goals), pixels, states, embedded, strict=True)
        caches = np.stack([self._seen(*each) for each in shown])
        rest, read = embedded[:, sizes.patches + 1 :], 0 if codes is None else codes.shape[1]
        if codes is not None and read:
            rest = np.concatenate([rest, self._embedding.of_codes(codes, 0)], axis=1)
        logits, hidden, cache = self._pass(rest, caches, None)
        before = rest.shape[1] - read - 1
        return Decoding(logits[:, before:], hidden[:, before:], cache, read)

    def _seen(
        self, episode: Hashable, goal: bytes, pixels: np.ndarray, state: np.ndarray, embedded: np.ndarray
    ) -> np.ndarray:
        """Return the cache of a robot's patches and goal."""
        count = self._sizes.patches
        self.chunks += 1
        kept = self._kept.pop(episode, None)
        if kept is None or kept.goal != goal:
            which = np.ones((self.layers.layers, count), dtype=bool)
            kept = _Kept(goal, pixels.copy(), state, self.layers.none(), np.zeros(0))
        else:
            which = self._stale(kept, pixels, state)
        whole, kept.attention = self.layers.renewed(kept.positions, embedded[: count + 1], which)
        if episode is not None:
            self._kept[episode] = kept
        if len(self._kept) > KEPT_MOST:
            self._kept.popitem(last=False)
        return whole

    def _stale(self, kept: _Kept, pixels: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Align what is kept with a new picture; return what each layer may not reuse, (L, P) bool."""
        source = self._sources(state, kept.state)
        known = source != NOWHERE
        source = np.where(known, source, np.arange(len(source)))
        change = _change(pixels, kept.pixels[source])
        attention = kept.attention[:, source]
        share = attention.mean(axis=0)
        watched = share > self._salient * share.mean()
        reused: np.ndarray = known & ~watched & (change <= self._tolerance)
        which = self._by_layer(reused, change, attention)
        kept.positions = kept.positions.moved(source)
        kept.pixels = np.where(reused[:, None], kept.pixels[source], pixels)
        kept.state = state
        return which

    def _by_layer(self, reused: np.ndarray, change: np.ndarray, attention: np.ndarray) -> np.ndarray:
        """Return what each layer computes, (L, P) bool: all that may not be reused, and a share of the rest.

        That share is the entropy of the layer's attention, relative to that of even attention, less the
        smallest of all layers; the patches that changed most come first.
        """
        which: np.ndarray = np.tile(reused, (len(attention), 1)) == 0
        may = np.flatnonzero(reused)
        if self._adaptive and may.size:
            shares = attention / attention.sum(axis=1, keepdims=True)
            entropy = -(shares * np.log(shares + 1e-9)).sum(axis=1) / math.log(shares.shape[1])
            order = may[np.argsort(-change[may], kind="stable")]
            for layer, count in enumerate(np.rint((entropy - entropy.min()) * may.size).astype(int)):
                which[layer, order[:count]] = True
        return which

    def _sources(self, state: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Return which kept patch each patch was, (P,); `NOWHERE` for one that was out of view."""
        rows, columns = self._sizes.grid
        source = np.arange(rows * columns).reshape(rows, columns)
        camera = self._camera
        if camera is not None:
            first, end = camera.columns
            place = list(camera.position)
            found = camera.source(state[place], before[place], rows, self._sizes.patch)
            inside: np.ndarray = np.all((found >= 0.0) & (found < (rows, end - first)), axis=-1)
            row, column = np.where(inside[..., None], found, 0.0).astype(int).transpose(2, 0, 1)
            source[:, first:end] = np.where(inside, row * columns + first + column, NOWHERE)
        return source.ravel()


def _change(pixels: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Return the root mean square change of patches (P, D)."""
    change: np.ndarray = np.sqrt(((pixels - kept) ** 2).mean(axis=1))
    return change


def load_cached(
    folder: Path,
    checkpoint: str,
    tolerance: float = 8.0,
    salient: float = 2.0,
    adaptive: bool = True,
    camera: Mapping[str, Any] | None = None,
) -> TokenPolicy:
    """Return a policy of tokens that keeps patches; one that reads none, such as a draft, as it is.

    Args:
        folder: searched first for the checkpoint.
        checkpoint: DIRECTORY/NAME of a policy of tokens, there or below the package's checkpoints.
        tolerance: see `CachedTokens`.
        salient: likewise.
        adaptive: likewise.
        camera: fields of a `MovingCamera`; None for still cameras.
    """
    path = folder / checkpoint
    if not is_policy(path):
        path = named(checkpoint, CHECKPOINTS)
    read = load_tokens(path)
    if not read.sizes.patch:
        return TokenPolicy(read, read.on_onnx())
    moving: MovingCamera | None = None if camera is None else checked(MovingCamera, camera, "camera")
    return CachedTokens(read, read.on_onnx(), tolerance, salient, adaptive, moving)
