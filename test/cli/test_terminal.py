"""What the command prints is no command for the terminal, wherever the words come from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.live import Live
from rich.table import Table
from rich.text import Text

from adahi_lab.cli.output import job_bar
from adahi_ros.cli import app
from adahi_ros.cli.terminal import console, errors, say

EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\rok"


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    found = capsys.readouterr()
    return found.out + found.err


def test_lines_tables_and_bars_print_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(EVIL, title=EVIL)
    table.add_row(Text(EVIL, style="red"))
    say(f"one {EVIL}\ntwo")
    console.print(table)
    errors.print(EVIL, markup=False)
    with job_bar(EVIL, 1.0), Live(table, console=console):
        pass
    lines = printed(capsys).splitlines()
    assert lines[:2] == ["one ?]0;title?[2J?31mok", "two"]
    assert all(line.isprintable() for line in lines)


def test_an_error_of_a_verb_prints_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ValueError(EVIL)

    monkeypatch.setattr(app, "app", fail)
    with pytest.raises(SystemExit):
        app.main()
    assert printed(capsys).rstrip("\n").isprintable()


def test_the_command_has_no_other_console() -> None:
    others = re.compile(r"\bConsole\(|(?<![.\w])print\(")
    files = [path for path in Path(app.__file__).parent.rglob("*.py") if others.search(path.read_text())]
    assert files == []
