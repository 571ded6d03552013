"""Tables of results on research pages are files that name command, date and commit."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from adahi_lab.methods.methods import for_task, parse_methods
from adahi_ros.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
RESEARCH = ROOT / "docs/research"
TABLES = sorted((RESEARCH / "tables").glob("*.md"))
PAGES = sorted(page for page in RESEARCH.rglob("*.md") if page.parent.name != "tables")
TABLE = re.compile(r"(?:^\|.*\n?)+", re.MULTILINE)
HEADER = re.compile(
    r"(?:- Command: `(?P<command>[^`]+)`\n|- Note: .+\n)+"
    r"- Date: 20\d\d-\d\d-\d\d\n"
    r"- Commit: `[0-9a-f]{7,}`(?:, the first with these figures|, with changes)?\n\n"
)
ADAHI = typer.main.get_command(app)
PLACES = {
    "TASK": "ball",
    "METHODS": "adahi",
    "METHOD": "adahi",
    "RATE": "0.1",
    "N": "4",
    "PART": "replica",
    "libero_goal": "kitchen",  # the scene of LIBERO need not be converted here
    "ogbench_puzzle": "kitchen",  # OGBench need not be installed
}
"""What stands in a command for several, and one of them."""
PRINTS = """
from rich.console import Console
from rich.table import Table
table = Table("task", "suc-\\ncess", title="two episodes", caption="in process")
table.add_row("[bold]ball[/]", "0.95")
Console().print(table)
"""


def of_figures(table: str) -> bool:
    """Return whether half of the cells beside the first column begin with a digit."""
    cells = [each.strip() for row in table.splitlines()[2:] for each in row.strip("| ").split("|")[1:]]
    figures = [each for each in cells if re.match(r"[-*]*[.\d]", each)]
    return bool(cells) and len(figures) * 2 >= len(cells)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_no_table_of_figures_of_its_own(page: Path) -> None:
    assert [table for table in TABLE.findall(page.read_text()) if of_figures(table)] == []


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_a_table_names_commands_that_exist_date_and_commit(path: Path) -> None:
    text = path.read_text()
    found = HEADER.match(text)
    assert found is not None, text[:200]
    assert TABLE.match(text, text.index("|", found.end()))
    reference = (ROOT / "docs/reference/command.md").read_text()
    commands = re.findall(r"^- Command: `([^`]+)`$", text, re.MULTILINE)
    assert commands
    for command in commands:
        if program := re.search(r"python (benchmarks/\w+\.py)|python -m ([\w.]+)", command):
            code = program[1] or f"{program[2].replace('.', '/')}.py"
            assert any((ROOT / folder / code).is_file() for folder in ("", "adahi_lab")), command
        else:
            words = command.partition("adahi ")[2].split()
            assert any(f"| `adahi {' '.join(words[:count])}` |" in reference for count in (1, 2, 3)), command


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_a_table_names_options_and_methods_that_exist(path: Path) -> None:
    for text in re.findall(r"^- Command: `adahi ([^`]+)`$", path.read_text(), re.MULTILINE):
        words = shlex.split(re.sub(rf"\b({'|'.join(PLACES)})\b", lambda found: PLACES[found[0]], text))
        command: Any = ADAHI
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        parsed = command.make_context("adahi", words).params  # raises where an option is missing or unknown
        named = parsed.get("methods") or []
        if named:
            listed = ",".join([named] if isinstance(named, str) else named)
            parse_methods(for_task(listed, "ball", Path("checkpoints/ball")), own=True)


def test_every_table_is_on_a_page() -> None:
    link = re.compile(r"^\[[^\]]+\]\((?:\.\./)?tables/([\w-]+)\.md\)$", re.MULTILINE)
    linked = {name for page in PAGES for name in link.findall(page.read_text())}
    assert linked == {path.stem for path in TABLES}


def test_the_tool_writes_what_a_command_prints(tmp_path: Path) -> None:
    program, written = tmp_path / "prints.py", tmp_path / "table.md"
    program.write_text(PRINTS)
    command = [sys.executable, "tools/table_file.py", str(written), str(program), "--episodes", "2"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    text = written.read_text()
    assert HEADER.match(text)
    assert f"`python {program} --episodes 2`" in text
    assert text.endswith("**two episodes**\n\n| task | success |\n|---|---|\n| ball | 0.95 |\n\nin process\n")
