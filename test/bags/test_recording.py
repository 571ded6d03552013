"""What is recorded, how it is subscribed, and how a recording ends."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import Reader

from adahi_ros.bags.bag_reader import read_bag
from adahi_ros.bags.bag_writer import BagWriter, UnwrittenBag
from adahi_ros.bags.definitions import BagError
from adahi_ros.bags.recording import Listening, RawImages, Recording, fitting, recorded_kinds
from adahi_ros.contract.contract import Channel
from adahi_ros.contract.parsing import load_contract

S = 1_000_000_000
RELIABLE, BEST_EFFORT = QosReliability.RELIABLE, QosReliability.BEST_EFFORT
KEPT, VOLATILE = QosDurability.TRANSIENT_LOCAL, QosDurability.VOLATILE
INSTRUCTION = "std_msgs/msg/String"
STATUS, JOINTS = "adahi_msgs/msg/DraftStatus", "sensor_msgs/msg/JointState"
CONTRACT = load_contract("ball")


def qos(reliability: QosReliability = RELIABLE, durability: QosDurability = VOLATILE) -> Qos:
    never = QosTime(0, 0)
    lively = QosLiveliness.AUTOMATIC
    return Qos(QosHistory.KEEP_LAST, 1, reliability, durability, never, never, lively, never, False)


@pytest.fixture
def bag(tmp_path: Path) -> BagWriter:
    return BagWriter(tmp_path / "bag")


@pytest.fixture
def recording(bag: BagWriter) -> Recording:
    names = {topic: f"/r1/{topic.lstrip('/')}" for topic in recorded_kinds(CONTRACT)}
    return Recording(CONTRACT, names, bag)


@pytest.mark.parametrize(
    ("offered", "observed", "found"),
    [
        ([(RELIABLE, KEPT)], None, (True, True)),
        ([(BEST_EFFORT, KEPT)], None, (False, True)),
        ([(RELIABLE, KEPT), (BEST_EFFORT, VOLATILE)], None, (False, False)),
        ([(RELIABLE, VOLATILE)], ("best_effort", "volatile"), (True, False)),
        ([(RELIABLE, KEPT)], ("best_effort", "volatile"), (True, False)),
        ([(BEST_EFFORT, VOLATILE)], ("reliable", "transient_local"), (True, True)),
        ([(BEST_EFFORT, KEPT)], ("best_effort", "transient_local"), (False, True)),
    ],
)
def test_a_recorder_hears_nothing_that_the_robots_node_does_not(
    offered: list[tuple[QosReliability, QosDurability]],
    observed: tuple[str, str] | None,
    found: tuple[bool, bool],
) -> None:
    channel = None if observed is None else Channel("goal", "geometry_msgs/msg/PoseStamped", *observed)
    assert fitting([qos(*each) for each in offered], channel) == found


def test_a_topic_is_subscribed_once_and_again_if_a_publisher_offers_less(recording: Recording) -> None:
    full, less = (STATUS, qos(RELIABLE, KEPT)), (STATUS, qos(BEST_EFFORT, VOLATILE))
    assert recording.subscription("draft_status", []) is None
    assert recording.subscription("draft_status", [full]) == Listening(True, True)
    assert recording.subscription("draft_status", [full, full]) is None
    unreliable = (STATUS, qos(BEST_EFFORT, KEPT))
    assert recording.subscription("draft_status", [full, unreliable]) == Listening(False, True)
    assert recording.subscription("draft_status", [full, less]) == Listening(False, False)
    assert recording.subscription("draft_status", [full]) is None  # the laxer one hears that too


def test_a_type_that_is_not_expected_is_reported_once_and_not_recorded(recording: Recording) -> None:
    other_types = [("std_msgs/msg/String", qos()), (JOINTS, qos()), (STATUS, qos())]
    messages = recording.other_types("draft_status", other_types)
    assert messages == [
        f"/r1/draft_status: is published as {kind}, expected {STATUS}; not recorded"
        for kind in (JOINTS, "std_msgs/msg/String")
    ]
    assert recording.other_types("draft_status", other_types) == []
    assert recording.subscription("draft_status", other_types[:2]) is None


def receive(recording: Recording) -> None:
    """Have a publisher of every topic of the contract, and a message of each at 10 s."""
    for topic in ("joint_states", "task_state", "command"):
        kind = recorded_kinds(CONTRACT)[topic]
        assert recording.subscription(topic, [(kind, qos())]) is not None
        assert recording.write(topic, bytes(8), 10 * S) == ""


def test_what_a_target_received_is_recorded_also_what_came_before(recording: Recording) -> None:
    kind = recorded_kinds(CONTRACT)["instruction"]
    latched = qos(durability=QosDurability.TRANSIENT_LOCAL)
    assert kind == "std_msgs/msg/String"
    assert recording.subscription("instruction", [(kind, latched)]) == Listening(reliable=True, kept=True)


def test_notices_of_assignments_are_recorded_also_the_latched_one(recording: Recording) -> None:
    kind, latched = recorded_kinds(CONTRACT)["assignments"], qos(durability=KEPT)
    assert kind == "adahi_msgs/msg/Assignments"
    assert recording.subscription("assignments", [(kind, latched)]) == Listening(reliable=True, kept=True)


def test_a_whole_recording_says_what_is_in_it(recording: Recording, bag: BagWriter) -> None:
    assert recording.progress(4.7) == "5 s: none of the topics is published"
    receive(recording)
    counts = "/r1/joint_states 1, /r1/task_state 1, /r1/command 1"
    assert recording.progress(4.7) == f"5 s: {counts}"
    recording.flush()
    recording.close()
    assert recording.summary == f"{bag.path}: 3 messages of 3 topics"
    assert (recording.over, recording.warnings, recording.exit_code) == (False, [], 0)
    with Reader(bag.path) as reader:
        assert [connection.topic for connection, _, _ in reader.messages()] == [*bag.counts]


def test_what_did_not_come_is_reported(recording: Recording, bag: BagWriter) -> None:
    recording.subscription("joint_states", [(JOINTS, qos())])
    recording.write("joint_states", bytes(8), S)
    recording.close()
    assert recording.warnings == [
        f"{bag.path}: no messages on /r1/task_state; "
        "check the names, and --namespace where the robot has one",
        f"{bag.path}: no messages on /r1/command; right if nothing commanded it",
    ]
    assert recording.exit_code == 0


def test_a_recording_of_nothing_of_the_contract_has_failed(recording: Recording, bag: BagWriter) -> None:
    recording.subscription("draft_status", [(STATUS, qos())])
    recording.write("draft_status", bytes(8), S)
    recording.close()
    (warning,) = recording.warnings
    names = "/r1/joint_states, /r1/task_state, /r1/command"
    assert warning.startswith(f"{bag.path}: no messages of the contract; expected publishers of {names}; ")
    assert warning.endswith("; check the names, and --namespace where the robot has one")
    assert recording.exit_code == 1


def stamped(at_s: int, order: str = "little") -> bytes:
    """Begin a message in CDR with a header of this time."""
    begins = bytes([0, order == "little", 0, 0])
    return begins + at_s.to_bytes(4, order) + (0).to_bytes(4, order)  # type: ignore[arg-type]


@pytest.mark.parametrize("order", ["little", "big"])
def test_stamps_far_in_the_future_are_warned_of(recording: Recording, bag: BagWriter, order: str) -> None:
    """As where a recorder uses simulated time that nothing publishes: its clock stands at 0."""
    receive(recording)
    assert recording.other_clock == ""
    recording.write("task_state", stamped(1_800_000_000, order), 10 * S)
    recording.write("command", stamped(1_900_000_000, order), 10 * S)  # no observation
    assert recording.other_clock.startswith("task_state: stamps lie 1799999990 s in the future")
    assert "--use-sim-time only where something publishes /clock" in recording.other_clock
    recording.close()
    assert recording.warnings == [f"{bag.path}: {recording.other_clock}"]
    assert recording.exit_code == 0


def test_the_next_bag_begins_with_what_was_latched_and_the_instruction(tmp_path: Path) -> None:
    """Latched messages arrive once per subscription, and the next bag has the same subscriptions."""
    names = {topic: f"/{topic}" for topic in recorded_kinds(CONTRACT)}
    waiting = Recording(CONTRACT, names, UnwrittenBag(tmp_path))
    for topic, kind in (("draft_status", STATUS), ("joint_states", JOINTS)):
        waiting.subscription(topic, [(kind, qos(durability=KEPT))])
        waiting.write(topic, bytes(8), 10 * S)
    waiting.instruct("open the drawer")
    first = waiting.following(BagWriter(tmp_path / "first"), 20 * S)
    assert first.subscription("draft_status", [(STATUS, qos(durability=KEPT))]) is None
    first.instruct("close it")  # said during an episode: for the next one
    bags = [tmp_path / "first", tmp_path / "second"]
    second = first.following(BagWriter(bags[1]), 30 * S)
    for each in (first, second):
        each.close()
        assert not each.over
    sentences = [[each.message.data for each in read_bag(bag, {"instruction": INSTRUCTION})] for bag in bags]
    assert sentences == [["open the drawer"], ["close it"]]
    with Reader(bags[1]) as reader:
        found = {connection.topic for connection, _, _ in reader.messages()}
    assert found == {"/draft_status", "/instruction"}


def test_raw_images_are_warned_of_once_with_their_rate() -> None:
    raw, frame = RawImages(), 640 * 480 * 3
    found = [raw.take("/front", frame, step * S // 10) for step in range(50)]
    (warning,) = filter(None, found)
    assert warning.startswith("/front: raw images, 553 MB a minute; for JPEG, name the topic /front/c")
    assert found.index(warning) == 20


def test_a_clock_that_starts_late_is_not_warned_of_for_ever(recording: Recording) -> None:
    receive(recording)
    recording.write("task_state", stamped(100), 10 * S)
    assert recording.other_clock
    recording.write("task_state", stamped(101), 101 * S)
    recording.write("joint_states", stamped(20), 101 * S)  # old, which readers refuse by themselves
    assert recording.other_clock == ""


def test_a_clock_that_goes_back_by_a_moment_goes_on(recording: Recording, bag: BagWriter) -> None:
    receive(recording)
    newest_ns = bag.newest_ns
    assert recording.write("command", bytes(8), newest_ns - S) == ""
    assert not recording.over
    assert bag.counts["/r1/command"] == 2


def test_a_clock_that_begins_again_ends_it(recording: Recording, bag: BagWriter) -> None:
    receive(recording)
    why = recording.write("command", bytes(8), bag.newest_ns - 3 * S)
    assert why == "the clock went back by 3.0 s: the bag ends where it did"
    assert recording.over
    assert recording.write("command", bytes(8), 3 * S) == ""  # said once
    assert recording.write("command", bytes(8), 11 * S) == ""  # a later time again is left out as well
    recording.close()
    assert bag.counts["/r1/command"] == 1
    (warning,) = recording.warnings
    assert "ends where the clock was reset; 3 later messages are not in it" in warning
    assert recording.exit_code == 1


@pytest.mark.parametrize("fails", ["add", "write", "flush", "close"])
def test_a_bag_that_cannot_be_written_ends_it(
    recording: Recording, bag: BagWriter, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    receive(recording)
    closed = SimpleNamespace(times=0)

    def fail(*arguments: object) -> None:
        closed.times += fails == "close"
        raise BagError("bag: no space left")

    monkeypatch.setattr(bag, fails, fail)
    {
        "add": lambda: recording.subscription("draft_status", [(STATUS, qos())]),
        "write": lambda: recording.write("command", bytes(8), 11 * S),
        "flush": recording.flush,
        "close": recording.close,
    }[fails]()
    assert recording.over
    assert recording.write("command", bytes(8), 12 * S) == ""
    recording.close()
    assert closed.times == (fails == "close")  # there is nothing to close any more
    assert recording.summary == ""
    (warning,) = recording.warnings
    assert warning.startswith("bag: no space left; 'adahi bag repair")
    assert recording.exit_code == 1
