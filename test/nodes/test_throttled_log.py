"""Warnings that come in floods: what a suppressed one costs, and how the log counts them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from rclpy.impl import rcutils_logger

from adahi_lab.nodes.observer import Observer
from adahi_ros.nodes.common.throttled_log import MOST_KEYS, ThrottledLog

NODES = Path(__file__).resolve().parents[2] / "adahi_ros/nodes"


class LoggingNode:
    """Keeps what is logged.

    Attributes:
        now_s: the time.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self.logged: list[str] = []

    def get_logger(self) -> LoggingNode:
        return self

    def warning(self, text: str) -> None:
        self.logged.append(text)

    def log(self, period_s: float = 1.0) -> ThrottledLog:
        return ThrottledLog(self, period_s, lambda: self.now_s)  # type: ignore[arg-type]


def test_one_warning_per_key_and_period_is_logged_with_a_count_of_others() -> None:
    node = LoggingNode()
    log = node.log()
    for index in range(40):  # 10 Hz
        node.now_s = 0.1 * index
        log.warning("a", f"a {index}")
    log.warning("b", "b")
    assert node.logged == [
        "a 0",
        "a 10 (9 similar warnings suppressed)",
        "a 20 (9 similar warnings suppressed)",
        "a 30 (9 similar warnings suppressed)",
        "b",
    ]


def test_what_others_send_is_no_command_for_a_terminal_and_no_new_line() -> None:
    node = LoggingNode()
    node.log().warning("a", "names: \x1b[2J, a\n[INFO] all is well")
    assert node.logged == ["names: ?[2J, a?[INFO] all is well"]


def test_a_warning_after_a_pause_still_reports_what_was_suppressed_before() -> None:
    node = LoggingNode()
    log = node.log()
    for at_s, text in ((0.0, "first"), (0.5, "second"), (60.0, "third"), (120.0, "fourth")):
        node.now_s = at_s
        log.warning("a", text)
    assert node.logged == ["first", "third (1 similar warning suppressed)", "fourth"]


def test_a_text_is_made_only_where_it_is_logged() -> None:
    node = LoggingNode()
    log = node.log()
    made: list[int] = []

    def text() -> str:
        made.append(1)
        return "text"

    for _ in range(100):
        log.warning("a", text)
    assert (node.logged, len(made)) == (["text"], 1)


def test_a_flood_of_fresh_keys_is_throttled_as_one() -> None:
    node = LoggingNode()
    log = node.log()
    for index in range(10 * MOST_KEYS):
        log.warning(f"key {index}", f"text {index}")
    assert len(node.logged) == MOST_KEYS + 1
    node.now_s = 1.0
    log.warning("another", "text")
    assert node.logged[-1] == f"text ({9 * MOST_KEYS - 1} similar warnings suppressed)"


def test_rclpy_does_not_look_for_the_caller_of_a_suppressed_warning(
    observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = observer.node
    looked: list[Any] = []
    find = rcutils_logger._find_caller

    def counted(frame: Any) -> Any:
        looked.append(frame)
        return find(frame)

    monkeypatch.setattr(rcutils_logger, "_find_caller", counted)
    node.get_logger().warning("counted")
    assert len(looked) == 1
    log = ThrottledLog(node, 3600.0)
    for index in range(1000):
        log.warning("a", f"text {index}")
    assert len(looked) == 2


def test_nodes_throttle_before_rclpy_does() -> None:
    pattern = re.compile(r"throttle_duration_sec\s*=")
    found = {path.name for path in NODES.rglob("*.py") if pattern.search(path.read_text())}
    assert not found
