# SPDX-License-Identifier: Apache-2.0
"""Corrections from bags of runs: the steps for which both the draft's input and the reply are certain.

No extra recording is needed. `draft_status` has the drafted, accepted and commanded action of each step; the
topics of the contract have the observations. The commanded action equals the reply only if the robot waits
for replies and the safety envelope did not change it. Uncertain steps are left out and counted.

A person's action is the commanded one, whatever the robot's wait policy is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from adahi_lab.calibration.bag_run import step_record
from adahi_lab.calibration.lerobot_recording import is_lerobot
from adahi_lab.calibration.replay import check_sizes
from adahi_lab.datasets.bag_dataset import BagDataset, read_dataset
from adahi_lab.datasets.lerobot_dataset import INFO, INTERVENTION, read_columns, read_info
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training.policy_corrections import Corrections
from adahi_ros.bags.bag_reader import OnLoss, read_bag
from adahi_ros.bags.definitions import BagError
from adahi_ros.bags.recorded_topics import BESIDE_A_RUN, DRAFT_STATUS
from adahi_ros.contract.contract import Contract
from adahi_ros.core.signature import Signature
from adahi_ros.protocol.records import StepRecord

WHY = {
    "ahead": "the wait policy is ahead: the reply is not of its step",
    "other_codes": "a reply without an answer to each of the draft's codes, as of a target that plans",
    "intervened": "the safety envelope may have changed what was commanded",
    "nothing_executed": "nothing was commanded",
    "out_of_range": "an action that the draft's codes come nowhere near to",
    "unobserved": "the bag has no observation of this step",
    "broken_window": "the bag lacks some of what the draft read",
}
"""Why a reply is left out."""

SAFETY_STATE = {"safety_state": BESIDE_A_RUN["safety_state"]}


@dataclass
class _Statuses:
    """The steps in a bag's `draft_status`, by the stamp of the observation.

    Attributes:
        steps: by stamp; the last of each.
        intervened: stamps of steps that the envelope may have changed.
    """

    steps: dict[int, StepRecord] = field(default_factory=dict)
    intervened: set[int] = field(default_factory=set)


def read_corrections(
    paths: Sequence[Path],
    contract: Contract,
    signature: Signature,
    sound: Callable[[np.ndarray], np.ndarray],
    namespace: str = "",
    on_loss: OnLoss | None = None,
) -> Corrections:
    """Read what a target corrected in runs of a robot, or a person; failures among them.

    Args:
        paths: of the bags.
        contract: defines observations and actions.
        signature: of the draft, which may be newer than that of the runs.
        sound: returns (B,) bool, which of the actions (B, 1, A) the draft's codes can express.
        namespace: of the robot.
        on_loss: see `read_bag`.

    Raises:
        BagError: a bag cannot be used, has no `draft_status`, or has neither a usable reply nor a person's.
        ValueError: the sizes of the robot in the bags differ from those of the draft.
    """
    dataset = read_dataset(paths, contract, namespace, keep_failures=True, on_loss=on_loss)
    run = dataset.trajectories
    check_sizes(signature, run)
    statuses = [_read_statuses(path, namespace, on_loss) for path in paths]
    if signature.goal_dim == 0:
        run = run.without_goals()
    rows = {
        (int(bag), int(stamp)): row
        for row, (bag, stamp) in enumerate(zip(dataset.places[:, 0], dataset.stamps_ns, strict=True))
    }
    steps: list[StepRecord | None] = [None] * len(run.observations)
    left_out: Counter[str] = Counter()
    for bag, status in enumerate(statuses):
        for stamp, record in status.steps.items():
            row = rows.get((bag, stamp))
            if row is not None:
                steps[row] = record
            elif record.verified:
                left_out["unobserved"] += 1
    codes = 0 if signature.codes is None else signature.codes.codebooks
    begins = _begins(run)
    drafted = np.zeros_like(run.actions)
    actions = run.actions.copy()
    accepted = np.zeros((len(steps), codes), dtype=bool)
    replies, person = np.zeros((2, len(steps)), dtype=bool)
    for row, step in enumerate(steps):
        if step is None or not (step.verified or _drives(step)):
            continue
        why = None
        if not _drives(step):
            why = _fault(step, codes, run.actions.shape[1])
            if step.stamp_ns in statuses[dataset.places[row, 0]].intervened:
                why = why or "intervened"
        if not _whole(steps, row, begins[row], signature.history):
            why = why or "broken_window"
        if why is not None:
            left_out[why] += 1
            continue
        replies[row], actions[row] = True, step.action
        person[row] = _drives(step)
        drafted[row] = step.draft_action or step.action  # a person may drive without a draft
        accepted[row] = False if person[row] else step.accepted
    strange = replies & ~sound(actions[:, None])
    if strange.any():
        left_out["out_of_range"] = int(strange.sum())
        replies &= ~strange
    if not replies.any():
        names = ", ".join(map(str, paths))
        because = "; ".join(f"{count}: {WHY[why]}" for why, count in sorted(left_out.items()))
        raise BagError(f"{names}: nothing that can be learned from ({because or 'none came'})")
    run = Trajectories(run.task, run.observations, actions, run.goals, run.ends)
    return Corrections.of_steps(run, replies, drafted, accepted, signature.history, dict(left_out), person)


def driven_steps(
    paths: Sequence[Path], dataset: BagDataset, namespace: str = "", on_loss: OnLoss | None = None
) -> tuple[np.ndarray, bool]:
    """Return which steps (T,) of a dataset a person drove, and whether any source says it.

    A bag says it by `draft_status`, a LeRobotDataset by `INTERVENTION`.

    Args:
        paths: of the dataset's sources, in its order.
        dataset: of these.
        namespace: of the robot in bags.
        on_loss: see `read_bag`.

    Raises:
        BagError: a bag cannot be used.
        ValueError: a LeRobotDataset is damaged.
    """
    driven, said = np.zeros(len(dataset.stamps_ns), dtype=bool), False
    for source, path in enumerate(paths):
        here = dataset.places[:, 0] == source
        if is_lerobot(path):
            if INTERVENTION in read_info(path / INFO)["features"]:
                rows = read_columns(path, {INTERVENTION: 1})[INTERVENTION][:, 0]
                driven[here], said = rows[dataset.places[here, 1]] > 0, True
            continue
        steps = _read_statuses(path, namespace, on_loss, required=False).steps
        stamps = [stamp for stamp, step in steps.items() if _drives(step)]
        driven |= here & np.isin(dataset.stamps_ns, stamps)
        said = said or bool(steps)
    return driven, said


def _drives(step: StepRecord) -> bool:
    """Whether a person's action was executed."""
    return step.by_person and bool(step.action) and bool(np.isfinite(step.action).all())


