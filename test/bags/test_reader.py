from __future__ import annotations

import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer

from adahi_ros.bags.bag_files import is_bag
from adahi_ros.bags.bag_reader import Received, read_bag
from adahi_ros.bags.bag_writer import STORAGES, BagWriter
from adahi_ros.bags.definitions import BagError, types_of
from adahi_ros.bags.recorded_topics import absolute
from adahi_ros.bags.recovery import recover
from test.bags import conftest as toy
from test.bags.conftest import FORMS, STORE, WANTED, comparable


def fault(path: Path, topics: dict[str, str] = WANTED, **how: Any) -> str:
    with pytest.raises(BagError) as raised:
        list(read_bag(path, topics, **how))
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
    return str(raised.value).replace(str(path), "BAG")


@pytest.mark.parametrize(("storage", "compression"), FORMS)
def test_every_storage_yields_the_same_messages_in_the_order_of_coming(
    storage: str, compression: str, lines: list[Any], in_bag: Callable[..., Path]
) -> None:
    bag = in_bag(lines, storage=storage, compression=compression)
    found = list(read_bag(bag, WANTED))
    written = [line for line in lines if line.topic in WANTED]
    assert is_bag(bag)
    assert comparable(found) == comparable([Received(*line) for line in written])
    assert [each.received_ns for each in found] == sorted(each.received_ns for each in found)


@pytest.mark.parametrize("storage", STORAGES)
def test_a_single_file_is_a_bag_too(storage: str, lines: list[Any], in_bag: Callable[..., Path]) -> None:
    bag = in_bag(lines, storage=storage)
    (file,) = [path for path in bag.iterdir() if path.suffix != ".yaml"]
    assert is_bag(file)
    assert comparable(read_bag(file, WANTED)) == comparable(list(read_bag(bag, WANTED)))


def test_topics_are_those_of_the_robots_namespace(lines: list[Any], in_bag: Callable[..., Path]) -> None:
    bag = in_bag(lines, prefix="/left/")
    for namespace in ("left", "/left", "/left/"):
        assert {each.topic for each in read_bag(bag, WANTED, namespace=namespace)} == WANTED.keys()
    full = {f"/left/{topic}": kind for topic, kind in WANTED.items()}
    assert {each.topic for each in read_bag(bag, full, namespace="right")} == full.keys()
    assert fault(bag) == (
        "BAG: /joint_states: no such topic, expected sensor_msgs/msg/JointState; "
        "there is /left/joint_states: is the namespace /left?"
    )


def test_names_are_resolved_as_ros_does() -> None:
    assert absolute("state") == "/state"
    assert absolute("state", "/a/b/") == absolute("state", "a/b") == "/a/b/state"
    assert absolute("/state", "a") == "/state"


def test_what_is_no_bag_is_named(bag: Path, tmp_path: Path) -> None:
    assert fault(tmp_path / "none") == "BAG: no such bag"
    assert fault(tmp_path).startswith("BAG: no metadata.yaml, expected the folder of a bag")
    (tmp_path / "notes.txt").write_text("no bag")
    assert fault(tmp_path / "notes.txt") == "BAG: expected the folder of a bag, or a file .mcap or .db3"
    assert not is_bag(tmp_path)
    (tmp_path / "metadata.yaml").write_text("rosbag2_bagfile_information: {version: 4}")
    assert fault(tmp_path).startswith("BAG: expected a rosbag2, sqlite3 or mcap (")


def test_another_topic_or_type_is_named(bag: Path) -> None:
    assert fault(bag, {"camera": "sensor_msgs/msg/Image"}).startswith(
        "BAG: /camera: no such topic, expected sensor_msgs/msg/Image; there are /command, /episode_result, "
    )
    assert fault(bag, {"joint_states": "sensor_msgs/msg/Image"}) == (
        "BAG: /joint_states: of type sensor_msgs/msg/JointState, expected sensor_msgs/msg/Image"
    )


@pytest.mark.parametrize("storage", STORAGES)
def test_a_topic_without_messages_is_named(storage: str, tmp_path: Path) -> None:
    writer = BagWriter(tmp_path / "empty", storage)
    for topic, kind in WANTED.items():
        writer.add(f"/{topic}", kind)
    writer.close()
    assert fault(tmp_path / "empty") == "BAG: /joint_states: no messages, expected at least one"


def test_a_message_that_is_cut_short_is_named(lines: list[Any], in_bag: Callable[..., Path]) -> None:
    whole = bytes(toy.STORE.serialize_cdr(lines[0].message, WANTED["joint_states"]))
    for data in (whole[:-12], b"", b"\7\7\0\0" + whole[4:]):
        bag = in_bag([lines[0]._replace(message=data)])
        message = fault(bag, {"joint_states": WANTED["joint_states"]})
        assert message.startswith("BAG: /joint_states: message 0, expected a sensor_msgs/msg/JointState (")


