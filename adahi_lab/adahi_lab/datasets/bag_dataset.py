# SPDX-License-Identifier: Apache-2.0
"""Training data from bags: observations as the robot's node makes them, and the actions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from adahi_lab.datasets.alignment import aligned
from adahi_lab.datasets.dataset_counts import DatasetCounts
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.datasets.unrecorded_goals import OnMeasured, WholeActions
from adahi_ros.bags.bag_reader import OnLoss, Received, read_bag
from adahi_ros.bags.definitions import BagError
from adahi_ros.bags.recorded_topics import EPISODE_RESULT, INSTRUCTION, Kinds, topics_of
from adahi_ros.bags.survey import BagPass, too_slow, usual_rate_hz
from adahi_ros.contract.assembler import EPISODE_GAP_S, Encode, Observation, ObservationAssembler
from adahi_ros.contract.contract import Contract
from adahi_ros.contract.fields import NANOSECONDS, InputError, stamp_ns
from adahi_ros.contract.parsing import contract_path
from adahi_ros.core.assets import ENCODERS, named
from adahi_ros.core.texts import INSTRUCTION_LENGTH
from adahi_ros.vision.encoder import Encoder
from adahi_ros.vision.images import as_sent

TRAJECTORIES, SUMMARY, PICTURE, CONTRACT = (
    "trajectories.safetensors",
    "dataset.json",
    "dataset.png",
    "contract.yaml",
)
MOST_NAMED = 20  # bags that cannot be used
OnBag = Callable[[Path], None]


@dataclass(frozen=True)
class BagDataset:
    """Contents of bags for a contract.

    Attributes:
        trajectories: T steps in E episodes; their task is the contract's robot type.
        stamps_ns: (T,) int64, of the samples that started the steps.
        places: (T, 2) int64, bag of each step, and index of its observation in the bag, both from 0.
        instructions: T, of each step; empty if not requested.
        intervals_s: by topic, from each message to the next.
        summary: counts of used and left-out data, as in `dataset.json`.
    """

    trajectories: Trajectories
    stamps_ns: np.ndarray
    places: np.ndarray
    instructions: tuple[str, ...]
    intervals_s: dict[str, np.ndarray]
    summary: dict[str, Any]

    def save(self, folder: Path, contract: str, command: str) -> None:
        """Write tensors, summary and a copy of the contract into a folder.

        Args:
            folder: to write.
            contract: as `load_contract` takes it.
            command: that made this, as a note.
        """
        folder.mkdir(parents=True, exist_ok=True)
        text = contract_path(contract).read_bytes()
        digest = hashlib.sha256(text).hexdigest()[:16]
        self.trajectories.save(folder / TRAJECTORIES)
        (folder / CONTRACT).write_bytes(text)
        summary = {"command": command, "contract": {"name": contract, "sha256": digest}, **self.summary}
        (folder / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n")


def encoder_of(contract: Contract) -> Encode | None:
    """Return the encoder of the contract's images; None without cameras, or without an encoder.

    Raises:
        ValueError: there is no such encoder, it is damaged, or takes images of another size.
        FileNotFoundError: none of this name is shipped.
    """
    if not contract.encoder:
        return None
    encoder = Encoder.load(named(contract.encoder, ENCODERS))
    contract.check_image_size(encoder.image_size)
    if contract.images_for_target:  # the verifier gets no others
        return lambda images: encoder.encode(as_sent(images))
    return encoder.encode


def read_dataset(
    paths: Sequence[Path],
    contract: Contract,
    namespace: str = "",
    keep_failures: bool = False,
    on_bag: OnBag = lambda path: None,
    on_loss: OnLoss | None = None,
    instruction: str | None = None,
    on_measured: OnMeasured | None = None,
) -> BagDataset:
    """Read bags, one after the other, as a robot's node does.

    Args:
        paths: of the bags; an episode never continues in the next one.
        contract: defines observations and actions.
        namespace: of the robot.
        keep_failures: keep episodes that the topic `episode_result` marks as failed.
        on_bag: called with each bag before it is read.
        on_loss: if given, bags that were cut off are read, too; see `read_bag`.
        instruction: the target's instruction until the bag's topic `instruction` has one. Steps without an
            instruction are left out, and an episode ends where the instruction changes. None for a target
            without instructions.
        on_measured: if given, measured positions replace the goals of ROS actions, which bags cannot contain;
            called with a warning that names them.

    Raises:
        BagError: bags cannot be used, or have steps slower than the contract's rate, or no step in any bag
            has an action. Or a part of the action is a ROS action, and nothing replaces its goals.
    """
    whole = WholeActions(contract, on_measured)
    encode = encoder_of(contract)
    totals = DatasetCounts()
    episodes: list[list[_RecordedStep]] = []
    bag_of: list[int] = []

    def lost(loss: str) -> None:
        totals.loss = loss
        if on_loss is not None:
            on_loss(loss)

    losses = None if on_loss is None else lost
    unusable: list[str] = []
    for bag, path in enumerate(paths):
        on_bag(path)
        passed = _DatasetPass(contract, encode, totals, instruction)
        extras = beside(instruction is not None)
        try:
            for received in read_bag(path, topics_of(contract), extras, namespace, losses):
                passed.take(received)
        except BagError as error:  # of hundreds of bags all that cannot be used are named at once
            unusable.append(str(error))
            continue
        found = passed.episodes(whole, keep_failures)
        here_ns = [step.observation.stamp_ns for episode in found for step in episode]
        if slow := too_slow(usual_rate_hz(np.array(here_ns)), contract):
            unusable.append(f"{path}: {slow} with an action")
        steps_here = sum(map(len, found))
        totals.end_of_bag(path, namespace, steps_here)
        episodes += found
        bag_of += [bag] * steps_here
    if unusable:
        more = f"; and {len(unusable) - MOST_NAMED} more bags" if len(unusable) > MOST_NAMED else ""
        raise BagError("; ".join(unusable[:MOST_NAMED]) + more)
    if not episodes:
        names = ", ".join(map(str, paths))
        raise BagError(
            f"{names}: no step has an observation and an action, expected at least one ({totals.why()})"
        )
    steps = [step for episode in episodes for step in episode]
    trajectories = Trajectories(
        contract.robot_type,
        np.stack([step.observation.values for step in steps]),
        np.stack([step.action for step in steps]).astype(np.float32),
        np.stack([episode[0].observation.goal for episode in episodes]),
        np.cumsum([len(episode) for episode in episodes]),
        np.stack([step.observation.image_features for step in steps]),
    )
    stamps_ns = np.array([step.observation.stamp_ns for step in steps], dtype=np.int64)
    places = np.stack([np.array(bag_of), np.array([step.number for step in steps])], axis=1)
    instructions = () if instruction is None else tuple(step.instruction for step in steps)
    intervals_s = {topic: np.array(each) / NANOSECONDS for topic, each in totals.intervals_ns.items()}
    summary = totals.summary(contract, trajectories)
    return BagDataset(trajectories, stamps_ns, places, instructions, intervals_s, summary)


def observations_of(
    path: Path, contract: Contract, namespace: str, instructed: bool
) -> Iterator[Observation]:
    """Yield the observations of a bag with their images, numbered as in `BagDataset.places`.

    Raises:
        BagError: it is no longer readable.
    """
    assembler = ObservationAssembler(contract, None if contract.images_for_target else encoder_of(contract))
    # The dataset has already reported or refused a truncated bag.
    for received in read_bag(path, topics_of(contract), beside(instructed), namespace, lambda loss: None):
        if received.topic in contract.channels:
            try:
                observation = assembler.add(received.topic, received.message, received.received_ns)
            except InputError:
                continue  # the dataset has counted it
            if observation is not None:
                yield observation


def beside(instructed: bool) -> Kinds:
    """Return optional topics of a bag, beside those of the contract."""
    return {**EPISODE_RESULT, **INSTRUCTION} if instructed else EPISODE_RESULT


@dataclass(frozen=True)
class _RecordedStep:
    observation: Observation
    action: np.ndarray
    number: int
    instruction: str


@dataclass(frozen=True)
class _Result:
    """A result that was reported for an episode, and the number of observations before it."""

    received_at: int
    number: int
    stamp_ns: int
    success: bool


class _DatasetPass(BagPass):
    """One bag with its instructions and results; `instruction` is None for a target without instructions."""

    def __init__(
        self, contract: Contract, encode: Encode | None, totals: DatasetCounts, instruction: str | None
    ) -> None:
        super().__init__(contract, encode, totals)
        self._totals = totals
        self._instructed = instruction is not None
        self._instruction = instruction or ""
        self._instructions: list[str] = []  # one per observation
        self._results: list[_Result] = []

    def take(self, received: Received) -> None:
        """See `BagPass`."""
        super().take(received)
        self._totals.message(received)
        self._instructions += [self._instruction] * (len(self.observations) - len(self._instructions))
        topic, message = received.topic, received.message
        if topic in INSTRUCTION and len(message.data) <= INSTRUCTION_LENGTH:  # as the robot's node does
            self._instruction = message.data
        if topic in EPISODE_RESULT and self.observations:
            # A robot that counts its episodes itself has other numbers than the result's publisher.
            counted = self._contract.episode is not None
            number = int(message.episode_id) if counted else self.observations[-1].episode
            at_ns = stamp_ns(message.header.stamp) or received.received_ns
            self._results.append(_Result(len(self.observations), number, at_ns, bool(message.success)))

    def episodes(self, whole: WholeActions, keep_failures: bool) -> list[list[_RecordedStep]]:
        """Return the episodes of the bag, without those left out; `whole` completes their actions."""
        chosen = self._chosen()
        failed = self._failed()
        if not keep_failures:
            self._totals.counts["failed_episodes"] += sum(bool(failed[rows.start]) for rows in self._runs())
        episodes: list[list[_RecordedStep]] = []
        last: Observation | None = None
        has_action, previous = True, ""
        for index, observation in enumerate(self.observations):
            repeated = last is not None and observation.key == last.key
            self._totals.counts["repeated_steps"] += repeated
            if repeated and has_action:
                continue
            instruction = self._instructions[index]
            if not repeated:
                self._totals.counts["steps_without_action"] += not has_action
                if last is None or self._ends(last, observation):
                    episodes.append([])
                elif instruction != previous:
                    self._totals.counts["instruction_changes"] += 1
                    episodes.append([])
            previous = instruction
            last, has_action = observation, bool((chosen[index] >= 0).all())
            if failed[index] and not keep_failures:
                has_action = True  # none is looked for
            elif self._instructed and not instruction.strip():
                self._totals.counts["untold_steps"] += 1
                has_action = True
            elif has_action:
                parts = zip(self.actions, chosen[index], strict=True)
                action = whole.action_from([of[row][1] for of, row in parts], observation)
                episodes[-1].append(_RecordedStep(observation, action, index, instruction))
        self._totals.counts["steps_without_action"] += not has_action
        return [episode for episode in episodes if episode]

    def _chosen(self) -> np.ndarray:
        """Return the index of each sink's action for each observation: (T, sinks), -1 for none."""
        stamps = np.array([each.stamp_ns for each in self.observations], dtype=np.int64)
        columns = []
        for (source, _), taken in zip(self._acted, self.actions, strict=True):
            taken.sort(key=lambda each: each[0])
            times = np.array([stamp for stamp, _ in taken], dtype=np.int64)
            columns.append(aligned(times, stamps, source.align))
        return np.stack(columns, axis=1)

    def _ends(self, last: Observation, following: Observation) -> bool:
        """Whether an episode ends between two observations; counts the reasons, and missing samples."""
        counts = self._totals.counts
        new_number = following.episode != last.episode
        if new_number and self._contract.episode is not None:
            return True
        since_s = (following.stamp_ns - last.stamp_ns) / NANOSECONDS
        reasons = {
            "jumps_back": since_s < 0 or (following.step < last.step and not new_number),
            "gaps": since_s > max(EPISODE_GAP_S, 5 * self._contract.period_s),
            "goal_changes": not np.array_equal(following.goal, last.goal),
        }
        reason = next((name for name, so in reasons.items() if so), None)
        if reason is not None:
            counts[reason] += 1
        elif not new_number:
            counts["missing_steps"] += following.step - last.step - 1
        return new_number or reason is not None

    def _failed(self) -> np.ndarray:
        """Return, for each observation, whether its episode failed: (T,) bool."""
        failed = np.zeros(len(self.observations), dtype=bool)
        runs = self._runs()
        judged: set[int] = set()
        for result in self._results:
            # Use the newest of the last two episodes with this number, since a slow recorder gets results
            # early or late. A restarted robot repeats its numbers: its result for a second episode 0, which
            # is not in the bag, must not count for the first.
            started = [rows for rows in runs if rows.start < result.received_at][-2:]
            mine = [
                rows
                for rows in started
                if self.observations[rows.start].episode == result.number
                and self.observations[rows.start].stamp_ns <= result.stamp_ns
            ]
            if mine and mine[-1].start not in judged:
                judged.add(mine[-1].start)
                failed[mine[-1]] = not result.success
            else:
                self._totals.counts["results_of_no_episode"] += 1
        return failed

    def _runs(self) -> list[slice]:
        """Return the rows of each episode, as the robot counts them."""
        starts = [
            row
            for row, now in enumerate(self.observations)
            if row == 0 or self._begins(self.observations[row - 1], now)
        ]
        return [slice(*ends) for ends in pairwise([*starts, len(self.observations)])]

    @staticmethod
    def _begins(last: Observation, now: Observation) -> bool:
        """Whether the robot started an episode, or was itself restarted, between two observations."""
        return now.episode != last.episode or now.step < last.step or now.stamp_ns < last.stamp_ns
