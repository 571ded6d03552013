"""What watches a robot: names in the layouts, markers on the air, and `adahi watch` beside a draft policy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from adahi_msgs.msg import DraftStatus, LinkState, SafetyState
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from adahi_lab.nodes.domain import loopback_environment
from adahi_ros.nodes.common.messages import to_stamp
from adahi_ros.nodes.monitoring.top import Watcher
from test.system.stage import Scene, Stage

ROOT = Path(__file__).resolve().parents[2]
TOPICS = {
    "/draft_status": DraftStatus,
    "/link_state": LinkState,
    "/safety_state": SafetyState,
    "/diagnostics": DiagnosticArray,
    "/path_markers": MarkerArray,
    "/robot_description": String,
}
LISTS = {  # with the constants that number their entries
    "draft_status.reason_counts": (DraftStatus, "REASON_"),
    "safety_state.counts": (SafetyState, "INTERVENTION_"),
}


def numbers_of(path: str) -> set[int]:
    message, prefix = LISTS[path]
    return {getattr(message, name) for name in dir(message) if name.startswith(prefix)}


def every_string(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (found for each in value.values() for found in every_string(each))
    elif isinstance(value, list):
        yield from (found for each in value for found in every_string(each))


def foxglove_paths() -> list[str]:
    layout = json.loads((ROOT / "config/foxglove/adahi.json").read_text())
    named = [topic for panel in layout["configById"].values() for topic in panel.get("topics", ())]
    return [*named, *(each for each in every_string(layout["configById"]) if each.startswith("/"))]


def rviz_paths() -> list[str]:
    layout = yaml.safe_load((ROOT / "config/rviz/adahi.rviz").read_text())
    return [each for each in every_string(layout) if each.startswith("/")]


def plotjuggler_paths() -> list[str]:
    layout = ElementTree.parse(ROOT / "config/plotjuggler/adahi.xml")
    names = [str(curve.get("name")) for curve in layout.iter("curve")]
    return ["/" + name[1:].replace("/", ".") for name in names]


def documented_paths() -> list[str]:
    """What the page plots: `rqt_plot /TOPIC/FIELD ...`, `ros2 topic ... /TOPIC --field FIELD`."""
    text = (ROOT / "docs/how_to/watch_and_report.md").read_text()
    lines = [line.split() for line in text.splitlines() if line.startswith("    ros2 ")]
    plotted = [word for words in lines if "rqt_plot" in words for word in words if word.startswith("/")]
    echoed = [words for words in lines if words[1] == "topic"]
    fields = [words[-1] if "--field" in words else "" for words in echoed]
    topics = [next(word for word in words if word.startswith("/")) for words in echoed]
    return [
        *("/" + path[1:].replace("/", ".") for path in plotted),
        *(f"{topic}.{field}".rstrip(".") for topic, field in zip(topics, fields, strict=True)),
    ]


def check(path: str) -> None:
    """Check that a path, `/TOPIC.FIELD[INDEX]`, is in the messages."""
    topic, *fields = path.split(".")
    kind = TOPICS[topic]
    for field in fields:
        name, index = re.fullmatch(r"(\w+)(?:\[(\d+)\])?", field).groups()  # type: ignore[union-attr]
        types = kind.get_fields_and_field_types()
        assert name in types, f"{path}: no field {name}; there are {', '.join(types)}"
        if index is not None:
            assert int(index) in numbers_of(f"{topic[1:]}.{name}"), path
        elif "/" in types[name] and "<" not in types[name]:
            package, kind_name = types[name].split("/")
            kind = getattr(import_module(f"{package}.msg"), kind_name)


@pytest.mark.parametrize("paths", [foxglove_paths, rviz_paths, plotjuggler_paths, documented_paths])
def test_every_topic_and_field_of_a_layout_exists(paths: Any) -> None:
    found = paths()
    assert found
    for path in found:
        check(path)


@pytest.mark.parametrize("paths", [foxglove_paths, plotjuggler_paths])
@pytest.mark.parametrize("counted", LISTS)
def test_a_layout_shows_every_reason_and_every_intervention(paths: Any, counted: str) -> None:
    shown = {int(each.split("[")[1][:-1]) for each in paths() if each.startswith(f"/{counted}[")}
    if paths is plotjuggler_paths and counted == "draft_status.reason_counts":
        assert not shown  # it draws the reason of each step instead
        return
    assert shown == numbers_of(counted) - ({DraftStatus.REASON_NONE} if "reason" in counted else set())


def test_every_panel_of_the_foxglove_layout_is_placed_once() -> None:
    layout = json.loads((ROOT / "config/foxglove/adahi.json").read_text())
    panels = layout["configById"]

    def places(part: Any) -> Iterator[str]:
        if isinstance(part, str):
            yield part
        else:
            yield from places(part["first"])
            yield from places(part["second"])

    placed = list(places(layout["layout"]))
    for name in list(placed):
        placed += [each for tab in panels[name].get("tabs", ()) for each in places(tab["layout"])]
    assert sorted(placed) == sorted(panels)


def test_the_markers_of_an_episode_are_published(stage: Stage) -> None:
    process = stage.start("path_markers_node", frame_id="plate", point_of_action__x=0, point_of_action__y=1)
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    got: list[MarkerArray] = stage.received(MarkerArray, "path_markers", latched)
    out = stage.node.create_publisher(DraftStatus, "draft_status", 1)

    def show(step: int) -> None:
        status = DraftStatus(episode_id=1, step_id=step, verified=True, transmitted=True)
        status.header.stamp = to_stamp(1_000_000_000 * (step + 1))
        status.action, status.draft_action = [0.1 * step, 0.0], [0.1 * step, 1.0]
        out.publish(status)

    def executed() -> list[float]:
        return [point.x for point in got[-1].markers[0].points] if got else []

    step = 0

    def shown() -> bool:
        nonlocal step
        show(step)
        step += 1
        return len(executed()) > 2

    stage.wait(shown, "markers")
    assert {marker.header.frame_id for marker in got[-1].markers} == {"plate"}
    assert got[-1].markers[1].points[0].y == 1.0
    stage.end(process)


def test_a_wrong_parameter_ends_the_markers_with_its_name(stage: Stage) -> None:
    process = stage.start("path_markers_node", robot_description="no/such.urdf", tip_link="tip")
    assert stage.await_end(process, 1).startswith("error: robot_description: ")


def test_top_says_of_a_draft_policy_what_it_says_of_itself(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in loopback_environment(scene.stage.domain).items():
        monkeypatch.setenv(name, value)
    with Watcher(window_s=60.0) as watcher:
        assert watcher.find(30.0)
        episode = scene.new_episode()
        step = 0

        def received() -> bool:
            nonlocal step
            step += 1
            scene.robot.show(episode, step)
            scene.verifier.reply(scene.verifier.wait_for_request(episode, step))
            scene.robot.answer_to(episode, step)
            watcher.listen(0.05)
            (robot,) = watcher.figures()
            values = (robot["age_s"], robot["link"], robot["diagnostics"])
            return None not in values and robot["recent"]["transmission_rate"] not in (None, 0.0)

        scene.stage.wait(received, "figures")
        (robot,) = watcher.figures()
    newest = scene.robot.steps[-1]
    assert robot["topic"] == "/draft_status"
    assert robot["robot_id"] == newest.robot_id
    assert robot["since_activation"]["steps"] == sum(newest.reason_counts)
    assert robot["recent"]["acceptance"] == 0.0  # the verifier keeps one code of two
    assert robot["link"]["verifier"] == "ready"
    assert robot["diagnostics"]["values"]["link"]
