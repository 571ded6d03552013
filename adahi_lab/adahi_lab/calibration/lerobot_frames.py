# SPDX-License-Identifier: Apache-2.0
"""Camera images of a LeRobotDataset, in the order of its rows; few are in memory at a time.

data/chunk-*/file-*.parquet              images, a file in each row
videos/KEY/chunk-000/file-000.mp4        videos, of several episodes each
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from adahi_lab.datasets.dataset_rows import parts_of, rows_of
from adahi_lab.datasets.lerobot_dataset import BOUNDS, INFO, read_columns
from adahi_ros.vision.images import MAX_PIXELS, from_image
from adahi_ros.vision.interface import ImageError

JPEG = b"\xff\xd8"  # the first bytes of a file
LARGEST_NUMBER = 999_999  # of a chunk, and of a file in it
NEAR = 0.5  # of a period: how far a frame may be from the time of its row


def frames(
    folder: Path, key: str, features: dict[str, dict[str, object]], rate_hz: float
) -> Iterator[np.ndarray]:
    """Yield the image of each row, (H, W, 3) uint8 RGB.

    Args:
        folder: of the dataset.
        key: of the camera, such as observation.images.front.
        features: of the dataset, by name.
        rate_hz: rows per second.

    Raises:
        ImportError: the images are videos, and PyAV is not installed.
        FileNotFoundError: a file is missing.
        ValueError: there is no such camera, or a file is damaged; names it.
    """
    feature = features.get(key)
    kind = feature.get("dtype") if isinstance(feature, dict) else None
    if kind == "image":
        return _stored(folder, key)
    if kind == "video":
        return _filmed(folder, key, NEAR / rate_hz)
    there = [name for name, each in features.items() if isinstance(each, dict)]
    cameras = ", ".join(name for name in there if features[name].get("dtype") in ("image", "video"))
    raise ValueError(
        f"{folder / INFO}: features: {key}: dtype: {kind!r}, must be 'image' or 'video', since the target "
        f"reads this camera; there are {cameras or 'none'}"
    )


def _stored(folder: Path, key: str) -> Iterator[np.ndarray]:
    for path in parts_of(folder):
        for row, (each,) in enumerate(rows_of(path, [key])):
            data = each.get("bytes") if isinstance(each, dict) else None
            if not isinstance(data, bytes):
                raise ValueError(f"{path}: {key}: no bytes in row {row}, must be a PNG or JPEG file")
            kind = "jpeg" if data.startswith(JPEG) else "png"
            try:
                yield from_image(SimpleNamespace(format=kind, data=data))
            except ImageError as error:
                raise ValueError(f"{path}: {key}: row {row}: {error}") from None


def _filmed(folder: Path, key: str, tolerance_s: float) -> Iterator[np.ndarray]:
    try:
        import av  # noqa: F401
    except ImportError:
        raise ImportError(
            f"{folder}: {key}: dtype: 'video' needs PyAV; install it with 'pip install av'"
        ) from None
    columns = [f"videos/{key}/{name}" for name in ("chunk_index", "file_index", "from_timestamp")]
    episodes = read_columns(folder, dict.fromkeys((BOUNDS[0], *columns), 1), "meta/episodes")
    order = np.argsort(episodes[BOUNDS[0]][:, 0])
    chunk, file, start_s = (episodes[name][order, 0] for name in columns)
    for name, numbers in zip(columns, (chunk, file), strict=False):
        if ((numbers < 0) | (numbers > LARGEST_NUMBER) | (numbers != np.round(numbers))).any():
            raise ValueError(
                f"{folder / 'meta/episodes'}: {name}: must be whole numbers from 0 to {LARGEST_NUMBER}"
            )
    rows = read_columns(folder, {BOUNDS[0]: 1, "timestamp": 1})
    of_row = rows[BOUNDS[0]][:, 0].astype(np.int64)
    times_s = start_s[of_row] + rows["timestamp"][:, 0]
    paths = [
        folder / f"videos/{key}/chunk-{int(one):03d}/file-{int(other):03d}.mp4"
        for one, other in zip(chunk, file, strict=True)
    ]
    for path, group in groupby(zip(of_row, times_s, strict=True), key=lambda each: paths[each[0]]):
        yield from _decoded(path, [float(time_s) for _, time_s in group], tolerance_s)


def _decoded(path: Path, times_s: list[float], tolerance_s: float) -> Iterator[np.ndarray]:
    """Yield the frame of a video at each time; the times rise."""
    import av

    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        with av.open(str(path)) as container:
            (stream,) = container.streams.video[:1]
            if not 0 < stream.width * stream.height <= MAX_PIXELS:
                size = f"{stream.width} x {stream.height} pixels"
                raise ValueError(f"{size}, must be at least one and at most {MAX_PIXELS}")
            decoded = container.decode(stream)
            frame = next(decoded, None)
            for time_s in times_s:
                while frame is not None and (frame.time is None or frame.time < time_s - tolerance_s):
                    frame = next(decoded, None)
                if frame is None or frame.time > time_s + tolerance_s:
                    raise ValueError(f"no frame within {tolerance_s:.4f} s of {time_s:.4f} s")
                yield frame.to_ndarray(format="rgb24")
    except (av.error.FFmpegError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None
