"""From bags to training data: observations as the robot's node would make them, and the actions beside."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from adahi_ros.assets import ENCODERS, named
from adahi_ros.bags.definitions import BagError
from adahi_ros.bags.reader import Received, read_bag
from adahi_ros.bags.topics import EPISODE_RESULT, absolute, topics_of
from adahi_ros.contract.assembler import EPISODE_GAP_S, Encode, Observation, ObservationAssembler
from adahi_ros.contract.contract import Alignment, Contract, Source
from adahi_ros.contract.fields import InputError
from adahi_ros.contract.parsing import contract_path
from adahi_ros.contract.times import NANOSECONDS, stamp_ns
from adahi_ros.trajectories import Trajectories
from adahi_ros.vision.encoder import Encoder

TRAJECTORIES, SUMMARY, PICTURE, CONTRACT = (
    "trajectories.safetensors",
    "dataset.json",
    "dataset.png",
    "contract.yaml",
)
PERCENTILES = (50, 95, 99)
OnBag = Callable[[Path], None]


@dataclass(frozen=True)
class BagDataset:
    """What bags hold for a contract.

    Attributes:
        trajectories: T steps in E episodes; their task is the contract's robot type.
        stamps_ns: (T,) int64, of the samples that made the steps.
        intervals_s: by topic, from each message to the next.
        summary: what was found and what was left out, as `dataset.json` has it.
    """

    trajectories: Trajectories
    stamps_ns: np.ndarray
    intervals_s: dict[str, np.ndarray]
    summary: dict[str, Any]

    def save(self, folder: Path, contract: str, command: str) -> None:
        """Write tensors, summary and a copy of the contract into a folder.

        Args:
            folder: to write.
            contract: what `load_contract` takes.
            command: that made this, for people.
        """
        folder.mkdir(parents=True, exist_ok=True)
        text = contract_path(contract).read_bytes()
        digest = hashlib.sha256(text).hexdigest()[:16]
        self.trajectories.save(folder / TRAJECTORIES)
        (folder / CONTRACT).write_bytes(text)
        summary = {"command": command, "contract": {"name": contract, "sha256": digest}, **self.summary}
        (folder / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n")


def encoder_of(contract: Contract) -> Encode | None:
    """Return what makes features of the contract's images; None without cameras.

    Raises:
        ValueError: there is no such encoder, or it is damaged.
        FileNotFoundError: none of this name is shipped.
    """
    if not contract.cameras:
        return None
    return Encoder.load(named(contract.encoder, ENCODERS)).encode


def read_dataset(
    paths: Sequence[Path],
    contract: Contract,
    namespace: str = "",
    keep_failures: bool = False,
    on_bag: OnBag = lambda path: None,
) -> BagDataset:
    """Read bags, one after the other, as a robot's node would have seen them.

    Args:
        paths: of the bags; an episode does not go on from one to the next.
        contract: what observations and actions are made of.
        namespace: of the robot.
        keep_failures: keep episodes that the topic `episode_result` says have failed.
        on_bag: told each bag before it is read.

    Raises:
        BagError: a bag cannot be used, or there is not one step with its action in all of them.
    """
    encode = encoder_of(contract)
    tally = _Tally()
    episodes: list[list[_Step]] = []
    for path in paths:
        on_bag(path)
        passed = _Pass(contract, encode, tally)
        for received in read_bag(path, topics_of(contract), EPISODE_RESULT, namespace):
            passed.take(received)
        tally.end_of_bag(path, namespace)
        episodes += passed.episodes(keep_failures)
    if not episodes:
        faults = "; ".join(tally.first_faults.values()) or dict(+tally.counts)
        names = ", ".join(map(str, paths))
        raise BagError(f"{names}: no step has an observation and an action, expected at least one ({faults})")
    steps = [step for episode in episodes for step in episode]
    trajectories = Trajectories(
        contract.robot_type,
        np.stack([step.observation.values for step in steps]),
        np.stack([step.action for step in steps]).astype(np.float32),
        np.stack([episode[0].observation.goal for episode in episodes]),
        np.cumsum([len(episode) for episode in episodes]),
    )
    stamps_ns = np.array([step.observation.stamp_ns for step in steps], dtype=np.int64)
    intervals_s = {topic: np.array(each) / NANOSECONDS for topic, each in tally.intervals_ns.items()}
    return BagDataset(trajectories, stamps_ns, intervals_s, tally.summary(contract, trajectories))


def aligned(times_ns: np.ndarray, stamps_ns: np.ndarray, align: Alignment) -> np.ndarray:
    """Return which sample goes with each time.

    Args:
        times_ns: (N,) of the samples, rising.
        stamps_ns: (T,).
        align: `asof` takes the nearest, `hold` and `drop` the newest that is not later.

    Returns:
        (T,) indices; -1 where none is within the tolerance.
    """
    if not len(times_ns):
        return np.full(len(stamps_ns), -1)
    before = np.searchsorted(times_ns, stamps_ns, side="right") - 1
    chosen = np.maximum(before, 0)
    if align.strategy == "asof":
        after = np.minimum(before + 1, len(times_ns) - 1)
        nearer = np.abs(times_ns[after] - stamps_ns) < np.abs(times_ns[chosen] - stamps_ns)
        chosen = np.where(nearer, after, chosen)
        near = np.abs(times_ns[chosen] - stamps_ns) <= round(align.tolerance_s * NANOSECONDS)
    else:
        age_ns = stamps_ns - times_ns[chosen]
        near = (age_ns >= 0) & (age_ns <= round(align.tolerance_s * NANOSECONDS))
    return np.where(near, chosen, -1)


@dataclass(frozen=True)
class _Step:
    observation: Observation
    action: np.ndarray


@dataclass
class _Tally:
    """What is counted over all bags."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    first_faults: dict[str, str] = field(default_factory=dict)
    bags: list[dict[str, Any]] = field(default_factory=list)
    messages: Counter[str] = field(default_factory=Counter)
    here: Counter[str] = field(default_factory=Counter)  # in this bag
    last_ns: dict[str, int] = field(default_factory=dict)
    intervals_ns: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    ages_ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def message(self, received: Received) -> None:
        topic, now_ns = received.topic, received.received_ns
        self.here[topic] += 1
        if topic in self.last_ns:
            self.intervals_ns[topic].append(now_ns - self.last_ns[topic])
        self.last_ns[topic] = now_ns
        header = getattr(received.message, "header", None)
        if header is not None:
            self.ages_ms[topic].append(1e-6 * (now_ns - stamp_ns(header.stamp)))

    def fault(self, error: InputError) -> None:
        self.faults[error.field] += 1
        self.first_faults.setdefault(error.field, str(error))

    def end_of_bag(self, path: Path, namespace: str) -> None:
        here = {absolute(topic, namespace): count for topic, count in self.here.items()}
        self.bags.append({"path": str(path), "messages": here})
        self.messages.update(self.here)
        self.here.clear()
        self.last_ns.clear()

    def summary(self, contract: Contract, trajectories: Trajectories) -> dict[str, Any]:
        names = ("failed_episodes", "steps_without_action", "repeated_steps", "missing_steps")
        ends = ("jumps_back", "gaps", "goal_changes")
        return {
            "robot_type": contract.robot_type,
            "bags": self.bags,
            "episodes": len(trajectories),
            "steps": len(trajectories.observations),
            "observation_dim": trajectories.observations.shape[1],
            "action_dim": trajectories.actions.shape[1],
            "goal_dim": trajectories.goals.shape[1],
            "left_out": {name: self.counts[name] for name in names},
            "episodes_ended_by": {name: self.counts[name] for name in ends},
            "topics": {topic: self._topic(topic) for topic in self.messages},
            "faults": {
                name: {"count": count, "first": self.first_faults[name]}
                for name, count in self.faults.items()
            },
        }

    def _topic(self, topic: str) -> dict[str, Any]:
        intervals_s = np.array(self.intervals_ns[topic]) / NANOSECONDS
        ages = self.ages_ms.get(topic)
        passed_s = float(intervals_s.sum())
        return {
            "messages": self.messages[topic],
            "rate_hz": round(len(intervals_s) / passed_s, 3) if passed_s else None,
            "largest_gap_s": round(float(intervals_s.max()), 4) if len(intervals_s) else None,
            "age_ms": None
            if not ages
            else {
                **{f"p{p}": round(float(np.percentile(ages, p)), 3) for p in PERCENTILES},
                "max": round(max(ages), 3),
            },
        }


