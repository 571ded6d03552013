"""Bags that would unpack to gigabytes: refused before they do, by whatever reads them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lz4.frame  # type: ignore[import-untyped]
import pytest
from rosbags.rosbag2.storage_mcap import zstd  # type: ignore[attr-defined]

from adahi_ros.bags import bag_bounds as bounds
from adahi_ros.bags.bag_bounds import decompress, unpacked
from adahi_ros.bags.bag_files import bag_files
from adahi_ros.bags.bag_reader import read_bag
from adahi_ros.bags.definitions import BagError

MEGABYTE = 1 << 20
PEAK = 16 * MEGABYTE
WANTED = {"joint_states": "sensor_msgs/msg/JointState"}


@pytest.mark.parametrize(("compression", "pack"), [("zstd", zstd.compress), ("lz4", lz4.frame.compress)])
def test_a_chunk_unpacks_to_no_more_than_it_says(compression: str, pack: Callable[[bytes], bytes]) -> None:
    bomb = pack(bytes(64 * MEGABYTE))
    tracemalloc.start()
    try:
        with pytest.raises(BagError, match=r"unpacks to more than 1000 bytes"):
            decompress(bomb, compression, 1000, 0)
        assert tracemalloc.get_traced_memory()[1] < PEAK
    finally:
        tracemalloc.stop()
    assert decompress(pack(b"ab" * 500), compression, 1000, 0) == b"ab" * 500


def test_a_chunk_that_says_it_is_large_is_refused_before() -> None:
    with pytest.raises(BagError, match=r"uncompressed_size: \d+, must be at most"):
        decompress(b"", "zstd", 1 << 40, 0)


def test_a_message_has_a_bound_over_all_of_its_frames() -> None:
    frames = zstd.compress(bytes(600)) + zstd.compress(bytes(600))
    assert unpacked(frames, 1200) == bytes(1200)
    with pytest.raises(BagError, match=r"unpacks to more than 1000 bytes"):
        unpacked(frames, 1000)
    with pytest.raises(BagError, match=r"incomplete"):
        unpacked(frames[:-2], 1200)


def test_a_compressed_file_over_its_bound_is_refused_in_recovery_too(
    lines: list[Any], in_bag: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "ALWAYS_ALLOWED", MEGABYTE)
    bag = in_bag(lines[:50], storage="sqlite3", compression="file")
    (file,) = bag_files(bag)
    file.write_bytes(zstd.compress(bytes(300 * MEGABYTE)))
    with pytest.raises(BagError, match=r"unpack to more than \d+, must be at most that"):
        list(read_bag(bag, WANTED))
    with pytest.raises(BagError, match=r"unpack to more than \d+, must be at most that"):
        list(read_bag(bag, WANTED, on_loss=lambda loss: None))
