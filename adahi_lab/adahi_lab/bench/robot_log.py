# SPDX-License-Identifier: Apache-2.0
"""Reads and checks the log of `recording_robot_node`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from adahi_lab.evaluation.run_record import step_record_of
from adahi_lab.history import History
from adahi_ros.core.signature import GOAL, OBSERVATION
from adahi_ros.gates.gate_config import ControllerConfig
from adahi_ros.policies.interface import Policy
from adahi_ros.protocol.records import Reason, StepRecord
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier, VerificationRequest, verification_uniforms

SILENCE = 30  # observations without a command after which a draft policy counts as stopped
CLOCKS = 1e-3  # relative difference allowed between timers and the clock of the records
SHOWN_FAULTS = 5


@dataclass(frozen=True)
class Shown:
    """An observation; `at_s` by the monotonic clock."""

    at_s: float
    stamp_ns: int
    episode: int
    step: int
    values: list[float]
    goal: list[float]


@dataclass(frozen=True)
class Command:
    """A command to the observation with that stamp; `at_s` by the monotonic clock."""

    at_s: float
    stamp_ns: int
    action: list[float]


class RobotLog:
    """The log of a robot that runs or has ended.

    Attributes:
        shown: observations, in order.
        commands: in the order of their arrival.
        records: the draft policy's records of its steps, in order.
    """

    def __init__(self, path: Path) -> None:
        self.shown: list[Shown] = []
        self.commands: list[Command] = []
        self.records: list[StepRecord] = []
        self._path = path
        self._read_bytes = 0

    def read(self) -> None:
        """Read the lines written since the last call."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._read_bytes)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        for line in whole.splitlines():
            ((kind, values),) = json.loads(line).items()
            if kind == "shown":
                self.shown.append(Shown(**values))
            elif kind == "command":
                self.commands.append(Command(**values))
            else:
                self.records.append(step_record_of(values))

    def since(self, at_s: float) -> LogPart:
        """Return the part of the log that belongs to observations from some time on."""
        stamps = {shown.stamp_ns for shown in self.shown if shown.at_s >= at_s}
        return LogPart(
            [shown for shown in self.shown if shown.stamp_ns in stamps],
            [command for command in self.commands if command.stamp_ns in stamps],
            [record for record in self.records if record.stamp_ns in stamps],
        )


@dataclass(frozen=True)
class LogPart:
    """A part of a log; attributes as `RobotLog`."""

    shown: Sequence[Shown]
    commands: Sequence[Command]
    records: Sequence[StepRecord]

    def latencies_s(self) -> np.ndarray:
        """Return how long after its observation each command came."""
        shown_s = {shown.stamp_ns: shown.at_s for shown in self.shown}
        return np.array([command.at_s - shown_s[command.stamp_ns] for command in self.commands])

    def reasons(self) -> Counter[Reason]:
        """Count the steps by reason."""
        return Counter(record.reason for record in self.records)

    def unverified(self) -> int | None:
        """Count the observations before the first verified one; None without one."""
        verified = {record.stamp_ns for record in self.records if record.verified}
        numbers = (number for number, shown in enumerate(self.shown) if shown.stamp_ns in verified)
        return next(numbers, None)


def _runs(records: Sequence[StepRecord]) -> list[list[StepRecord]]:
    """Split records where the draft policy was restarted: its count begins at one again."""
    runs: list[list[StepRecord]] = []
    for record in records:
        if sum(record.reason_counts) == 1 or not runs:
            runs.append([])
        runs[-1].append(record)
    return runs


def never(shown: Shown) -> bool:
    """Excuse no observation."""
    return False


def unaccounted(log: RobotLog, excused: Callable[[Shown], bool] = never) -> list[str]:
    """Return the faults in the log of a robot's steps; empty where there are none.

    Between the first and the last commanded observation of a run, each must have one command and one record.
    Only an episode's last observation may be dropped for the next episode's first. Commands must come in the
    order of their observations. An action executed without a verification must be the draft. The counts by
    reason must increase by each step's reason.

    Args:
        log: of a robot.
        excused: returns whether an observation may lack a command and a record.
    """
    faults = []
    index = {shown.stamp_ns: number for number, shown in enumerate(log.shown)}
    commands = Counter(each.stamp_ns for each in log.commands)
    last = {each.stamp_ns: each for each in log.commands}
    for run in _runs(log.records):
        records = {record.stamp_ns: record for record in run}
        if len(records) != len(run):
            faults.append(f"{len(run) - len(records)} observations have more than one record")
        # The first commands may come before discovery; the last one may still be in transit.
        commanded = [index[record.stamp_ns] for record in run if record.stamp_ns in last]
        for number in range(min(commanded, default=0), max(commanded, default=-1) + 1):
            shown, after = log.shown[number], log.shown[min(number + 1, len(log.shown) - 1)]
            without = shown.stamp_ns not in records
            dropped = without and (after.episode != shown.episode or excused(shown))
            if commands[shown.stamp_ns] != (0 if dropped else 1):
                faults.append(f"{_name(shown)}: {commands[shown.stamp_ns]} commands")
            elif without and not dropped:
                faults.append(f"{_name(shown)}: a command, but no record")
        faults += _wrong_counts(run)
    for record in log.records:
        faults += _wrong_record(record, last.get(record.stamp_ns))
    commanded = [index[stamp_ns] for stamp_ns in last if stamp_ns in index]
    for earlier, later in pairwise(commanded):
        if later < earlier:
            faults.append(f"{_name(log.shown[later])}: its command came after that of a newer observation")
    silent = len(log.shown) - 1 - max(commanded, default=-1)
    if silent > SILENCE:
        faults.append(f"no command for the last {silent} observations")
    return faults


