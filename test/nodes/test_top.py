"""What is heard of robots, and how they are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from adahi_msgs.msg import DraftStatus, LinkState, SafetyState
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from adahi_lab.nodes.domain import exclusive_domain, loopback_environment
from adahi_lab.nodes.observer import Observer
from adahi_ros.nodes.common.messages import to_status
from adahi_ros.nodes.monitoring.robot_status import LEVELS, STATUS_TYPE, Figures
from adahi_ros.nodes.monitoring.top import Watcher
from adahi_ros.protocol.records import Reason, StepRecord
from adahi_ros.safety.intervention import Intervention

Make = Callable[..., StepRecord]

DEADLINE_S = 30.0
DEEP = QoSProfile(depth=100)


def test_numbers_and_names_are_those_of_the_messages() -> None:
    assert {level: getattr(DiagnosticStatus, name) for level, name in LEVELS.items()} == {
        x: x for x in LEVELS
    }
    assert len(LEVELS) == 4
    prefix = "INTERVENTION_"
    names = [name for name in dir(SafetyState) if name.startswith(prefix)]
    numbers = {name.removeprefix(prefix): getattr(SafetyState, name) for name in names}
    assert numbers == {each.name: each.value for each in Intervention}
    assert f"adahi_msgs/msg/{DraftStatus.__name__}" == STATUS_TYPE


class Draft:
    """A node that publishes what a draft policy does."""

    def __init__(self, domain: int, namespace: str, robot_id: str, make: Make) -> None:
        self.observer = Observer(domain, f"draft_policy_of_{robot_id}")
        node = self.observer.node
        self._namespace, self._robot_id, self._make, self._steps = namespace, robot_id, make, 0
        self._status = node.create_publisher(DraftStatus, f"{namespace}/draft_status", DEEP)
        self._link = node.create_publisher(LinkState, f"{namespace}/link_state", 1)
        self._safety = node.create_publisher(SafetyState, f"{namespace}/safety_state", 1)
        self._diagnostics = node.create_publisher(DiagnosticArray, "/diagnostics", 10)

    def publish(self) -> None:
        self._steps += 1
        record = self._make(robot_id=self._robot_id, reason_counts=(self._steps,) + (0,) * (len(Reason) - 1))
        self._status.publish(to_status(record))
        self._link.publish(LinkState(robot_id=self._robot_id, verifier=LinkState.VERIFIER_READY))
        self._safety.publish(SafetyState(robot_id=self._robot_id, enabled=True))
        values = [KeyValue(key="transmission_rate", value="0.6"), KeyValue(key="acceptance", value="nan")]
        ours = DiagnosticStatus(
            name=f"{self._namespace}/draft_policy: control", hardware_id=self._robot_id, values=values
        )
        others = [
            DiagnosticStatus(name=name, hardware_id=hardware_id, level=DiagnosticStatus.ERROR)
            for name, hardware_id in (
                ("/elsewhere/draft_policy", self._robot_id),
                (f"{self._namespace}/camera", "camera"),
            )
        ]
        self._diagnostics.publish(DiagnosticArray(status=[others[0], ours, others[1]]))


@pytest.fixture
def domain(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    with exclusive_domain() as domain:
        for name, value in loopback_environment(domain).items():
            monkeypatch.setenv(name, value)
        yield domain


@pytest.fixture
def drafts(domain: int, step_record: Make) -> Iterator[list[Draft]]:
    """Two robots in namespaces of their own."""
    made = [Draft(domain, f"/{name}", name, step_record) for name in ("r1", "r2")]
    yield made
    for draft in made:
        draft.observer.close()


def received(watcher: Watcher, drafts: list[Draft], robots: int) -> list[Figures]:
    """Let robots publish until all there is to hear has been heard of so many."""

    def complete() -> bool:
        figures = watcher.figures()
        names = ("age_s", "link", "safety", "diagnostics")
        return len(figures) == robots and all(each[key] is not None for each in figures for key in names)

    def go_on() -> bool:
        for draft in drafts:
            draft.publish()
        watcher.listen(0.05)
        return complete()

    drafts[0].observer.wait_until(go_on, DEADLINE_S, "figures of every robot")
    return watcher.figures()


def test_every_robot_is_found_with_all_it_says(drafts: list[Draft]) -> None:
    with Watcher() as watcher:
        assert watcher.find(DEADLINE_S)
        figures = received(watcher, drafts, 2)
    assert [each["topic"] for each in figures] == ["/r1/draft_status", "/r2/draft_status"]
    assert [each["robot_id"] for each in figures] == ["r1", "r2"]
    for each in figures:
        assert each["link"]["verifier"] == "ready"
        assert each["safety"]["enabled"]
        assert each["diagnostics"]["level"] == "OK"
        assert each["since_activation"]["transmission_rate"] == 0.6
        assert each["since_activation"]["acceptance"] is None


def test_a_namespace_has_its_own_robots_alone(drafts: list[Draft]) -> None:
    with Watcher(namespace="r2") as watcher:
        figures = received(watcher, drafts, 1)
        assert [each["topic"] for each in figures] == ["/r2/draft_status"]

        def found_elsewhere() -> bool:  # DDS may introduce that one later
            watcher.listen(0.05)
            return bool(watcher.elsewhere)

        drafts[0].observer.wait_until(found_elsewhere, DEADLINE_S, "robot elsewhere")
        assert watcher.elsewhere == {"/r1/draft_status"}


def test_a_listener_is_no_robot(domain: int) -> None:
    other = Observer(domain, "listener")
    other.node.create_subscription(DraftStatus, "draft_status", lambda _: None, 1)
    try:
        with Watcher() as watcher:
            other.wait_until(
                lambda: "/draft_status" in dict(watcher.node.get_topic_names_and_types()),
                DEADLINE_S,
                "topic",
            )
            watcher.listen(0.1)
            assert watcher.figures() == []
    finally:
        other.close()


def test_a_robot_owes_the_watcher_nothing(drafts: list[Draft]) -> None:
    node = drafts[0].observer.node
    with Watcher() as watcher:
        received(watcher, drafts, 2)
        for kind in ("draft_status", "link_state", "safety_state"):
            (found,) = node.get_subscriptions_info_by_topic(f"/r1/{kind}")
            assert found.qos_profile.reliability is ReliabilityPolicy.BEST_EFFORT
            assert found.qos_profile.durability is DurabilityPolicy.VOLATILE
        theirs = (
            node.get_publisher_names_and_types_by_node(found.node_name, "/"),
            node.get_client_names_and_types_by_node(found.node_name, "/"),
        )
        assert {topic for each in theirs for topic, _ in each} <= {"/parameter_events"}