class _Pass:
    """One bag, message by message."""

    def __init__(self, contract: Contract, encode: Encode | None, tally: _Tally) -> None:
        self._contract = contract
        self._tally = tally
        self._assembler = ObservationAssembler(contract, encode)
        self._action = contract.action.reader()
        self._observations: list[Observation] = []
        self._actions: list[tuple[int, np.ndarray]] = []
        self._results: list[tuple[int, int, bool]] = []

    def take(self, received: Received) -> None:
        """Take the next message."""
        topic, message = received.topic, received.message
        self._tally.message(received)
        try:
            if topic in self._contract.channels:
                observation = self._assembler.add(topic, message, received.received_ns)
                if observation is not None:
                    self._observations.append(replace(observation, images=()))  # their features will do
            if topic == self._contract.action.channel.topic and self._action.concerns(message):
                self._actions.append(self._acted(message, received.received_ns))
        except InputError as error:
            self._tally.fault(error)
        if topic in EPISODE_RESULT and self._observations:
            # A robot that counts its episodes itself has other numbers than who judges them.
            counted = self._contract.episode is not None
            number = int(message.episode_id) if counted else self._observations[-1].episode
            self._results.append((len(self._observations), number, bool(message.success)))

    def _acted(self, message: Any, received_ns: int) -> tuple[int, np.ndarray]:
        source: Source = self._contract.action
        values = source.from_wire(self._action.read(message))
        if source.align.timeline == "receive":
            return received_ns, values
        if not hasattr(message, "header"):
            name = source.channel.topic.lstrip("/")
            raise InputError(f"{name}.header", "the message has none; its timeline must be receive")
        return stamp_ns(message.header.stamp), values

    def episodes(self, keep_failures: bool) -> list[list[_Step]]:
        """Return the episodes of the bag, those that are left out not among them."""
        self._actions.sort(key=lambda each: each[0])
        times = np.array([stamp for stamp, _ in self._actions], dtype=np.int64)
        stamps = np.array([each.stamp_ns for each in self._observations], dtype=np.int64)
        chosen = aligned(times, stamps, self._contract.action.align)
        failed = self._failed()
        if not keep_failures:
            self._tally.counts["failed_episodes"] += sum(bool(failed[rows.start]) for rows in self._runs())
        episodes: list[list[_Step]] = []
        last: Observation | None = None
        answered = True
        for index, observation in enumerate(self._observations):
            repeated = last is not None and observation.key == last.key
            self._tally.counts["repeated_steps"] += repeated
            if repeated and answered:
                continue
            if not repeated:
                self._tally.counts["steps_without_action"] += not answered
                if last is None or self._ends(last, observation):
                    episodes.append([])
            last, answered = observation, bool(chosen[index] >= 0)
            if failed[index] and not keep_failures:
                answered = True  # nobody asks
            elif answered:
                episodes[-1].append(_Step(observation, self._actions[chosen[index]][1]))
        self._tally.counts["steps_without_action"] += not answered
        return [episode for episode in episodes if episode]

    def _ends(self, last: Observation, following: Observation) -> bool:
        """Whether an episode ends between two observations; counts why, and what is missing."""
        counts = self._tally.counts
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
        """Return, of each observation, whether its episode failed: (T,) bool."""
        failed = np.zeros(len(self._observations), dtype=bool)
        runs = self._runs()
        for heard_at, number, success in self._results:
            # The newest of this number: a robot that was restarted has the same numbers again. Its last steps
            # may come after the result where the recorder was behind.
            begun = [rows for rows in runs if rows.start < heard_at and self._number(rows) == number]
            if begun:
                failed[begun[-1]] = not success
        return failed

    def _runs(self) -> list[slice]:
        """Return the rows of each episode, as the robot counts them."""
        keys = [observation.key for observation in self._observations]
        starts = [
            row
            for row, (episode, step) in enumerate(keys)
            if row == 0 or episode != keys[row - 1][0] or step < keys[row - 1][1]
        ]
        return [slice(start, end) for start, end in zip(starts, [*starts[1:], len(keys)], strict=True)]

    def _number(self, rows: slice) -> int:
        return self._observations[rows.start].episode
