from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from adahi_lab.reporting.live_view import SHOWN_STEPS, LiveView, score_bar, verdict
from adahi_ros.protocol.records import Reason, StepRecord

Make = Callable[..., StepRecord]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "sent, accepted"),
        ({"accepted": (True, False)}, "sent, 1 of 2 codes resampled"),
        ({"accepted": (False, False, False)}, "sent, 3 of 3 codes resampled"),
        ({"transmitted": False, "verified": False, "accepted": ()}, "skipped, draft executed"),
        ({"verified": False, "accepted": (), "reason": Reason.DEADLINE}, "fallback: deadline"),
        ({"transmitted": False, "accepted": (), "reason": Reason.NO_VERIFIER}, "fallback: no verifier"),
    ],
)
def test_a_verdict_says_what_became_of_the_draft(
    step_record: Make, changes: dict[str, Any], words: str
) -> None:
    assert verdict(step_record(**changes)).plain == words


@pytest.mark.parametrize(
    ("score", "threshold"), [(float("inf"), 0.5), (float("-inf"), 0.5), (float("nan"), 0.5), (1.0, 0.0)]
)
def test_what_cannot_be_compared_has_no_bar(score: float, threshold: float) -> None:
    assert set(score_bar(score, threshold).plain) == {"·"}


def shown(view: LiveView, console: Console) -> str:
    with console.capture() as capture:
        console.print(view._render())
    return capture.get()


def test_the_newest_steps_are_shown_and_all_are_counted(step_record: Make) -> None:
    console = Console(file=io.StringIO(), width=120)
    with LiveView(console, "adahi", 2) as view:
        assert "ADAHI: robot, draft and verifier are starting" in shown(view, console)
        view.show(step_record(deviation=float("inf"), score=float("inf")))
        assert "inf" in shown(view, console)
        for step in range(1, 40):
            view.show(step_record(episode=1, step=step, transmitted=False, verified=False, accepted=()))
        text = shown(view, console)
    assert "episode 2 of 2" in text
    assert "transmitted 2% of 40 steps" in text
    assert text.count("skipped, draft executed") == SHOWN_STEPS
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]  # no terminal: nothing moves


def test_every_figure_is_whole_in_a_terminal_of_80_columns(step_record: Make) -> None:
    console = Console(file=io.StringIO(), width=80)
    with LiveView(console, "adahi", 20) as view:
        view.show(step_record(step=1000, deviation=12.34, accepted=(False,) * 12, total_ms=1000.0))
        lines = shown(view, console).splitlines()
    assert len(lines) == 4
    assert "episode 1 of 20   transmitted 100% of 1 steps" in lines[1]
    assert lines[2].split() == ["step", "deviation", "score", "against", "threshold", "verdict", "ms"]
    assert lines[3].split()[:2] == ["1000", "12.34"]
    assert "sent, 12 of 12 codes resampled" in lines[3]
    assert lines[3].rstrip().endswith("1000.0")


def test_a_terminal_sees_it_and_is_left_clean(step_record: Make) -> None:
    console = Console(file=io.StringIO(), width=120, height=40, force_terminal=True)
    with LiveView(console, "random", 1) as view:
        view.show(step_record())
        view._live.refresh()
    assert "sent, accepted" in console.file.getvalue()  # type: ignore[attr-defined]
