"""A terminal gives keys at once, and is afterwards as it was."""

from __future__ import annotations

import os
import pty
import sys
import termios
from collections.abc import Iterator

import pytest

from adahi_ros.nodes.monitoring.episode_control import HELP
from adahi_ros.nodes.monitoring.episode_terminal import EpisodeTerminal


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The person's end of a terminal that is this process's input."""
    person, ours = pty.openpty()
    with os.fdopen(ours) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        yield person
    os.close(person)


def test_keys_come_without_enter_and_the_terminal_is_restored(person: int) -> None:
    before = termios.tcgetattr(sys.stdin)
    terminal = EpisodeTerminal()
    assert not termios.tcgetattr(sys.stdin)[3] & (termios.ICANON | termios.ECHO)
    assert terminal.keys() == ""
    os.write(person, b"s" + "é".encode()[:1])
    typed = ""
    while typed != "s":
        typed += terminal.keys()
    os.write(person, "é".encode()[1:])
    while typed != "sé":
        typed += terminal.keys()
    terminal.close()
    assert termios.tcgetattr(sys.stdin) == before


def test_in_80_columns_everything_is_readable(
    person: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    terminal = EpisodeTerminal()
    rates = [f"/follower/camera_{number}/image_raw: {number} Hz" for number in range(4)]
    terminal.show(" | ".join(rates), HELP)
    terminal.close()
    shown = capsys.readouterr().out
    assert [each in shown.replace("\n", "") for each in rates] == [True] * 4
    assert HELP in shown.splitlines()  # in one line


def test_what_is_no_terminal_has_no_keys(person: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not EpisodeTerminal.usable()  # the output is none
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert not EpisodeTerminal.usable()
