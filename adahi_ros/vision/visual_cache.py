# SPDX-License-Identifier: Apache-2.0
"""An encoder that skips unchanged parts of images.

After VLN-Cache (Zheng et al., arXiv 2603.07080): features of image patches are kept from frame to frame, and
shifted with the view. Patches that matter to the task have a stricter limit for reuse. There, patches are
tokens of a transformer, weighted by the instruction. Here they are regions of a convolutional network's maps,
weighted by its keypoints' attention. There is no budget per layer: only the maps of the last of the few
layers are kept.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from adahi_ros.policies.networks.onnx_cache import Session, opened
from adahi_ros.vision.encoder import LARGEST, Encoder, EncoderFiles, load_files

PATCH = 16  # px
CELL = 2  # px of a frame for one cell of a map: the first convolution halves the resolution
TOLERANCE = 4.5  # levels of 255, root mean square over a patch; camera noise alone is about 3.5
LOOSE = 2.0  # times the tolerance, for patches without attention
LOOKED_AT = 0.1  # share of a keypoint's attention


class CachedEncoder:
    """Encodes as an `Encoder` does, frame after frame of the same cameras.

    Features equal the encoder's for a composite of the newest frame's changed patches and the kept ones, at
    the brightness of the kept ones. Where the view moves, the parts beyond its new edges are kept, too. A
    frame without a changed patch runs no network. Encoders without keypoints run on the whole frame if any
    patch has changed.

    Attributes:
        features, image_size, fingerprint: of the encoder.
        frames: number of encoded frames.
        looks: number of runs of the network.
        seen: share of all pixels that the network ran on.

    Args:
        path: of the encoder's checkpoint.
        tolerance: largest change of a reused patch with attention; levels of 255, RMS.
        loose: factor of this for other patches.
    """

    def __init__(self, path: Path, tolerance: float = TOLERANCE, loose: float = LOOSE) -> None:
        files = load_files(path)
        self._encoder = Encoder.load(path)
        self.features = files.features
        self.image_size = files.image_size
        self.fingerprint = files.fingerprint
        self._parts = _Parts(files, self._encoder)
        self._tolerance, self._loose = tolerance, loose
        self._kept: list[_Kept | None] = []
        self.forget()

    def forget(self) -> None:
        """Clear the cache."""
        self._kept, self.frames, self.looks, self._pixels = [], 0, 0, 0

    @property
    def seen(self) -> float:
        """See above."""
        return self._pixels / max(1, self.frames * self.image_size[0] * self.image_size[1])

    def encode(self, images: np.ndarray, moved: np.ndarray | None = None) -> np.ndarray:
        """Return the features (B, F) float32 of the newest frames (B, H, W, 3) uint8 of B cameras.

        Args:
            images: in the same order each time.
            moved: (B, 2) px, how far down and right the view has moved with the camera since the last frame,
                from joint positions; rounded to cells of two pixels. None where it did not move.

        Raises:
            ValueError: wrong shape or type.
        """
        frame = (*self.image_size, 3)
        if images.ndim != 4 or images.shape[1:] != frame or images.dtype != np.uint8:
            raise ValueError(f"images: {images.dtype} {images.shape}, must be uint8 (B, {str(frame)[1:]}")
        if len(self._kept) != len(images):
            self._kept = [None] * len(images)
        shifts = [None] * len(images) if moved is None else np.asarray(moved, dtype=np.float64)
        features = np.stack(
            [self._one(*each) for each in zip(range(len(images)), images, shifts, strict=True)]
        )
        return np.clip(features, -LARGEST, LARGEST).astype(np.float16).astype(np.float32)

    def _one(self, camera: int, frame: np.ndarray, moved: np.ndarray | None) -> np.ndarray:
        self.frames += 1
        kept = self._kept[camera]
        if kept is not None and moved is None and np.array_equal(frame, kept.newest):
            return kept.features
        shift = (CELL * np.rint(np.zeros(2) if moved is None else moved / CELL)).astype(int)
        if kept is None or (np.abs(shift) >= self.image_size).any():
            self._kept[camera] = kept = _Kept(frame.copy(), *self._look(frame))
            return kept.features
        kept.newest = frame.copy()
        stale = kept.move(shift, self._parts) if shift.any() else np.zeros(kept.looked.shape, dtype=bool)
        as_kept = _as_bright(frame, kept.frame, ~stale, self._parts.patch)
        bound = np.where(kept.looked, self._tolerance, self._tolerance * self._loose)
        changed: np.ndarray = stale | (
            _patch_rms(as_kept.astype(np.float32) - kept.frame, self._parts.patch) > bound
        )
        if not changed.any():
            return kept.features
        pixels = np.repeat(np.repeat(changed, self._parts.patch[0], 0), self._parts.patch[1], 1)
        kept.frame[pixels] = as_kept[pixels]
        kept.maps, kept.features, kept.looked = self._look(kept.frame, changed, kept.maps)
        return kept.features

    def _look(
        self, frame: np.ndarray, changed: np.ndarray | None = None, maps: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.looks += 1
        maps, pixels = self._parts.maps(frame, changed, maps)
        self._pixels += pixels
        features, looked = self._parts.read(maps)
        return maps, features, looked


class _Kept:
    """The cache of one camera.

    Attributes:
        newest: (H, W, 3) uint8, the last frame, as it was.
        frame: (H, W, 3) uint8, the composite.
        maps: (K, R, C) of the composite.
        features: (F,) of the maps.
        looked: of each patch, whether it has a keypoint's attention.
    """

    def __init__(self, frame: np.ndarray, maps: np.ndarray, features: np.ndarray, looked: np.ndarray) -> None:
        self.newest = frame.copy()
        self.frame, self.maps, self.features, self.looked = frame, maps, features, looked

    def move(self, shift: np.ndarray, parts: _Parts) -> np.ndarray:
        """Shift the cache with the view; return the patches that were not completely visible before."""
        known = np.ones((*self.frame.shape[:2], 1), dtype=bool)
        # Cells at a former edge of the frame include its padding.
        for axis, by in enumerate(shift):
            rows = known.swapaxes(0, axis)
            if by:
                rows[slice(parts.margin) if by > 0 else slice(-parts.margin, None)] = False
        self.frame = _shifted(self.frame, shift)
        self.maps = _shifted(self.maps.transpose(1, 2, 0), shift // CELL).transpose(2, 0, 1)
        whole = _patches(_shifted(known, shift), parts.patch)
        stale: np.ndarray = np.logical_not(whole.all(axis=(1, 3)))
        far = np.rint(shift / parts.patch).astype(int)
        self.looked = _shifted(self.looked[..., None], far)[..., 0]
        return stale


class _Parts:
    """An encoder's network in two parts, or as a whole if it has none.

    Attributes:
        patch: rows and columns of one, px.
        margin: px from a pixel to the furthest cells that depend on it.
    """

    def __init__(self, files: EncoderFiles, encoder: Encoder) -> None:
        rows, columns = files.image_size
        self._encoder = encoder
        self._cells: Session | None = None
        self.patch = (rows if rows % PATCH else PATCH, columns if columns % PATCH else PATCH)
        self.margin = max(rows, columns)
        self._grid = rows // self.patch[0], columns // self.patch[1]
        if files.config["architecture"] != "keypoints" or self.patch != (PATCH, PATCH):
            return
        self.margin = CELL * (_layers(files) + 1)
        weights, digest = files.weights, files.digest()

        def export_maps(path: Path) -> None:
            from adahi_ros.vision import parts_export

            parts_export.export_maps(files, path)

        def export_head(path: Path) -> None:
            from adahi_ros.vision import parts_export

            parts_export.export_head(files, path, PATCH // CELL)

        self._cells = opened(weights, digest, ".maps.onnx", export_maps)[1]
        self._head: Session = opened(weights, digest, ".head.onnx", export_head)[1]

    def maps(
        self, frame: np.ndarray, changed: np.ndarray | None, maps: np.ndarray | None
    ) -> tuple[np.ndarray, int]:
        """Return the maps (K, R, C) of a frame, and the number of pixels that the network ran on.

        Args:
            frame: (H, W, 3) uint8.
            changed: patches that differ from the maps; None for all.
            maps: of the previous frame, are changed; None without any.
        """
        rows, columns = frame.shape[:2]
        if self._cells is None:
            return self._encoder.encode(frame[None])[0][:, None, None], rows * columns
        if changed is None or maps is None:
            return self._cells.run(("maps",), {"images": frame[None]})[0][0], rows * columns
        # Cells within the margin of a changed pixel depend on it, and their inputs extend by the margin
        # again.
        fresh, crop = (_box(changed, PATCH, times * self.margin, (rows, columns)) for times in (1, 2))
        part = self._cells.run(("maps",), {"images": np.ascontiguousarray(frame[crop])[None]})[0][0]
        whole = tuple(slice(each.start // CELL, each.stop // CELL) for each in fresh)
        inside = tuple(
            slice((each.start - around.start) // CELL, (each.stop - around.start) // CELL)
            for each, around in zip(fresh, crop, strict=True)
        )
        maps[:, whole[0], whole[1]] = part[:, inside[0], inside[1]]
        return maps, (crop[0].stop - crop[0].start) * (crop[1].stop - crop[1].start)

    def read(self, maps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the features of maps, and for each patch whether it has a keypoint's attention."""
        if self._cells is None:
            return maps[:, 0, 0], np.ones(self._grid, dtype=bool)
        features, looked = self._head.run(("features", "looked"), {"maps": np.ascontiguousarray(maps)[None]})
        return features[0], looked[0].max(axis=0) > LOOKED_AT


