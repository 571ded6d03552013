"""What a stranger says is told in short, and harms no terminal and no log."""

from __future__ import annotations

from adahi_ros.core.texts import shortened

MANY = 1 << 20


def test_a_text_that_is_short_enough_stays() -> None:
    assert shortened("as long as it may be", 20) == "as long as it may be"
    assert shortened("longer than it may be", 20) == "longer than it ma..."


def test_a_text_of_another_node_moves_no_cursor_and_begins_no_line() -> None:
    assert shortened("\x1b[2J\u202eü\r\n[INFO] all is well") == "?[2J?ü??[INFO] all is well"
    assert shortened("\n" * MANY, 5) == "??..."
