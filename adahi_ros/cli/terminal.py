# SPDX-License-Identifier: Apache-2.0
"""How the command talks: lines, progress bars, files of figures."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.status import Status

console = Console()


def progress() -> Progress:
    """Return a progress bar, which shows itself only on a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        transient=True,
    )


def episode_bars(bar: Progress, names: Sequence[str], episodes: int) -> Callable[[str, int], None]:
    """Add a bar per method; return what moves them on."""
    jobs = {name: bar.add_task(f"{name}: episodes", total=episodes, note="") for name in names}
    return lambda name, count: bar.advance(jobs[name], count)


def planned(status: Status) -> Callable[[int], None]:
    """Return what shows how many steps of bags a target has planned for."""
    done = 0

    def more(steps: int) -> None:
        nonlocal done
        done += steps
        status.update(f"asking the target: {done} steps planned for")

    return more


def say(line: str) -> None:
    """Print a line as it is, whatever brackets its paths have and however long they are."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def write_json(path: Path | None, value: dict[str, Any]) -> None:
    """Write figures where the user asked for them."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=2) + "\n")
        say(f"figures: {path}")


def own_name() -> str:
    """Return how the command can be started again: its path where it is not on PATH."""
    started = Path(sys.argv[0])
    return str(started) if started.name == "adahi" and not shutil.which("adahi") else "adahi"


def command_line() -> str:
    """Return what the user typed, for files that say where they came from."""
    return shlex.join(["adahi", *sys.argv[1:]])
