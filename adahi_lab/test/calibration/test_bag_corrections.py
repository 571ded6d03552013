"""What is read back of a run is what was asked and came back, and what is not sure is left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adahi_lab.calibration.bag_corrections import driven_steps, read_corrections
from adahi_lab.datasets.bag_dataset import read_dataset
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training.step_dataset import window_indices
from adahi_ros.bags.definitions import BagError
from adahi_ros.contract.contract import Contract
from adahi_ros.core.assets import asset
from adahi_ros.core.signature import Signature
from adahi_ros.policies.backends import load_policy
from adahi_ros.protocol.records import Reason, StepRecord
from test.bags import conftest as toy

LENGTH = 3  # H
EVERY = 4  # steps from one request to the next
FURTHEST = 1e3  # that an action of a draft can be


def sound(actions: np.ndarray) -> np.ndarray:
    given: np.ndarray = np.abs(actions).max(axis=(1, 2)) <= FURTHEST
    return given


@pytest.fixture(scope="module")
def signature(checkpoints: Path) -> Signature:
    return load_policy(checkpoints / "draft", "torch").signature


@pytest.fixture(scope="module")
def run(demonstrations: Callable[[int], Trajectories]) -> Trajectories:
    return demonstrations(2).episodes([0, 1])


@pytest.fixture(scope="module")
def steps(run: Trajectories, step_record: Callable[..., StepRecord]) -> list[StepRecord]:
    """Every fourth step asked; of these every other draft is rejected in its first code."""
    made = []
    for episode, (start, end) in enumerate(run.spans()):
        for row in range(start, end):
            requested = (row - start) % EVERY == 0
            kept = (row - start) % (2 * EVERY) == 0
            made.append(
                step_record(
                    stamp_ns=toy.START_NS + (row + 1) * toy.PERIOD_NS,
                    episode=episode,
                    step=row - start,
                    transmitted=requested,
                    verified=requested,
                    accepted=(kept, True) if requested else (),
                    draft_action=tuple(map(float, np.float32(row) + np.array([0.25, 0.5], np.float32))),
                    action=tuple(map(float, run.actions[row])),
                )
            )
    return made


@pytest.fixture(scope="module")
def written(run: Trajectories, in_bag: Callable[..., Path]) -> Callable[[list[StepRecord], list[Any]], Path]:
    """From steps and further lines to a bag of the run with these, in the order of their coming."""

    def write(steps: list[StepRecord], more: list[Any]) -> Path:
        given = [
            toy.Line("draft_status", toy.status(each), each.stamp_ns + toy.LATE_NS + 10) for each in steps
        ]
        lines = [*toy.recorded(run), *given, *more]
        return in_bag(sorted(lines, key=lambda line: line.received_ns))

    return write


def changed(steps: list[StepRecord], row: int, **values: Any) -> list[StepRecord]:
    return [replace(each, **values) if number == row else each for number, each in enumerate(steps)]


def test_what_was_requested_and_came_back_is_read(
    run: Trajectories, steps: list[StepRecord], written: Any, contract: Contract, signature: Signature
) -> None:
    found = read_corrections([written(steps, [])], contract, signature, sound)
    rows = [row for row, step in enumerate(steps) if step.verified]
    assert len(found) == len(rows) == 16
    assert not found.left_out
    np.testing.assert_array_equal(found.windows, run.observations[window_indices(run, LENGTH)[rows]])
    np.testing.assert_array_equal(found.goals, np.repeat(run.goals, 8, axis=0))
    np.testing.assert_array_equal(found.replied, run.actions[rows])
    drafted = np.array(rows, np.float32)[:, None] + np.array([0.25, 0.5], np.float32)
    np.testing.assert_array_equal(found.drafted, drafted)
    np.testing.assert_array_equal(found.accepted[:, 0], np.arange(16) % 2 == 0)
    assert found.acceptance == 0.5


def test_a_policy_that_receives_no_goal_learns_without(
    steps: list[StepRecord],
    written: Any,
    contract: Contract,
    make_checkpoints: Callable[..., Path],
) -> None:
    untold = load_policy(make_checkpoints(goal_dim=0) / "draft", "torch").signature
    assert read_corrections([written(steps, [])], contract, untold, sound).goals.shape == (16, 0)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"requests_pending": 1}, "ahead"),
        ({"transmitted": False}, "ahead"),
        ({"plan_age": 2}, "ahead"),
        ({"accepted": ()}, "other_codes"),
        ({"action": ()}, "nothing_executed"),
        ({"action": (1e30, 0.0)}, "out_of_range"),
    ],
)
def test_what_is_no_reply_to_its_step_is_left_out_and_counted(
    steps: list[StepRecord],
    written: Any,
    contract: Contract,
    signature: Signature,
    values: dict[str, Any],
    why: str,
) -> None:
    found = read_corrections([written(changed(steps, 8, **values), [])], contract, signature, sound)
    assert found.left_out == {why: 1}
    assert len(found) == 15


def test_steps_that_the_node_did_not_make_break_the_windows_over_them(
    steps: list[StepRecord], written: Any, contract: Contract, signature: Signature
) -> None:
    found = read_corrections([written([*steps[:6], *steps[7:]], [])], contract, signature, sound)
    assert found.left_out == {"broken_window": 1}  # that of step 8, which reads 6


def test_a_bag_that_begins_late_lacks_what_came_before(
    run: Trajectories, steps: list[StepRecord], written: Any, contract: Contract, signature: Signature
) -> None:
    later = [step for step in steps if step.episode]
    late = [*later[:1], *later[2:]]
    late[0] = changed(late, 0, step=1)[0]  # the node counts a step that the bag does not have
    found = read_corrections([written(late, [])], contract, signature, sound)
    assert found.left_out == {"broken_window": 1}
    assert len(found) == 7


def test_a_node_started_within_an_episode_has_not_read_what_the_bag_has(
    steps: list[StepRecord], written: Any, contract: Contract, signature: Signature
) -> None:
    episode = [replace(step, step=step.step - EVERY) for step in steps[EVERY:] if not step.episode]
    found = read_corrections([written(episode, [])], contract, signature, sound)
    assert found.left_out == {"broken_window": 1}  # its first, of which the bag has two observations more


@pytest.mark.parametrize("given", [5, 20])  # before the status of step 8, and after it
def test_what_the_envelope_may_have_changed_is_left_out(
    steps: list[StepRecord], written: Any, contract: Contract, signature: Signature, given: int
) -> None:
    at = steps[8].stamp_ns + toy.LATE_NS
    states = [
        toy.Line("safety_state", toy.safety(at, [1, *[0] * 7]), at + offset)
        for offset in (given, 2 * EVERY * toy.PERIOD_NS)  # and again, when nothing is new
    ]
    found = read_corrections([written(steps, states)], contract, signature, sound)
    assert found.left_out == {"intervened": 1}


def test_steps_without_observation_are_counted(
    steps: list[StepRecord], written: Any, contract: Contract, signature: Signature
) -> None:
    moved = changed(steps, 8, stamp_ns=steps[8].stamp_ns + 1)
    found = read_corrections([written(moved, [])], contract, signature, sound)
    assert found.left_out == {"unobserved": 1}


def test_a_bag_without_status_is_refused(bag: Path, contract: Contract, signature: Signature) -> None:
    with pytest.raises(BagError, match="draft_status"):
        read_corrections([bag], contract, signature, sound)


def test_a_draft_of_other_sizes_is_refused(steps: list[StepRecord], written: Any, contract: Contract) -> None:
    of_kitchen = load_policy(asset("checkpoints/kitchen") / "draft", "onnxruntime").signature
    with pytest.raises(ValueError, match="observation: the contract's has 6 entries"):
        read_corrections([written(steps, [])], contract, of_kitchen, sound)


def test_a_draft_of_another_tokenizer_is_refused(
    steps: list[StepRecord], written: Any, contract: Contract, make_checkpoints: Callable[..., Path]
) -> None:
    other = load_policy(make_checkpoints(codebooks=1) / "draft", "torch").signature
    with pytest.raises(BagError, match="without an answer to each of the draft's codes"):
        read_corrections([written(steps, [])], contract, other, sound)


def test_a_persons_actions_are_corrections_also_of_plans(
    run: Trajectories, steps: list[StepRecord], written: Any, contract: Contract, signature: Signature
) -> None:
    by_person: dict[str, Any] = {
        "reason": Reason.PERSON,
        "transmitted": False,
        "verified": False,
        "accepted": (),
    }
    driven = [
        replace(each, **by_person, requests_pending=1, action=each.action if row != 9 else ())
        if 5 <= row < 10
        else replace(each, verified=False)
        for row, each in enumerate(steps)
    ]
    path = written(driven, [])
    found = read_corrections([path], contract, signature, sound)
    assert found.person.tolist() == [True] * 4  # the fifth executed nothing
    np.testing.assert_array_equal(found.replied, run.actions[5:9])
    assert not found.accepted.any()
    assert found.acceptance is None
    dataset = read_dataset([path], contract, keep_failures=True)
    rows, said = driven_steps([path], dataset)
    assert (np.flatnonzero(rows).tolist(), said) == ([5, 6, 7, 8], True)
    without = read_dataset([written([], [])], contract, keep_failures=True)
    rows, said = driven_steps([written([], [])], without)
    assert (rows.any(), said) == (False, False)
