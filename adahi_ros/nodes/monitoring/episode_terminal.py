# SPDX-License-Identifier: Apache-2.0
"""The terminal of a person who records episodes: keys, lines, and a status below them."""

from __future__ import annotations

import codecs
import os
import select
import sys
import termios
import tty

from rich.console import Console
from rich.live import Live
from rich.text import Text

from adahi_ros.core.texts import printable


class EpisodeTerminal:
    """Reads single keys, and writes as a node's logger does. `close` restores the terminal."""

    def __init__(self) -> None:
        self._input = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._input)
        self._text = codecs.getincrementaldecoder("utf-8")("replace")
        tty.setcbreak(self._input)
        self._live = Live(console=Console(), auto_refresh=False, transient=True)
        self._live.start()

    @staticmethod
    def usable() -> bool:
        """Whether this process is in the foreground of a terminal."""
        both = sys.stdin.isatty() and sys.stdout.isatty()
        return both and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()

    def keys(self) -> str:
        """Return what was typed since the last call."""
        if not select.select([self._input], [], [], 0)[0]:
            return ""
        return self._text.decode(os.read(self._input, 1024))

    def show(self, *lines: str) -> None:
        """Replace the status."""
        self._live.update(Text("\n".join(map(printable, lines))), refresh=True)

    def info(self, line: str) -> None:
        """Write nothing: the status shows it."""

    def warning(self, line: str) -> None:
        """Write a line."""
        self._live.console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

    error = warning

    def close(self) -> None:
        """Restore the terminal."""
        self._live.stop()
        termios.tcsetattr(self._input, termios.TCSADRAIN, self._before)
