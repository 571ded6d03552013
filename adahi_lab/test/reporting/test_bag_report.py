"""The page of `adahi report BAG`: its figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adahi_lab.calibration.bag_run import BagRun, Push
from adahi_lab.evaluation.run_record import EpisodeRecord
from adahi_lab.reporting.bag_report import reported, write_bag_report
from adahi_lab.reporting.observed import Frame, Observed
from adahi_lab.reporting.run_holds import Held, held, in_words
from adahi_lab.reporting.run_timeline import columns_of, marks_of, requests_of
from adahi_lab.reporting.run_verdict import Check, in_a_sentence, verdict, without_command
from adahi_ros.protocol.records import Reason, StepRecord
from adahi_ros.safety.intervention import Intervention

PERIOD_S = 0.05
STEPS = 40
LARGEST_BYTES = 5_000_000
READY = 1  # of LinkState.verifier
Make = Callable[..., StepRecord]


def run_of(steps: Sequence[StepRecord], episodes: Sequence[EpisodeRecord] = ()) -> BagRun:
    times_s = (np.array([step.stamp_ns for step in steps]) - steps[0].stamp_ns) / 1e9
    return BagRun(tuple(steps), times_s, tuple(episodes), (), {})


def observed_of(
    run: BagRun, frames: Sequence[Frame] = (), marks: Sequence[tuple[float, str]] = ()
) -> Observed:
    measured = np.full((len(run.steps), 2), 0.5)
    return Observed(("shoulder", "elbow"), measured, tuple(frames), tuple(marks))


@pytest.fixture
def ahead(step_record: Make) -> BagRun:
    """A robot that executes plans: it requests at every eighth step, each reply is there two steps later."""
    steps = []
    for row in range(STEPS):
        replied = row % 8 == 2
        steps.append(
            step_record(
                stamp_ns=10**12 + round(row * PERIOD_S * 1e9),
                episode=row // 20,
                step=row % 20,
                transmitted=row % 8 == 0,
                verified=replied,
                accepted=(),
                reason=Reason.NO_PLAN if row < 2 else Reason.NONE,
                reason_counts=(row + 1,),
                draft_ms=1.0,
                verify_ms=90.0 if replied else 0.0,
                planned_action=() if row < 2 else (1.0, 2.0),
                plan_age=-1 if row < 2 else row % 8,
                requests_pending=int(row % 8 < 2),
                action=(1.0, float(row)),
            )
        )
    return run_of(steps, [EpisodeRecord(0, 20, True), EpisodeRecord(1, 20, False)])


def test_a_reply_belongs_to_the_request_sent_before_it(ahead: BagRun) -> None:
    found = requests_of(ahead)
    assert [each.sent_s for each in found] == pytest.approx([0.001 + 0.4 * n for n in range(5)])
    assert all(each.replied for each in found)
    assert [each.end_s - each.sent_s for each in found] == pytest.approx([0.09] * 5)


def test_a_request_that_a_later_reply_overtakes_got_none(ahead: BagRun) -> None:
    steps = [
        step if row != 2 else type(step)(**{**vars(step), "verified": False})
        for row, step in enumerate(ahead.steps)
    ]
    found = requests_of(run_of(steps))
    assert [each.replied for each in found] == [False, True, True, True, True]


def test_a_robot_that_waits_has_the_reply_in_its_step(step_record: Make) -> None:
    steps = [
        step_record(stamp_ns=10**9 * row, transmitted=True, verified=row == 0, verify_ms=7.0, draft_ms=0.0)
        for row in range(2)
    ]
    first, second = requests_of(run_of(steps))
    assert (first.replied, first.end_s) == (True, pytest.approx(0.007))
    assert (second.replied, second.down_bytes) == (False, 0)


def test_marks_name_fallbacks_once_and_not_the_start(ahead: BagRun) -> None:
    assert marks_of(ahead, observed_of(ahead, marks=[(0.5, "velocity")])) == [
        (0.5, "safety: velocity"),
    ]


def test_who_drove_is_on_the_page(ahead: BagRun, tmp_path: Path) -> None:
    from adahi_lab.calibration.bag_run import bag_run_figures

    by_person: dict[str, Any] = {"reason": Reason.PERSON, "action": ()}
    steps = [replace(step, **by_person) if 10 <= row < 14 else step for row, step in enumerate(ahead.steps)]
    run = replace(ahead, steps=tuple(steps))
    assert (0.5, "takeover: a person drives for 0.2 s") in marks_of(run, observed_of(run))
    figures = bag_run_figures(run)
    assert (figures["person_steps"], figures["takeovers"], figures["fallbacks"]) == (4, 1, {})
    checks = {each.what: each for each in verdict(run, figures, 0, PERIOD_S)}
    assert checks["steps that a person drove"].value == "10.0 %, in 1 takeovers"
    assert checks["control periods without a command"].healthy
    path = tmp_path / "page.html"
    write_bag_report(reported("run", run, observed_of(run)), "runs", "adahi report run", path, {})
    assert "takeover: a person drives" in path.read_text()


def test_a_sentence_says_what_matters_most(ahead: BagRun) -> None:
    healthy, bad = Check("steps", "40"), Check("safety interventions", "3", False)
    quick = replace(ahead, steps=tuple(replace(step, verify_ms=1.0) for step in ahead.steps))
    late: dict[str, Any] = {"verify_ms": 1900.0, "verified": True}
    slow = replace(ahead, steps=tuple(replace(step, **late) for step in ahead.steps))
    assert in_a_sentence(quick, [healthy], PERIOD_S).startswith("All is well")
    assert in_a_sentence(quick, [healthy, bad], PERIOD_S) == "Look at: safety interventions (3)."
    said = in_a_sentence(slow, [bad], PERIOD_S)
    assert said.startswith(
        "The server is too slow for this plan: a reply takes 1.9 s, and half of a plan is "
    )


def test_the_longest_hold_is_named_first_with_its_cause() -> None:
    def state(at_s: float, kind: Intervention | None = None, said: str = "", link: int = READY) -> Held:
        kinds = [] if kind is None else [kind]
        message = SimpleNamespace(holding=bool(kinds), stopped=False, interventions=kinds, message=said)
        return held(at_s, message, link)

    silent, wrong = Intervention.UNVERIFIED, Intervention.MEASURED
    run = [state(-0.1, Intervention.DISABLED, "at rest: disabled: press enable afresh"), state(2.0)]
    run += [state(8.3, silent), state(9.3, silent, link=0), state(24.7)]
    assert in_words(run) == (
        "The arm was held for 16.4 s from 8.3 s on: no reply of the target (no verifier); "
        "for 2.0 s from 0.0 s on: not enabled. "
    )
    run += [state(30.0, wrong, "at rest: measured: pan was at 18; press enable afresh"), state(60.0)]
    run += [state(70.0, wrong), state(71.0), state(80.0, silent), state(80.4, Intervention.DEACTIVATED)]
    assert in_words(run).startswith(
        "The arm was held 2 times, for 31.0 s from 30.0 s on: wrong measurement (pan was at 18); for 16.4 s "
    )


def test_counts_of_the_verdict_are_those_that_are_drawn(ahead: BagRun) -> None:
    from adahi_lab.calibration.bag_run import bag_run_figures

    cut: dict[str, Any] = {"verified": False, "verify_ms": 0.0}
    alone: dict[str, Any] = {"reason": Reason.NO_PLAN, "planned_action": (), "plan_age": -1}
    steps = [replace(step, **cut) if 8 <= row < 24 else step for row, step in enumerate(ahead.steps)]
    steps = [replace(step, **alone) if 14 <= row < 18 else step for row, step in enumerate(steps)]
    run = run_of(steps)
    checks = {each.what: each for each in verdict(run, bag_run_figures(run), 0, PERIOD_S)}
    assert checks["steps that fell back"].value == "4 of 40, 10.0 %: 4 no plan"
    assert checks["requests without a reply"].value == "2 of 5, 40.0 %"
    assert [each.replied for each in requests_of(run)] == [True, False, False, True, True]
    assert marks_of(run, observed_of(run)) == [(pytest.approx(0.7), "fallback: no plan, 4 steps")]
    said = in_a_sentence(run, list(checks.values()), PERIOD_S)
    assert said.startswith(
        "The server did not reply once, for up to 0.9 s, first at 0.4 s: the link was cut, "
    )


def test_units_are_those_that_the_contract_says() -> None:
    from adahi_lab.reporting.observed import _units
    from adahi_ros.contract.parsing import load_contract

    assert list(_units(load_contract("franka_panda"))) == ["rad or m"] * 8
    assert list(_units(load_contract("so101"))) == [*["degrees"] * 5, "the policy's unit"]


def test_words_of_a_recording_are_no_part_of_the_page(ahead: BagRun, tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>'\"\n--><b>"
    steps = [replace(step, proposer=evil, gate=evil, robot_id=evil, message=evil) for step in ahead.steps]
    run = replace(ahead, steps=tuple(steps))
    frames = [Frame(0.1, evil, "abc")]
    observed = Observed((evil, "elbow"), np.full((STEPS, 2), 0.5), tuple(frames), ((0.5, evil),))
    path = tmp_path / "page.html"
    write_bag_report(reported(evil, run, observed), evil, evil, path, {evil: evil})
    tags: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append(tag)

    Tags().feed(path.read_text())
    assert tags.count("img") == 1  # the camera's
    assert tags.count("b") == 0
    plain = tmp_path / "plain.html"
    write_bag_report(reported("run", ahead, observed_of(ahead)), "runs", "adahi report run", plain, {})
    assert tags.count("script") == plain.read_text().count("</script>")


def test_pushes_are_marked_and_stay_with_their_activation(ahead: BagRun) -> None:
    pushes = Push(0.4, 2, True), Push(1.0, 0, False)
    assert marks_of(replace(ahead, pushes=pushes), observed_of(ahead)) == [
        (0.4, "push: assignment 2"),
        (1.0, "push: no assignment, no request"),
    ]
    later = [replace(step, stamp_ns=step.stamp_ns + 10**10) for step in ahead.steps]
    both = replace(run_of([*ahead.steps, *later]), pushes=(Push(0.4, 2, True), Push(10.5, 3, True)))
    first, second = reported("two", both, observed_of(both))
    assert first.run.pushes == (Push(0.4, 2, True),)
    assert second.run.pushes == (Push(10.5 - float(both.times_s[STEPS]), 3, True),)


def test_a_run_by_intents_is_named_so_on_its_page(ahead: BagRun, tmp_path: Path) -> None:
    run = replace(ahead, steps=tuple(replace(step, proposer="intent") for step in ahead.steps))
    run = replace(run, pushes=(Push(0.4, 2, True),))
    path = tmp_path / "page.html"
    write_bag_report(reported("intents", run, observed_of(run)), "runs", "adahi report intents", path, {})
    html = path.read_text()
    for shown in ("age of the intent", "<summary>Intents</summary>", "had an intent", "push: assignment 2"):
        assert shown in html
    assert "age of the plan" not in html


def test_entries_of_actions_are_columns_with_gaps(ahead: BagRun) -> None:
    data = columns_of(ahead, observed_of(ahead))
    assert np.isnan(data["planned_1"][:2]).all()
    assert (data["planned_1"][2:] == 2.0).all()
    assert (data["commanded_1"] == np.arange(STEPS)).all()
    assert (data["measured_0"] == 0.5).all()


def test_a_missing_step_is_a_period_without_a_command(ahead: BagRun) -> None:
    assert without_command(ahead, PERIOD_S) == 0.0
    steps = [step for row, step in enumerate(ahead.steps) if row not in (5, 6)]
    assert without_command(run_of(steps), PERIOD_S) == pytest.approx(2 / STEPS)


def test_each_activation_is_a_run_of_its_own(ahead: BagRun) -> None:
    steps = [*ahead.steps, *(type(s)(**{**vars(s), "stamp_ns": s.stamp_ns + 10**10}) for s in ahead.steps)]
    run = run_of(steps)
    first, second = reported("two", run, observed_of(run, marks=[(0.5, "step"), (10.5, "velocity")]))
    assert (first.name, second.name) == ("two, activation 1", "two, activation 2")
    assert len(first.run.steps) == len(second.run.steps) == STEPS
    assert second.run.times_s[0] == 0.0
    assert [kind for _, kind in second.observed.marks] == ["velocity"]


@pytest.fixture
def page(ahead: BagRun, tmp_path: Path) -> Path:
    frames = [Frame(0.0, "front", "AAAA"), Frame(1.0, "front", "BBBB")]
    runs = [
        *reported("one", ahead, observed_of(ahead, frames, [(0.5, "velocity")])),
        *reported("<two>", ahead, observed_of(ahead)),
    ]
    path = tmp_path / "new" / "page.html"
    write_bag_report(runs, "runs", "adahi report one two", path, {"contract": "robot_type: <toy>"})
    return path


def test_a_page_needs_no_other_file_and_no_network(page: Path) -> None:
    html = page.read_text()
    assert len(html) < LARGEST_BYTES
    assert not re.findall(r"""<(?:script|img|link)[^>]*\b(?:src|href)=["']?(?!data:)[^"'> ]+""", html)
    for shown in (
        "adahi report one two",
        "1 of 2",
        "&lt;two&gt;",
        "robot_type: &lt;toy&gt;",
        "safety: velocity",
    ):
        assert shown in html


def test_a_run_of_hours_makes_no_larger_page(step_record: Make, tmp_path: Path) -> None:
    common = {"transmitted": True, "planned_action": (1.0, 2.0), "action": (1.0, 2.0), "plan_age": 1}
    steps = [
        step_record(stamp_ns=row * 50_000_000, episode=row // 50, reason_counts=(row,), **common)
        for row in range(3 * 12_000)
    ]
    run = run_of(steps)
    path = tmp_path / "long.html"
    write_bag_report(reported("long", run, observed_of(run)), "runs", "adahi report long", path, {})
    html = path.read_text()
    assert len(html) < LARGEST_BYTES
    assert "one of 3 steps" in html
    assert "Episodes: 720, the first 500" in html
