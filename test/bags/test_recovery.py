from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import Reader

from adahi_ros.bags.bag_files import is_bag
from adahi_ros.bags.bag_reader import read_bag
from adahi_ros.bags.bag_writer import STORAGES, BagWriter
from adahi_ros.bags.definitions import BagError
from adahi_ros.bags.recovery import recover
from test.bags import conftest as toy

KIND = "sensor_msgs/msg/JointState"
WANTED = {"joint_states": KIND}
Written = list[tuple[int, bytes]]


def content(bag: Path) -> list[Any]:
    """Everything that a bag has, but for what its topics are numbered."""
    with Reader(bag) as reader:
        return [(each.topic, each.msgtype, each.ext, time, data) for each, time, data in reader.messages()]


def messages_of(bag: Path) -> Written:
    return [(each[-2], bytes(each[-1])) for each in content(bag)]


@pytest.fixture(scope="session")
def messages() -> Written:
    """Times and bytes of 300 joint states."""
    positions = np.random.default_rng(0).normal(size=(300, 2))
    return [
        (at, bytes(toy.STORE.serialize_cdr(toy.joints(at, each), KIND)))
        for at, each in zip(range(1, 10**9, 10**6), positions, strict=False)
    ]


@pytest.fixture
def half(messages: Written, tmp_path: Path) -> Callable[[str], tuple[Path, BagWriter]]:
    """From a storage to a bag that is being written: half of the messages are flushed, the others not."""

    def write(storage: str) -> tuple[Path, BagWriter]:
        writer = BagWriter(tmp_path / "run", storage)
        writer.add("/joint_states", KIND)
        for at, data in messages[:150]:
            writer.write("/joint_states", data, at)
        writer.flush()
        for at, data in messages[150:]:
            writer.write("/joint_states", data, at)
        return tmp_path / "run", writer

    return write


@pytest.mark.parametrize("storage", STORAGES)
def test_what_was_flushed_is_recovered_from_a_bag_that_was_never_closed(
    storage: str, half: Callable[..., Any], messages: Written, tmp_path: Path
) -> None:
    bag, writer = half(storage)
    killed = shutil.copytree(bag, tmp_path / "killed")
    writer.close()
    assert is_bag(killed)
    with pytest.raises(BagError, match=f"it was not closed; give --incomplete .*repair {killed} --out NEW'"):
        next(read_bag(killed, WANTED))
    found = recover(killed, tmp_path / "new")
    assert found.counts == {"/joint_states": 150}
    assert messages_of(tmp_path / "new") == messages[:150]
    assert len(list(read_bag(tmp_path / "new", WANTED))) == 150
    assert messages_of(bag) == messages


def test_what_sqlite_had_started_to_write_is_taken_back(
    half: Callable[..., Any], messages: Written, tmp_path: Path
) -> None:
    bag, writer = half("sqlite3")
    for at in range(10**9, 10**9 + 40):  # more than it keeps in memory
        writer.write("/joint_states", bytes(10**5), at)
    killed = shutil.copytree(bag, tmp_path / "killed")
    assert (killed / "run.db3-journal").exists()
    for damaged in (killed, killed / "run.db3"):
        with pytest.raises(BagError, match=r"it was not closed; give --incomplete .*'adahi bag repair"):
            next(read_bag(damaged, WANTED))
    recover(killed, tmp_path / "new")
    assert messages_of(tmp_path / "new") == messages[:150]


def recovered(bag: Path, new: Path) -> tuple[Written, str]:
    """Return what of a damaged bag was recovered, and what was said of the rest."""
    try:
        found = recover(bag, new)
    except BagError as error:
        return [], str(error)
    return messages_of(new), "; ".join(found.faults)


@pytest.fixture(params=STORAGES)
def file(request: pytest.FixtureRequest, half: Callable[..., Any]) -> Path:
    """The one file of a bag with all messages."""
    bag, writer = half(request.param)
    writer.close()
    (found,) = (each for each in bag.iterdir() if each.suffix in (".mcap", ".db3"))
    return Path(found)


def test_a_damaged_file_gives_its_beginning_or_says_why_not(
    file: Path, messages: Written, tmp_path: Path
) -> None:
    whole, draw = file.read_bytes(), np.random.default_rng(2)
    for number in range(60):
        begin, length = int(draw.integers(len(whole))), int(draw.choice([1, 64, 4096]))
        is_cut = number % 2 == 0
        file.write_bytes(whole[:begin] + (b"" if is_cut else draw.bytes(length) + whole[begin + length :]))
        found, message = recovered(file.parent, tmp_path / str(number))
        assert len(found) <= len(messages)
        assert found or message.startswith(str(file.parent))
        assert not is_cut or (found == messages[: len(found)] and (message or len(found) == len(messages)))


def test_a_definition_that_is_none_is_reported(half: Callable[..., Any], tmp_path: Path) -> None:
    bag, writer = half("mcap")
    writer.close()
    file = bag / "run.mcap"
    file.write_bytes(file.read_bytes().replace(b"float64[] position", b"float64[[ position"))
    with pytest.raises(BagError, match=f"{bag}: /joint_states: expected a definition of {KIND}"):
        recover(bag, tmp_path / "new")


def test_a_bag_of_several_files_becomes_one(
    lines: list[Any], in_bag: Callable[..., Path], tmp_path: Path
) -> None:
    split = tmp_path / "split"
    split.mkdir()
    for number, part in enumerate((lines[:500], lines[500:])):
        (file,) = in_bag(part).glob("*.mcap")
        shutil.copy(file, split / f"split_{number}.mcap")
    recover(split, tmp_path / "new")
    assert content(tmp_path / "new") == content(in_bag(lines))


def test_what_cannot_be_recovered_is_reported(bag: Path, tmp_path: Path) -> None:
    for path, words in (
        (tmp_path / "none", "no such bag"),
        (tmp_path, "expected the folder of a bag, or a file .mcap or .db3"),
    ):
        with pytest.raises(BagError, match=f"{path}: {words}"):
            recover(path, tmp_path / "new")
    with pytest.raises(BagError, match=r"cannot be written .*exists already"):
        recover(bag, tmp_path)
    (tmp_path / "empty.mcap").touch()
    with pytest.raises(
        BagError, match=r"no message in it can be read \(empty.mcap: does not begin as an mcap\)"
    ):
        recover(tmp_path / "empty.mcap", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_message_that_is_none_is_reported(
    lines: list[Any], in_bag: Callable[..., Path], tmp_path: Path
) -> None:
    garbage = [*lines[:5], lines[5]._replace(message=b"\x28\xb5garbage"), *lines[6:10]]
    found = recover(in_bag(garbage), tmp_path / "new")
    assert sum(found.counts.values()) == 5
    assert found.faults == ["some.mcap: a message begins with 28b5, which is not CDR"]


@pytest.mark.parametrize("storage", STORAGES)
def test_where_the_disk_is_full_what_was_flushed_stays(
    storage: str, half: Callable[..., Any], messages: Written, tmp_path: Path
) -> None:
    bag, writer = half(storage)
    writer.flush()
    held = writer._writer.storage
    with Path("/dev/full").open("wb", buffering=0) as full:
        if storage == "mcap":
            held.bio, written = full, held.bio
            written.close()
        else:
            (pages,) = held.conn.execute("PRAGMA page_count").fetchone()
            held.conn.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(
            BagError, match=rf"{bag}: cannot be written \((No space left|database or disk is full)"
        ):
            writer.write("/joint_states", bytes(10**7), 10**9)
    recover(bag, tmp_path / "new")
    assert messages_of(tmp_path / "new") == messages
