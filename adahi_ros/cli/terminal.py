# SPDX-License-Identifier: Apache-2.0
"""Output of the command: lines, progress bars, files of figures."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from adahi_ros.core.texts import printable


class PlainConsole(Console):
    """A console that shows control characters as ?: words of messages and files command no terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See `Console`; its own control sequences stay."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else "\n".join(map(printable, text.split("\n"))), style, control)


console = PlainConsole()
errors = PlainConsole(stderr=True)


def say(line: str) -> None:
    """Print a line without markup and without wrapping."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def warn(line: str) -> None:
    """Print a fault that does not end the command."""
    errors.print(f"adahi: {line}", markup=False, highlight=False, soft_wrap=True)


def command_line() -> str:
    """Return the typed command line, for files that record their origin."""
    return shlex.join(["adahi", *sys.argv[1:]])
