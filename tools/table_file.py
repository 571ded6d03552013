# SPDX-License-Identifier: Apache-2.0
"""Run a command and write the tables that it prints to docs/research/tables/NAME.md, which a page links to.

python tools/table_file.py NAME adahi evaluate ball --episodes 100
python tools/table_file.py NAME benchmarks/clients.py --episodes 20
python tools/table_file.py NAME -m adahi_lab.papers.ROOM.table TASK FOLDER

The file begins with command, date and commit. `FOLDER/NAME.md` instead of NAME is a file elsewhere.
"""

from __future__ import annotations

import datetime
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rich.console import Console
from rich.table import Table
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
TABLES = ROOT / "docs/research/tables"
MEASURED = ("adahi_ros", "adahi_lab", "adahi_msgs", "benchmarks", "checkpoints", "config")


@contextmanager
def printed_tables() -> Iterator[list[Table]]:
    """Yield a list that receives every table that any console prints."""
    tables: list[Table] = []
    printing = Console.print

    def record(console: Console, *objects: Any, **options: Any) -> None:
        tables.extend(each for each in objects if isinstance(each, Table))
        printing(console, *objects, **options)

    with patch.object(Console, "print", record):
        yield tables


def run(words: Sequence[str]) -> list[Table]:
    """Run `adahi VERB ...`, `FILE.py ...` or `-m MODULE ...` here, and return the tables that it prints.

    Raises:
        SystemExit: the command failed; has its exit status.
    """
    before = sys.argv
    sys.argv = list(words[words[0] == "-m" :])
    with printed_tables() as tables:
        try:
            if words[0] == "adahi":
                runpy.run_module("adahi_ros", run_name="__main__")
            elif words[0] == "-m":
                runpy.run_module(words[1], run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(words[0], run_name="__main__")
        except SystemExit as ended:
            if ended.code:
                raise
        finally:
            sys.argv = before
    return tables


def cell(value: Any) -> str:
    """Return a cell as one line of text; a word that was divided for a narrow column is joined again."""
    text = value if isinstance(value, Text) else Text.from_markup(str(value))
    return text.plain.replace("-\n", "").replace("/\n", "/").replace("\n", " ").replace("|", "\\|")


def markdown(table: Table) -> str:
    """Return a table with its title and caption."""
    rows = [[column.header for column in table.columns]] if table.show_header else [[""] * len(table.columns)]
    rows += [list(row) for row in zip(*(column.cells for column in table.columns), strict=True)]
    first, *others = (f"| {' | '.join(map(cell, row))} |" for row in rows)
    rule = "|" + "|".join("---:" if each.justify == "right" else "---" for each in table.columns) + "|"
    title, caption = (cell(each) if each else "" for each in (table.title, table.caption))
    parts = [f"**{title}**" if title else "", "\n".join([first, rule, *others]), caption]
    return "\n\n".join(filter(None, parts)) + "\n"


def header(commands: Sequence[str], date: str, commit: str) -> str:
    """Return the lines that say which commands gave the figures, when, and from which commit."""
    lines = [*(f"Command: `{each}`" for each in commands), f"Date: {date}", f"Commit: {commit}"]
    return "".join(f"- {line}\n" for line in lines)


def this_commit() -> str:
    """Return the abbreviated commit, and whether what is measured differs from it."""
    name = _git("rev-parse", "--short", "HEAD")
    return f"`{name}`" + (", with changes" if _git("status", "--porcelain", "--", *MEASURED) else "")


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def main(arguments: Sequence[str]) -> None:
    """Write the file of the first argument from the command that the others are.

    Raises:
        SystemExit: an argument is missing, the command failed, or it printed no table.
    """
    if len(arguments) < 2:
        sys.exit(__doc__)
    name, *words = arguments
    commit = this_commit()  # before hours of work, in which it may change
    tables = run(words)
    if not tables:
        sys.exit(f"{shlex.join(words)}: printed no table")
    path = Path(name) if name.endswith(".md") else TABLES / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    command = shlex.join(words if words[0] == "adahi" else ["python", *words])
    about = header([command], datetime.date.today().isoformat(), commit)
    path.write_text("\n".join([about, *map(markdown, tables)]))


if __name__ == "__main__":
    main(sys.argv[1:])
