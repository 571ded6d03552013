"""Bags that were cut off: what is whole of them is read where asked, and it is told what is not."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adahi_ros.bags.bag_files import bag_files
from adahi_ros.bags.bag_reader import read_bag
from adahi_ros.bags.bag_writer import STORAGES
from adahi_ros.bags.definitions import BagError
from adahi_ros.bags.partial_bag import in_time
from test.bags import conftest as toy
from test.bags.conftest import FORMS, WANTED, Comparable, comparable

EVERY_FORM = [*FORMS, ("mcap", "storage")]


def remains(bag: Path) -> tuple[Comparable, str]:
    """Return what is whole of a bag, and what is said of the rest."""
    losses: list[str] = []
    found = comparable(read_bag(bag, WANTED, on_loss=losses.append))
    assert len(losses) <= 1
    assert all("\n" not in each for each in losses)
    return found, "".join(losses)


def refused(bag: Path) -> str:
    with pytest.raises(BagError) as raised:
        list(read_bag(bag, WANTED))
    return str(raised.value)


def only_file(bag: Path) -> Path:
    (file,) = bag_files(bag)
    return file


def cut(file: Path, length: int) -> None:
    file.write_bytes(file.read_bytes()[:length])


@pytest.mark.parametrize(("storage", "compression"), EVERY_FORM)
def test_of_a_file_that_was_cut_off_the_beginning_is_read(
    storage: str, compression: str, lines: list[Any], in_bag: Callable[..., Path]
) -> None:
    bag = in_bag(lines[:200], storage=storage, compression=compression)
    whole, file = comparable(read_bag(bag, WANTED)), only_file(bag)
    content, most = file.read_bytes(), 0
    lengths = np.random.default_rng(3).integers(len(content) // 2, len(content), size=12)
    for length in map(int, lengths):
        file.write_bytes(content[:length])
        assert refused(bag).startswith(f"{bag}: {file.name}: expected a rosbag2, ")
        assert "; give --incomplete to read its complete part, or write that part to a new bag: " in refused(
            bag
        )
        try:
            found, reason = remains(bag)
        except BagError:
            # In one piece, or a few, of which the last is needed for all.
            assert storage == "sqlite3" or compression in ("storage", "file")
            continue
        assert found == whole[: len(found)]
        assert reason.startswith(f"{bag}: cut off or damaged: {file.name.removesuffix('.zstd')}")
        assert "; left out: " in reason
        most = max(most, len(found))
    assert most > 10 or compression in ("storage", "file")


@pytest.mark.parametrize("storage", STORAGES)
def test_of_wholly_compressed_files_what_can_be_unpacked_is_read(
    storage: str, in_bag: Callable[..., Path], tmp_path: Path
) -> None:
    """The recorder was killed: two files were compressed, the third was about to be."""
    draw, bag = np.random.default_rng(5), tmp_path / "killed"
    bag.mkdir()
    numbers = [draw.normal(size=8000) for _ in range(30)]
    made = [toy.Line("joint_states", toy.joints(at, each), at) for at, each in enumerate(numbers, start=1)]
    for part in range(3):
        packed = only_file(in_bag(made[10 * part : 10 * (part + 1)], storage=storage, compression="file"))
        plain = only_file(in_bag(made[10 * part : 10 * (part + 1)], storage=storage))
        for file in (packed, plain)[: 1 + part // 2]:
            shutil.copy(file, bag / file.name.replace("some", f"some_{part}"))
    cut(bag_files(bag)[1], 400_000)
    losses: list[str] = []
    found = list(read_bag(bag, {"joint_states": WANTED["joint_states"]}, on_loss=losses.append))
    times = [each.received_ns for each in found]
    assert times == [*range(1, len(times) - 9), *range(21, 31)]
    assert 22 < len(times) < 30
    assert "no metadata.yaml that can be read; some_1" in losses[0]


def test_messages_before_the_cut_are_read_and_those_after_it_are_counted(
    lines: list[Any], in_bag: Callable[..., Path]
) -> None:
    bag = in_bag(lines)
    whole, file = comparable(read_bag(bag, WANTED)), only_file(bag)
    content = file.read_bytes()
    at = content.index(whole[301][2]) + 4  # amid the numbers of that message
    cut(file, at)
    found, reason = remains(bag)
    assert found == whole[:301]
    count = sum(each.received_ns < whole[301][1] for each in lines)
    duration_s = 1e-9 * (lines[count - 1].received_ns - lines[0].received_ns)
    left_s = 1e-9 * (lines[-1].received_ns - lines[count - 1].received_ns)
    matched = re.fullmatch(
        rf"{bag}: cut off or damaged: {file.name}: no whole record at byte (\d+) of {at}; "
        rf"read: {count} messages, {duration_s:.1f} s; "
        rf"left out: {len(lines) - count} messages, {left_s:.1f} s",
        reason,
    )
    assert matched is not None, reason
    assert at - 400 < int(matched[1]) < at


def test_where_no_one_knows_how_much_there_was_that_is_named(
    lines: list[Any], in_bag: Callable[..., Path]
) -> None:
    bag = in_bag(lines[:200])
    whole = comparable(read_bag(bag, WANTED))
    (bag / "metadata.yaml").unlink()
    found, reason = remains(bag)
    assert found == whole
    assert reason == (
        f"{bag}: cut off or damaged: no metadata.yaml that can be read; read: 200 messages, 3.3 s; "
        "left out: unknown"
    )
    assert refused(bag).startswith(f"{bag}: no metadata.yaml: it was not closed; give --incomplete to read")


@pytest.fixture
def split(lines: list[Any], in_bag: Callable[..., Path], tmp_path: Path) -> Path:
    """A bag of twelve files, one episode each."""
    bag = tmp_path / "split"
    bag.mkdir()
    per_file = len(lines) // 12
    for number in range(12):
        part = in_bag(lines[number * per_file : (number + 1) * per_file])
        shutil.copy(only_file(part), bag / f"split_{number}.mcap")
    text = (in_bag(lines) / "metadata.yaml").read_text()
    name = "some.mcap"
    assert text.count(f"  - {name}\n") == 1
    names = "".join(f"  - {file.name}\n" for file in bag_files(bag))
    (bag / "metadata.yaml").write_text(text.replace(f"  - {name}\n", names))
    return bag


def test_of_a_bag_of_several_files_those_that_are_whole_are_read(
    split: Path, lines: list[Any], tmp_path: Path
) -> None:
    whole = comparable(read_bag(split, WANTED))
    assert len(whole) == 720
    assert remains(split) == (whole, "")
    last = split / "split_11.mcap"
    cut(last, last.stat().st_size // 2)
    assert refused(split).startswith(f"{split}: split_11.mcap: expected a rosbag2, ")
    found, reason = remains(split)
    assert 660 < len(found) < 720
    assert found == whole[: len(found)]
    assert f"{split}: cut off or damaged: split_11.mcap: no whole record at byte " in reason
    (split / "split_3.mcap").unlink()
    shutil.copy(split / "split_0.mcap", split / "split_12.mcap")
    assert remains(split)[0] == found[:180] + found[240:]
    reason = remains(split)[1]
    assert "damaged: split_3.mcap: missing; split_12.mcap: metadata.yaml does not name it; split_11" in reason
    (split / "metadata.yaml").unlink()
    (split / "split_12.mcap").unlink()
    assert remains(split)[0] == found[:180] + found[240:]  # 10 and 11 come after 9


def test_messages_that_came_out_of_order_are_read_by_their_times(
    lines: list[Any], in_bag: Callable[..., Path]
) -> None:
    late = np.random.default_rng(4).integers(0, 20, size=200) * 5_000_000
    moved = [
        line._replace(received_ns=line.received_ns - int(by))
        for line, by in zip(lines[:200], late, strict=True)
    ]
    for storage in STORAGES:
        bag = in_bag(moved, storage=storage)
        whole = comparable(read_bag(bag, WANTED))
        assert [time for _, time, _ in whole] == sorted(time for _, time, _ in whole)
        assert remains(bag) == (whole, "")


@pytest.mark.parametrize("seed", range(5))
def test_sorting_holds_no_more_than_it_must(seed: int) -> None:
    times = (100 * np.arange(300) - np.random.default_rng(seed).integers(0, 2000, size=300)).tolist()
    behind = max(max(times[: row + 1]) - time for row, time in enumerate(times))
    taken = 0

    def messages() -> Any:
        nonlocal taken
        for number, time in enumerate(times):
            taken += 1
            yield number, time, b""

    most = 0
    found: list[Any] = []
    for number, message in enumerate(in_time(messages(), behind)):
        most = max(most, taken - number)
        found.append(message)
    assert found == sorted(zip(range(300), times, [b""] * 300, strict=True), key=lambda each: each[1])
    assert most < 50


@pytest.mark.parametrize("mode", ["WAL", "PERSIST"])
def test_rows_not_yet_in_the_database_are_read_and_files_stay_unchanged(
    mode: str, lines: list[Any], in_bag: Callable[..., Path], tmp_path: Path
) -> None:
    """Of a write-ahead log the committed rows are added; of a journal those that were not are taken back."""
    bag = in_bag(lines[:200], storage="sqlite3")
    whole, file = comparable(read_bag(bag, WANTED)), only_file(bag)
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute(f"PRAGMA journal_mode = {mode}")
        database.execute("PRAGMA cache_size = 1")
        database.execute("PRAGMA wal_autocheckpoint = 0")
        database.execute("BEGIN")
        database.execute(
            "INSERT INTO messages (topic_id, timestamp, data) "
            "SELECT topic_id, timestamp + 1000000000000, data FROM messages"
        )
        if mode == "WAL":
            database.execute("COMMIT")
        killed = shutil.copytree(bag, tmp_path / "killed")
    (beside,) = (each for each in killed.iterdir() if each.name.endswith(("-wal", "-journal")))
    before = {each.name: each.read_bytes() for each in killed.iterdir()}
    assert f"{beside.name} is beside it: it was not closed; give --incomplete" in refused(killed)
    found, reason = remains(killed)
    assert found[: len(whole)] == whole
    assert len(found) == (2 if mode == "WAL" else 1) * len(whole)
    assert f"{beside.name} is beside it" in reason
    assert {each.name: each.read_bytes() for each in killed.iterdir()} == before


def test_a_bag_with_nothing_that_can_be_read_is_named(
    lines: list[Any], in_bag: Callable[..., Path], tmp_path: Path
) -> None:
    bag = in_bag(lines[:20])
    cut(only_file(bag), 100)
    with pytest.raises(BagError, match=f"{bag}: no message in it can be read .some.mcap: no whole record"):
        remains(bag)
    with pytest.raises(BagError, match="no such bag"):
        remains(tmp_path / "none")
    whole = in_bag(lines[:20])
    with pytest.raises(BagError, match="/camera: no such topic"):
        list(read_bag(whole, {"camera": "sensor_msgs/msg/Image"}, on_loss=pytest.fail))
