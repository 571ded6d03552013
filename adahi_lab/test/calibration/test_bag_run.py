from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adahi_lab.calibration.bag_run import BagRun, Push, bag_run_figures, read_run, step_record
from adahi_lab.evaluation.run_metrics import run_figures
from adahi_lab.evaluation.run_record import RunRecord
from adahi_lab.reporting.observed import read_observed
from adahi_lab.reporting.run_holds import in_words
from adahi_lab.reporting.run_verdict import verdict
from adahi_ros.bags.definitions import BagError
from adahi_ros.protocol.records import Reason, StepRecord
from adahi_ros.safety.intervention import Intervention
from test.bags import conftest as toy

STEPS = 40


def records(step_record: Callable[..., StepRecord]) -> list[StepRecord]:
    """Two episodes: every second step sent, one of four of those without a reply."""
    made = []
    for row in range(STEPS):
        sent, late = row % 2 == 0, row % 8 == 0
        made.append(
            step_record(
                stamp_ns=10**12 + row * 50_000_000,
                episode=row // 20,
                step=row % 20,
                deviation=float(np.float32(0.1 * row)) if row % 20 else float("inf"),
                transmitted=sent,
                verified=sent and not late,
                accepted=(row % 3 == 0, True) if sent and not late else (),
                reason=Reason.DEADLINE if late else Reason.NONE,
                total_ms=float(1 + row),
            )
        )
    return made


def link(stamp_ns: int, rtt_ms: float) -> Any:
    return toy.make(
        toy.KINDS["link_state"], header=toy.header(stamp_ns), rtt_ms=rtt_ms, loss=0.25, misses=0.5
    )


@pytest.fixture
def run_bag(step_record: Callable[..., StepRecord], in_bag: Callable[..., Path]) -> Path:
    lines, at = [], 0
    for record in records(step_record):
        at = record.stamp_ns + 2_000_000
        lines.append(toy.Line("draft_status", toy.status(record), at))
    lines += [
        toy.Line("link_state", link(at, float("nan")), at + 1),
        toy.Line("link_state", link(at + 1_000_000_000, 4.0), at + 2),
        toy.Line("safety_state", toy.safety(at, [3, 0, 1, 0, 0, 0, 0, 0]), at + 3),
        toy.Line("safety_state", toy.safety(at, [5, 0, 1, 0, 0, 0, 0, 0]), at + 4),
        toy.Line("safety_state", toy.safety(at, [1, 0, 0, 0, 0, 2, 0, 0]), at + 5),  # activated again
        toy.Line("episode_result", toy.result(at, 0, success=True), at + 6),
        toy.Line("episode_result", toy.result(at, 1, success=False), at + 7),
    ]
    return in_bag(lines)


def test_the_steps_come_back(run_bag: Path, step_record: Callable[..., StepRecord]) -> None:
    run = read_run(run_bag)
    expected = [
        replace(each, draft_ms=float(np.float32(each.draft_ms)), target_compute_ms=float(np.float32(0.2)))
        for each in records(step_record)
    ]
    assert list(run.steps) == expected
    assert run.times_s[0] == 0.0
    assert np.allclose(np.diff(run.times_s), 0.05)
    assert [each.success for each in run.episodes] == [True, False]


def test_a_step_is_read_as_the_node_reads_its_own(step_record: Callable[..., StepRecord]) -> None:
    pytest.importorskip("rclpy")
    from adahi_ros.nodes.common.messages import from_status, to_status

    for record in records(step_record):
        message = to_status(record)
        assert step_of(message, Path("bag"), 0) == from_status(message)


step_of = step_record  # the fixture of that name hides the function


