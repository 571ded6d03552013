# SPDX-License-Identifier: Apache-2.0
"""Trace one transmitted control step: the functions and files that it passes.

The step begins with the messages of the sensors and ends with the command and the record, including
the request, the verifier and the reply. Both ends run in this process: calls carry the serialized messages
instead of DDS. The task is the ball, the policies are the shipped ones, and the gate transmits every step.

python tools/trace_step.py             # how many functions, files and changes of file
python tools/trace_step.py --sequence  # the functions as well, in the order of their calls
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import adahi_ros
from adahi_lab.evaluation.task_contract import contract_values
from adahi_lab.nodes.called_verifier import CalledTransport, CalledVerifier
from adahi_lab.nodes.task_state import to_task_state
from adahi_lab.tasks import make
from adahi_ros.contract.assembler import Observation, ObservationAssembler
from adahi_ros.contract.commanded import commanded
from adahi_ros.contract.parsing import parse_contract
from adahi_ros.core.assets import asset
from adahi_ros.core.signature import GOAL, OBSERVATION, Offer
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.nodes.common.messages import to_joint_state, to_status
from adahi_ros.policies.backends import load_policy
from adahi_ros.protocol.description import Wants
from adahi_ros.protocol.records import StepRecord
from adahi_ros.robot.controller import Controller
from adahi_ros.robot.loop import ControlLoop
from adahi_ros.robot.outcomes import Fallback
from adahi_ros.robot.session import VerifierSession
from adahi_ros.robot.target_view import Features
from adahi_ros.safety.commands import Commands, Outgoing
from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.guard import Guard, GuardConfig
from adahi_ros.safety.named_limits import named_limits
from adahi_ros.safety.permission import Permission
from adahi_ros.server.verifier import TargetVerifier

PACKAGE = str(Path(adahi_ros.__file__).parent)
TASK = "ball"
STEPS_BEFORE = 6
TICK_S = 1e-4
DEADLINE_S = 20.0


class Clock:
    """Advances by a constant at every call, so that every trace is the same on any machine."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += TICK_S
        return self.now_s


class Sink:
    """A `Commander` that drops its commands."""

    def __init__(self, guard: Guard, commands: Commands, clock: Clock) -> None:
        self._guard, self._commands, self._clock = guard, commands, clock
        self.sent: list[np.ndarray] = []
        commands.start(clock())

    def observed(self) -> None:
        self._guard.observed(self._clock())

    def limit(self, action: np.ndarray | None, observation: Observation) -> Outgoing:
        return self._commands.limit(action, observation.read, self._clock())

    def command(self, outgoing: Outgoing, observation: Observation) -> np.ndarray | None:
        if outgoing.command is not None:
            self.sent.append(outgoing.command)
        return outgoing.action

    def repeat(self, observation: Observation) -> None:
        self._commands.repeat(self._clock())

    def resumes(self) -> bool:
        return self._guard.resumes(self._clock())

    def commanded(self) -> np.ndarray | None:
        return self._commands.commanded()


def transmitted_step() -> list[tuple[str, str]]:
    """Return the calls of one step, see `traced`, after some warm-up steps."""
    clock = Clock()
    world = make(TASK)
    world.reset(0, [0])
    checkpoints = asset(f"checkpoints/{TASK}")
    draft, target = (load_policy(checkpoints / name, "onnxruntime") for name in ("draft", "target"))
    signature = draft.signature
    assert signature.codes is not None
    rule = "speculative"
    verifier = TargetVerifier(target, rule)
    called = CalledVerifier(verifier, rule, 0)
    transport = CalledTransport(called.describe, called.verify, signature.codes.fingerprint)
    offered = Offer({OBSERVATION: signature.observation_dim, GOAL: signature.goal_dim})
    session = VerifierSession(transport, Wants(signature, offered), True, lambda: None)
    contract = parse_contract(contract_values(world))
    what = commanded(contract.action)
    measured = contract.measured(what.names)
    envelope = Envelope(named_limits(TASK, False, what, measured), what.fields, contract.period_s)
    permission = Permission(False, 1.0)
    guard = Guard(envelope, GuardConfig(contract.period_s, math.inf), permission, clock())
    records: list[StepRecord] = []

    def status(record: StepRecord) -> None:
        to_status(record)
        records.append(record)

    loop = ControlLoop(
        Controller(draft, ControllerConfig(ThresholdedGate("deviation", -1.0))),
        session,
        Features(contract.number_dim),
        "robot",
        0,
        DEADLINE_S,
        Sink(guard, Commands(guard, contract.action, measured), clock),
        status,
        Fallback(None),
        clock,
    )
    inputs = ObservationAssembler(contract)
    loop.start(0.0)
    while session.trouble:
        clock.now_s += 0.01
        loop.poll()
    spec, joints = world.spec, len(world.spec.joint_names)

    def messages(number: int) -> dict[str, Any]:
        now_ns = time.time_ns()
        values, goal = world.observation[0], world.goal[0]
        return {
            "joint_states": to_joint_state(spec.joint_names, values[:joints], np.zeros(joints), now_ns),
            "task_state": to_task_state(values[joints:], goal, 0, number, now_ns),
        }

    def step(received: dict[str, Any]) -> None:
        for topic, message in received.items():
            observation = inputs.add(topic, message, time.time_ns())
            if observation is not None:
                loop.step(observation)
        loop.poll()

    for number in range(STEPS_BEFORE):
        step(messages(number))
        assert records[-1].verified
        world.step(np.array([records[-1].action], dtype=np.float32))
    received = messages(STEPS_BEFORE)
    calls = traced(lambda: step(received))
    assert records[-1].step == STEPS_BEFORE
    assert records[-1].verified
    return calls


def traced(step: Callable[[], None]) -> list[tuple[str, str]]:
    """Return the file and the name of each called function of the package, in the order of the calls.

    Comprehensions and generator expressions belong to their function.
    """
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            name = getattr(code, "co_qualname", code.co_name)
            calls.append((str(Path(code.co_filename).relative_to(PACKAGE)), f"{name}:{code.co_firstlineno}"))

    sys.setprofile(note)
    try:
        step()
    finally:
        sys.setprofile(None)
    return calls


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sequence", action="store_true", help="print the functions, a line per change of file"
    )
    arguments = parser.parse_args()
    calls = transmitted_step()
    runs: list[tuple[str, list[str]]] = []
    for file, name in calls:
        if not runs or runs[-1][0] != file:
            runs.append((file, []))
        runs[-1][1].append(name.partition(":")[0])
    if arguments.sequence:
        for file, names in runs:
            print(f"{file:40} {' '.join(names)}")
    functions, files = len(set(calls)), len({file for file, _ in calls})
    print(f"{functions} functions in {files} files, {len(runs) - 1} changes of file")


if __name__ == "__main__":
    main()
