# SPDX-License-Identifier: Apache-2.0
"""Output of the lab's verbs: progress bars, files of figures."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import yaml
from rich import progress as bars
from rich.status import Status

from adahi_ros.cli.terminal import command_line, console, say
from adahi_ros.core.written_files import replacing


def progress() -> bars.Progress:
    """Return a progress bar, which shows itself only on a terminal."""
    return bars.Progress(
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
        bars.TextColumn("{task.fields[note]}"),
        console=console,
        transient=True,
    )


@contextmanager
def episode_bars(names: Sequence[str], episodes: int) -> Iterator[Callable[[str, int], None]]:
    """Show a bar per method; yield a function of the method's name and the episodes run since."""
    with progress() as bar:
        jobs = {name: bar.add_task(f"{name}: episodes", total=episodes, note="") for name in names}
        yield lambda name, count: bar.advance(jobs[name], count)


@contextmanager
def job_bar(title: str, total: float) -> Iterator[Callable[..., None]]:
    """Show a bar for one job; yield a function that moves it, by `advance` or `completed`, with a `note`."""
    with progress() as bar:
        yield partial(bar.update, bar.add_task(title, total=total, note=""))


@contextmanager
def fit_bar(title: str, steps: int) -> Iterator[Callable[[int, float], None]]:
    """Show a fit; yield a function of the step number and the loss."""
    with job_bar(title, steps) as update:
        yield lambda step, loss: update(completed=step, note=f"loss {loss:.4g}")


def planned(status: Status) -> Callable[[int], None]:
    """Return a function that shows how many steps of bags a target has planned for."""
    done = 0

    def more(steps: int) -> None:
        nonlocal done
        done += steps
        status.update(f"asking the target: {done} steps planned for")

    return more


def write_json(path: Path | None, value: Mapping[str, object]) -> None:
    """Write figures to the file that the user named."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=2) + "\n")
        say(f"figures: {path}")


def write_yaml(path: Path, document: Mapping[str, object], width: int = 80) -> None:
    """Write a YAML file that names the command that wrote it; an older file is replaced atomically."""
    with replacing(path) as partial:
        text = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=width)
        partial.write_text(f"# Written by: {command_line()}\n{text}")


def own_name() -> str:
    """Return the command's name, or its path where it is not on PATH."""
    started = Path(sys.argv[0])
    return str(started) if started.name == "adahi" and not shutil.which("adahi") else "adahi"