def _layers(files: EncoderFiles) -> int:
    """Return the number of convolutions after the first."""
    layers: int = files.config.get("layers", 2)
    return layers


def _box(changed: np.ndarray, patch: int, margin: int, size: tuple[int, int]) -> tuple[slice, slice]:
    """Return the rectangle of pixels around the changed patches, with a margin, within the frame."""
    ends = [np.flatnonzero(changed.any(axis=axis))[[0, -1]] for axis in (1, 0)]
    rows, columns = (
        slice(max(0, patch * int(first) - margin), min(side, patch * (int(last) + 1) + margin))
        for (first, last), side in zip(ends, size, strict=True)
    )
    return rows, columns


def _as_bright(frame: np.ndarray, kept: np.ndarray, known: np.ndarray, patch: tuple[int, int]) -> np.ndarray:
    """Return a frame with its brightness matched to another on the known patches; uint8."""
    new, old = (_patches(each, patch).sum(axis=3, dtype=np.float32) for each in (frame, kept))
    ratios = (np.maximum(new, 1.0) / np.maximum(old, 1.0)).swapaxes(1, 2)[known]
    if not ratios.size:
        return frame
    same = frame * (1.0 / np.median(ratios))
    np.minimum(same + np.float32(0.5), 255.0, out=same)
    return same.astype(np.uint8)


def _patches(values: np.ndarray, patch: tuple[int, int]) -> np.ndarray:
    """Return (H, W, D) as rows of patches, their lines, columns of patches, and the content of a line."""
    rows, columns = (side // each for side, each in zip(values.shape[:2], patch, strict=True))
    return values.reshape(rows, patch[0], columns, -1)


def _patch_rms(difference: np.ndarray, patch: tuple[int, int]) -> np.ndarray:
    """Return the root mean square of each patch of (H, W, 3)."""
    parts = _patches(difference, patch)
    squares: np.ndarray = np.einsum("rpcq,rpcq->rc", parts, parts) / (parts.shape[1] * parts.shape[3])
    return np.sqrt(squares)


def _shifted(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Return (rows, columns, D), shifted down and right; zeros at uncovered places."""
    moved = np.zeros_like(values)
    size = values.shape[:2]
    there = tuple(slice(max(0, each), side + min(0, each)) for each, side in zip(by, size, strict=True))
    here = tuple(slice(max(0, -each), side - max(0, each)) for each, side in zip(by, size, strict=True))
    moved[there] = values[here]
    return moved