def _read_statuses(path: Path, namespace: str, on_loss: OnLoss | None, required: bool = True) -> _Statuses:
    """Read a bag's `draft_status`; with `required` it must have one.

    Envelope state and steps arrive on two topics, in any order. Where the counters rise between two steps,
    the envelope may have changed either.
    """
    statuses, risen, last = _Statuses(), False, None
    counts: tuple[int, ...] = ()
    quiet = None if on_loss is None else (lambda loss: None)  # the dataset has reported the loss
    topics = (DRAFT_STATUS, SAFETY_STATE) if required else ({}, {**DRAFT_STATUS, **SAFETY_STATE})
    for received in read_bag(path, *topics, namespace, quiet):
        if received.topic == "safety_state":
            now = tuple(map(int, received.message.counts))
            risen |= any(
                count > before for count, before in zip(now, counts or (0,) * len(now), strict=False)
            )
            counts = now
            if risen and last is not None:
                statuses.intervened.add(last)
            continue
        step = step_record(received.message, path, len(statuses.steps))
        last = step.stamp_ns
        statuses.steps[last] = step
        if risen:
            statuses.intervened.add(last)
        risen = False
    return statuses


def _fault(step: StepRecord, codes: int, action_dim: int) -> str | None:
    """Return why a step's reply is unusable, a key of `WHY`; None if it is usable."""
    if not step.transmitted or step.requests_pending or step.planned:
        return "ahead"
    drafted = len(step.draft_action) == action_dim and np.isfinite(step.draft_action).all()
    if len(step.accepted) != codes or not drafted:
        return "other_codes"
    if len(step.action) != action_dim or not np.isfinite(step.action).all():
        return "nothing_executed"
    return None


def _begins(run: Trajectories) -> np.ndarray:
    """Return of each step (T,) the row that its episode begins with."""
    return np.concatenate([np.full(end - start, start) for start, end in run.spans()])


def _whole(steps: Sequence[StepRecord | None], row: int, begin: int, length: int) -> bool:
    """Whether the robot's node read exactly a window of the recorded observations."""
    here = steps[row]
    assert here is not None
    if here.step < length - 1 and row - here.step != begin:
        return False
    for back in range(1, min(length - 1, here.step) + 1):
        before = steps[row - back] if row - back >= begin else None
        if before is None or (before.episode, before.step) != (here.episode, here.step - back):
            return False
    return True