def test_figures_are_those_of_the_same_run_over_dds(run_bag: Path) -> None:
    run = read_run(run_bag)
    found = bag_run_figures(run)
    same = run_figures(RunRecord(run.steps, run.episodes), rate_hz=20.0)
    assert found["transmission_rate"] == same["transmission_rate"] == 0.5
    assert found["acceptance_rate"] == same["acceptance_rate"]
    assert found["total_ms"] == same["per_action_latency_ms"]
    assert found["verify_ms"] == same["verify_rtt_ms"]
    assert found["fallbacks"] == {"deadline": same["fallbacks"]}
    assert (found["successes"], found["judged_episodes"]) == (1, 2)
    assert found["reply_rate"] == 0.75
    assert found["interventions"] == {"position": 6, "acceleration": 1, "stale": 2}
    assert (found["link_rtt_ms"]["mean"], found["link_loss"]) == (4.0, 0.25)
    json.dumps(found, allow_nan=False)


def test_a_bag_says_why_the_arm_was_held(
    step_record: Callable[..., StepRecord], in_bag: Callable[..., Path]
) -> None:
    lines = [toy.Line("draft_status", toy.status(each), each.stamp_ns) for each in records(step_record)]
    for at_ns, kinds in ((10**12 + 300_000_000, [Intervention.UNVERIFIED]), (10**12 + 1_500_000_000, [])):
        lines.append(toy.Line("link_state", link(at_ns - 1, 4.0), at_ns - 1))  # of no verifier
        state = {"holding": bool(kinds), "interventions": np.array(kinds, np.uint8)}
        message = toy.make(toy.KINDS["safety_state"], header=toy.header(at_ns), **state)
        lines.append(toy.Line("safety_state", message, at_ns))
    bag = in_bag(lines)
    why = "The arm was held for 1.2 s from 0.3 s on: no reply of the target (no verifier). "
    assert in_words(read_observed(bag, read_run(bag), None).held) == why


