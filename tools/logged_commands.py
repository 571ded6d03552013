# SPDX-License-Identifier: Apache-2.0
"""Commands of the set-up: their output is in a log, and a terminal shows how long they have been running."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path


class SetUpError(Exception):
    """The set-up cannot continue; the message has the reason, and a remedy."""


def run_logged(
    log_file: Path, command: Sequence[str | Path], environment: dict[str, str], title: str
) -> None:
    """Run a command into the log, with the time so far shown on a terminal.

    Raises:
        SetUpError: the command failed; the message holds the end of the log.
    """
    words = [str(word) for word in command]
    started = time.monotonic()
    with log_file.open("a") as log:
        print("\n$", *words, file=log, flush=True)
        process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
        try:
            while process.poll() is None:
                show_progress(log_file, title, time.monotonic() - started)
                try:
                    process.wait(timeout=0.5)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    if process.returncode != 0:
        raise SetUpError(
            "\n".join(["this failed:", *last_lines(log_file, 25), f"(all of it is in {log_file})"])
        )


def last_lines(log_file: Path, count: int) -> list[str]:
    with log_file.open("rb") as log:
        log.seek(max(0, log_file.stat().st_size - 200 * count))
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", log.read().decode(errors="replace"))  # no colours
        return text.splitlines()[-count:]


def show_progress(log_file: Path, title: str, seconds: float) -> None:
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns - 1
        line = f"{title} ... {seconds:.0f} s  {''.join(last_lines(log_file, 1)).strip()}"
        print(f"\r\033[K{line[:width]}", end="", flush=True)
