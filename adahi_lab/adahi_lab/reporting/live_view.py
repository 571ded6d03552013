# SPDX-License-Identifier: Apache-2.0
"""Live view of a run over DDS in the terminal."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from adahi_lab.methods.methods import METHODS
from adahi_ros.protocol.records import StepRecord

SHOWN_STEPS = 12
BAR_WIDTH = 22  # with it, a line has 80 columns
REFRESH_HZ = 8


def verdict(step: StepRecord) -> Text:
    """Describe the result of a draft."""
    if step.reason:
        return Text(f"fallback: {step.reason.name.lower().replace('_', ' ')}", style="bold red")
    if not step.transmitted:
        return Text("skipped, draft executed", style="cyan")
    kept = sum(step.accepted)
    if kept == len(step.accepted):
        return Text("sent, accepted", style="green")
    return Text(f"sent, {len(step.accepted) - kept} of {len(step.accepted)} codes resampled", style="yellow")


def score_bar(score: float, threshold: float) -> Text:
    """Draw a score as a bar with the threshold in its middle."""
    if threshold <= 0.0 or not 0.0 <= score < float("inf"):
        return Text("·" * BAR_WIDTH, style="dim")
    middle = BAR_WIDTH // 2
    filled = min(BAR_WIDTH, round(middle * score / threshold))
    bar = Text("█" * filled + " " * (BAR_WIDTH - filled), style="yellow" if score > threshold else "cyan")
    return Text.assemble(bar[:middle], ("│", "bold"), bar[middle:])


class LiveView:
    """Shows the newest steps of one method's run. Use as a context manager.

    Args:
        console: where to show it; updates need a terminal.
        method: a key of `METHODS`.
        episodes: how many there will be.
    """

    def __init__(self, console: Console, method: str, episodes: int) -> None:
        self._method = METHODS[method]
        self._episodes = episodes
        self._steps: tuple[StepRecord, ...] = ()  # replaced, never changed: another thread draws it
        self._seen: set[int] = set()
        self._transmitted = 0
        self._count = 0
        self._live = Live(
            console=console, get_renderable=self._render, refresh_per_second=REFRESH_HZ, transient=True
        )

    def __enter__(self) -> LiveView:
        if self._live.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def show(self, step: StepRecord) -> None:
        """Add the newest step."""
        self._steps = (*self._steps, step)[-SHOWN_STEPS:]
        self._seen.add(step.episode)
        self._transmitted += step.transmitted
        self._count += 1

    def _render(self) -> RenderableType:
        if not self._steps:
            return Text(f"{self._method.label}: robot, draft and verifier are starting")
        table = Table(box=None, pad_edge=False)
        table.add_column("step", justify="right")
        table.add_column("deviation", justify="right")
        table.add_column("score against threshold", width=BAR_WIDTH + 1)
        table.add_column("verdict", width=30)
        table.add_column("ms", justify="right")
        for step in self._steps:
            table.add_row(
                str(step.step),
                f"{step.deviation:.2f}",
                score_bar(step.score, step.threshold),
                verdict(step),
                f"{step.total_ms:.1f}",
            )
        head = Text.assemble(
            (self._method.label, "bold"),
            f"  {self._method.about}\nepisode {len(self._seen)} of {self._episodes}"
            f"   transmitted {self._transmitted / self._count:.0%} of {self._count} steps",
        )
        return Group(head, table)