def test_a_run_of_a_bag_that_was_cut_off_says_so(run_bag: Path) -> None:
    whole = read_run(run_bag)
    (file,) = run_bag.glob("*.mcap")
    content = file.read_bytes()
    file.write_bytes(content[: content.index(b"robot", len(content) // 3)])
    losses: list[str] = []
    run = read_run(run_bag, on_loss=losses.append)
    assert run.steps == whole.steps[: len(run.steps)]
    assert 0 < len(run.steps) < len(whole.steps)
    figures = bag_run_figures(run)
    assert [figures["cut_off"]] == losses
    assert bag_run_figures(whole)["cut_off"] is None
    assert f"cut off or damaged: {file.name}: no whole record" in figures["cut_off"]


def pushed(make: Callable[..., StepRecord], requested: bool) -> list[toy.Line]:
    """Return ten steps of a robot with an intent; notices before them, at step 4, and for other robots."""
    lines = [toy.Line("/server/assignments", toy.assignments(1, robot=1), 10**12 - 5)]
    for row in range(10):
        record = make(
            stamp_ns=10**12 + row * 50_000_000,
            step=row,
            transmitted=row == 0 or (requested and row == 5),
            verified=False,
            accepted=(),
            total_ms=2.0,
            proposer="intent",
            plan_age=row,
            plan_left=400 - row,
        )
        lines.append(toy.Line("draft_status", toy.status(record), record.stamp_ns + 2_000_000))
    at = 10**12 + 4 * 50_000_000 + 10_000_000
    notices = [toy.assignments(2, robot=2), toy.assignments(2, robot=2), toy.assignments(3, robot=2, leg=3)]
    lines += [toy.Line("/server/assignments", each, at + 1000 * n) for n, each in enumerate(notices)]
    return sorted(lines, key=lambda line: line.received_ns)


@pytest.mark.parametrize("requested", [True, False])
def test_pushes_and_the_age_of_intents_are_reported(
    step_record: Callable[..., StepRecord], in_bag: Callable[..., Path], requested: bool
) -> None:
    kinds = {**toy.KINDS, "/server/assignments": toy.KINDS["assignments"]}
    run = read_run(in_bag(pushed(step_record, requested), kinds=kinds))
    assert run.pushes == (Push(0.21, 2, requested),)
    found = bag_run_figures(run)
    assert (found["pushes"], found["pushes_with_request"]) == (1, int(requested))
    assert (found["plan"]["kind"], found["plan"]["age"]["p50"]) == ("intent", 4.5)
    checks = {each.what: each for each in verdict(run, found, 0, 0.05)}
    assert checks["age of the intent, p95"].value == "9 control steps, 0.4 s"
    assert checks["pushes: changed assignments"].value == f"1, with a request within two steps {requested:d}"
    assert checks["pushes: changed assignments"].healthy is requested


def test_a_step_that_waited_sends_its_request_again_for_a_push(
    step_record: Callable[..., StepRecord], in_bag: Callable[..., Path]
) -> None:
    lines = []
    for row in range(3):
        record = step_record(stamp_ns=10**12 + row * 50_000_000, transmitted=row == 0, total_ms=40.0)
        lines.append(toy.Line("draft_status", toy.status(record), record.stamp_ns + 40_000_000))
    lines.append(toy.Line("assignments", toy.assignments(1, robot=1), 10**12 + 30_000_000))
    (push,) = read_run(in_bag(sorted(lines, key=lambda line: line.received_ns))).pushes
    assert push.requested


def test_a_run_by_plans_is_reported_with_them(
    step_record: Callable[..., StepRecord], in_bag: Callable[..., Path], tmp_path: Path
) -> None:
    """A request at every fourth step; the first plan is there from the fifth on, corrected by (3, 4)."""
    lines = []
    for row in range(STEPS):
        planned = row >= 4
        plan = {"plan_age": row % 4 + 1, "plan_left": 8, "planned_action": (1.0, 1.0), "expected_error": 0.5}
        record = step_record(
            stamp_ns=10**12 + row * 50_000_000,
            step=row,
            proposer="corrector",
            transmitted=row % 4 == 0,
            verified=row % 4 == 1 and planned,
            accepted=(),
            reason=Reason.NONE if planned else Reason.NO_PLAN,
            draft_action=(4.0, 5.0) if planned else (),
            requests_pending=row % 2,
            **(plan if planned else {}),
        )
        lines.append(toy.Line("draft_status", toy.status(record), record.stamp_ns))
    run = read_run(in_bag(lines))
    found = bag_run_figures(run)
    plan = found["plan"]
    assert found["acceptance_rate"] is None  # replies without codes
    assert (plan["proposer"], plan["share"], plan["without_plan"]) == ("corrector", 0.9, 4)
    assert (plan["age"]["p50"], plan["age"]["p95"], plan["expected_error"]["p95"]) == (2.5, 4.0, 0.5)
    assert plan["correction"]["mean"] == pytest.approx((25 / 2) ** 0.5)
    assert plan["requests_pending"]["mean"] == 0.5
    json.dumps(found, allow_nan=False)


def test_where_some_replies_have_codes_those_are_counted(step_record: Callable[..., StepRecord]) -> None:
    steps = tuple(step_record(step=row, accepted=codes) for row, codes in enumerate(((), (True,), (False,))))
    assert bag_run_figures(BagRun(steps, np.arange(3.0), (), (), {}))["acceptance_rate"] == 0.5


def test_a_bag_without_a_draft_policy_is_named(bag: Path) -> None:
    with pytest.raises(BagError, match="/draft_status: no such topic, expected adahi_msgs/msg/DraftStatus"):
        read_run(bag)


def test_an_unknown_reason_is_named(
    step_record: Callable[..., StepRecord], in_bag: Callable[..., Path]
) -> None:
    message = replace(toy.status(step_record()), reason=99)
    with pytest.raises(BagError, match="draft_status: step 0, 99 is not a valid Reason"):
        read_run(in_bag([toy.Line("draft_status", message, 5)]))