def mistimed(records: Sequence[StepRecord], deadline_s: float) -> list[str]:
    """Return faults in the waiting times of steps, by the draft policy's clock.

    On any busy machine: a step without a request does not wait; a reply comes before its command; a request
    is abandoned at the deadline at the earliest, or when a newer observation arrives.

    Args:
        records: of steps.
        deadline_s: for a reply.
    """
    faults = []
    for record in records:
        where = f"episode {record.episode}, step {record.step}"
        if not record.transmitted and (record.verify_ms or record.request_bytes):
            faults.append(
                f"{where}: not transmitted, yet {record.request_bytes} bytes, {record.verify_ms} ms"
            )
        if record.verified and not 0 < record.verify_ms <= record.total_ms:
            faults.append(f"{where}: verified in {record.verify_ms} ms of {record.total_ms} ms")
        if record.reason is Reason.DEADLINE and record.total_ms < 1e3 * deadline_s * (1 - CLOCKS):
            faults.append(f"{where}: given up after {record.total_ms} ms, must be {1e3 * deadline_s:g} ms")
    return faults


def _name(shown: Shown) -> str:
    return f"episode {shown.episode}, step {shown.step}"


def _wrong_counts(run: Sequence[StepRecord]) -> list[str]:
    counts = [0] * len(Reason)
    for record in run:
        counts[record.reason] += 1
        if list(record.reason_counts) != counts:
            where = f"episode {record.episode}, step {record.step}"
            return [f"{where}: reason_counts {record.reason_counts}, must be {counts}"]
    return []


def _wrong_record(record: StepRecord, command: Command | None) -> list[str]:
    where = f"episode {record.episode}, step {record.step}"
    if command is not None and tuple(np.asarray(command.action, np.float32).tolist()) != record.action:
        return [f"{where}: commanded {command.action}, recorded {record.action}"]
    if not record.verified and record.action != record.draft_action:
        return [f"{where}: neither verified nor the draft"]
    if record.verified and (record.reason is not Reason.NONE or not record.transmitted):
        return [f"{where}: verified, yet transmitted: {record.transmitted}, reason {record.reason.name}"]
    return []


class Replay:
    """Repeats the same steps in this process: draft and target are function calls, and nothing is lost.

    Args:
        draft: the robot's policy.
        target: the verifier's.
        config: of the robot's controller.
        seed: of both sides' draws.
        robot_id: names the robot's stream of draws.
    """

    def __init__(
        self, draft: Policy, target: Policy, config: ControllerConfig, seed: int, robot_id: str = "robot"
    ) -> None:
        self._controller = Controller(draft, config)
        self._verifier = TargetVerifier(target)
        self._history = History(target.signature, 1)
        self._draws = target.draws
        self._seed = seed
        self._robot_id = robot_id

    def differences(self, log: RobotLog) -> list[str]:
        """Return where the robot's log is not bit-identical to the expected one.

        The log decides which drafts got a reply. Drafts, requests and replies are computed again.
        """
        shown = {each.stamp_ns: each for each in log.shown}
        found = []
        for run in _runs(log.records):
            before: StepRecord | None = None
            for record in run:
                goes_on = before is not None and before.episode == record.episode
                if not (goes_on and before is not None and before.step < record.step):
                    self._controller.reset(self._seed, [record.episode])
                    self._history = History(self._verifier.policy.signature, 1)
                found += self._step(shown[record.stamp_ns], record)
                before = record
        return found

    def _step(self, shown: Shown, record: StepRecord) -> list[str]:
        observed = {OBSERVATION: np.array([shown.values]), GOAL: np.array([shown.goal])}
        step, observations = self._controller.begin(observed), self._history.push(observed)
        verdict = None
        if record.verified:
            draws = verification_uniforms(self._seed, self._robot_id, shown.episode, shown.step, self._draws)
            request = VerificationRequest(observations, step.draft(np.array([0])))
            verdict = self._verifier.verify(request, draws)
        actions = self._controller.finish(step, verdict)
        self._controller.executed(actions)
        must = {
            "draft_action": tuple(step.intended[0].tolist()),
            "action": tuple(actions[0].tolist()),
            "accepted": () if verdict is None else tuple(verdict.accepted[0].tolist()),
            "verified": bool(step.transmit[0]) and record.reason is Reason.NONE,
        }
        return [
            f"{_name(shown)}: {field} {getattr(record, field)}, must be {value}"
            for field, value in must.items()
            if getattr(record, field) != value
        ]


def shortened(faults: Sequence[str]) -> list[str]:
    """Return the first few faults, and the number of further ones."""
    more = len(faults) - SHOWN_FAULTS
    return [*faults[:SHOWN_FAULTS], *([f"and {more} more"] if more > 0 else [])]