def test_bytes_after_the_last_field_are_passed_over_as_rclpy_leaves_some(
    lines: list[Any], in_bag: Callable[..., Path]
) -> None:
    kind = WANTED["joint_states"]
    data = bytes(toy.STORE.serialize_cdr(lines[0].message, kind))
    (found,) = read_bag(in_bag([lines[0]._replace(message=data + b"\xab" * 12)]), {"joint_states": kind})
    assert found.message.position.tolist() == lines[0].message.position.tolist()


def forget_definitions(bag: Path) -> None:
    with sqlite3.connect(next(bag.glob("*.db3"))) as database:
        database.execute("DELETE FROM message_definitions")


def test_the_bags_own_definition_goes_before_ours(tmp_path: Path) -> None:
    """A bag from before `goal` was there still reads."""
    definition = "uint32 episode_id\nfloat64[] state\n"
    kind = "adahi_msgs/msg/TaskState"
    with Writer(tmp_path / "old", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connection = writer.add_connection("/task_state", kind, msgdef=definition, rihs01="RIHS01_old")
        writer.write(connection, 5, b"\0\1\0\0" + b"\7\0\0\0" + b"\0\0\0\0")
    (found,) = read_bag(tmp_path / "old", {"task_state": kind})
    assert (found.message.episode_id, len(found.message.state)) == (7, 0)
    assert not hasattr(found.message, "goal")


def test_another_version_of_a_type_is_named_where_the_bag_lacks_it(
    lines: list[Any], in_bag: Callable[..., Path]
) -> None:
    bag = in_bag(lines, storage="sqlite3")
    forget_definitions(bag)
    ours = types_of(WANTED.values()).hash_rihs01(WANTED["task_state"])
    with sqlite3.connect(next(bag.glob("*.db3"))) as database:
        database.execute(
            "UPDATE topics SET type_description_hash = 'RIHS01_other' WHERE name = '/task_state'"
        )
    metadata = bag / "metadata.yaml"
    metadata.write_text(metadata.read_text().replace(ours, "RIHS01_other"))
    assert "/task_state: of another version of adahi_msgs/msg/TaskState, and the bag does not" in fault(bag)


def test_a_type_that_is_nowhere_is_named(tmp_path: Path) -> None:
    kind = "chess_msgs/msg/Board"
    with Writer(tmp_path / "chess", version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        connection = writer.add_connection("/board", kind, msgdef="int8 pawns\n", rihs01="RIHS01_0")
        writer.write(connection, 5, b"\0\1\0\0\7")
    assert [each.message.pawns for each in read_bag(tmp_path / "chess", {"board": kind})] == [7]
    forget_definitions(tmp_path / "chess")
    assert fault(tmp_path / "chess", {"board": kind}) == (
        "BAG: /board: chess_msgs/msg/Board: unknown; expected chess_msgs to be installed and sourced "
        "(AMENT_PREFIX_PATH)"
    )


def damaged(bag: Path, folder: Path, seed: int, tries: int) -> Iterator[Path]:
    """Yield copies of a bag, in each of which one file has lost its end, or some bytes were changed."""
    draw = np.random.default_rng(seed)
    for number in range(tries):
        copy = Path(shutil.copytree(bag, folder / f"{bag.name}{number}"))
        files = sorted(copy.iterdir())
        file = files[int(draw.integers(len(files)))]
        content = bytearray(file.read_bytes())
        if draw.random() < 0.5:
            del content[int(draw.integers(len(content))) :]
        else:
            for place in draw.integers(len(content), size=int(draw.integers(1, 9))):
                content[place] = int(draw.integers(256))
        file.write_bytes(content)
        yield copy
        shutil.rmtree(copy)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("compression", ["none", "file", "message"])
def test_a_damaged_bag_yields_some_of_its_messages_or_a_bag_error(
    storage: str, compression: str, lines: list[Any], in_bag: Callable[..., Path], tmp_path: Path
) -> None:
    bag = in_bag(lines[:91], storage=storage, compression=compression)
    message: list[bool] = []
    losses: list[str]
    for copy in damaged(bag, tmp_path, seed=len(storage) + len(compression), tries=60):
        found: list[Received] = []
        try:
            found.extend(read_bag(copy, WANTED))
        except BagError as error:
            message.append(str(copy) in str(error))
        assert len(found) <= 60
        found, losses = [], []
        try:
            found.extend(read_bag(copy, WANTED, on_loss=losses.append))
        except BagError as error:
            message.append(str(copy) in str(error))
        assert len(found) <= 60
        message += [each.startswith(str(copy)) for each in losses]
    assert message
    assert all(message)


KIND = "adahi_msgs/msg/TaskState"
TWICE = {"/old": "uint32 episode_id\nfloat64 time\n", "/new": "float64 time\nuint32 episode_id\n"}
IN_TWO = {
    "/old": b"\0\1\0\0" + struct.pack("<IId", 7, 0, 0.5),
    "/new": b"\0\1\0\0" + struct.pack("<dI", 0.5, 7),
}


def check_two_definitions(path: Path) -> None:
    for on_loss in (None, pytest.fail):
        found = list(read_bag(path, dict.fromkeys(TWICE, KIND), on_loss=on_loss))
        assert len(found) == 6
        assert {(each.message.episode_id, each.message.time) for each in found} == {(7, 0.5)}


def test_each_topic_of_a_database_has_its_own_definition_of_a_type(tmp_path: Path) -> None:
    bag = tmp_path / "two"
    with Writer(bag, version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        for topic, text in TWICE.items():
            connection = writer.add_connection(topic, KIND, msgdef=text, rihs01=f"RIHS01_{topic[1:]}")
            for at in range(3):
                writer.write(connection, at, IN_TWO[topic])
    with sqlite3.connect(next(bag.glob("*.db3"))) as database:  # the library writes the first alone
        added = (9, KIND, "ros2msg", TWICE["/new"], "RIHS01_new")
        database.execute("INSERT INTO message_definitions VALUES (?, ?, ?, ?, ?)", added)
    check_two_definitions(bag)


@pytest.mark.parametrize("change", [("identifier: mcap", "identifier: ''"), ("version: 9", "version: 10")])
def test_metadata_that_the_library_refuses_lose_no_message(
    change: tuple[str, str], lines: list[Any], in_bag: Callable[..., Path]
) -> None:
    bag = in_bag(lines)
    before, metadata = comparable(read_bag(bag, WANTED)), bag / "metadata.yaml"
    assert change[0] in metadata.read_text()
    metadata.write_text(metadata.read_text().replace(*change))
    assert comparable(read_bag(bag, WANTED)) == before
    assert comparable(read_bag(bag, WANTED, on_loss=pytest.fail)) == before
    file = next(bag.glob("*.mcap"))
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert "cut off or damaged" in fault(bag)


def mcap_record(kind: int, body: bytes) -> bytes:
    return struct.pack("<BQ", kind, len(body)) + body


def mcap_text(*texts: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)


Schema = tuple[bytes, bytes, bytes]
"""Name, encoding and text of an mcap's schema."""


def write_mcap(path: Path, channels: Mapping[str, tuple[Schema | None, bytes]], count: int) -> None:
    """Write a message of each channel several times; the encoding of one that is not ROS's is JSON."""
    magic, last = b"\x89MCAP0\r\n", struct.pack("<QQI", 0, 0, 0)
    records = [mcap_record(1, mcap_text(b"ros2", b"some"))]
    for number, (topic, (schema, _)) in enumerate(channels.items(), start=1):
        if schema is not None:
            records.append(mcap_record(3, struct.pack("<H", number) + mcap_text(*schema)))
        encoding = b"cdr" if schema is not None and schema[1] == b"ros2msg" else b"json"
        head = struct.pack("<HH", number, 0 if schema is None else number)
        records.append(mcap_record(4, head + mcap_text(topic.encode(), encoding, b"")))
    for at in range(count):
        for number, (_, data) in enumerate(channels.values(), start=1):
            records.append(mcap_record(5, struct.pack("<HIQQ", number, at, at, at) + data))
    path.write_bytes(magic + b"".join(records) + mcap_record(15, bytes(4)) + mcap_record(2, last) + magic)


def test_each_channel_of_an_mcap_has_its_own_definition_of_a_type(tmp_path: Path) -> None:
    path = tmp_path / "two.mcap"
    channels = {topic: ((KIND.encode(), b"ros2msg", TWICE[topic].encode()), IN_TWO[topic]) for topic in TWICE}
    write_mcap(path, channels, 3)
    check_two_definitions(path)


@pytest.mark.parametrize(
    "schema", [(b"foxglove.Log", b"protobuf", b"\x0a\xff\x01"), (b"Odom", b"jsonschema", b"{}"), None]
)
def test_channels_of_another_encoding_do_not_matter(
    schema: Schema | None, lines: list[Any], tmp_path: Path
) -> None:
    kind, path = WANTED["joint_states"], tmp_path / "some.mcap"
    definition = STORE.generate_msgdef(kind, ros_version=2)[0].encode()
    data = bytes(STORE.serialize_cdr(lines[0].message, kind))
    joints = ((kind.encode(), b"ros2msg", definition), data)
    write_mcap(path, {"/joint_states": joints, "/log": (schema, b"{}")}, 4)
    for on_loss in (None, pytest.fail):
        assert len(list(read_bag(path, {"joint_states": kind}, on_loss=on_loss))) == 4
    recovered = recover(path, tmp_path / "new")
    assert (recovered.counts, recovered.others) == ({"/joint_states": 4}, {"/log": 4})
