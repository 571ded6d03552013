# SPDX-License-Identifier: Apache-2.0
"""Runs robot simulator, draft policy and target verifier as three processes over DDS, and observes them.

Inside `adahi lab link run` the verifier is at the other end of the emulated link, and the link's traffic is
counted. As a program: python -m adahi_lab.nodes.dds_run SETTINGS.json RECORD.json. The first file has the
arguments of `run_over_dds`; the program writes a `RunRecord` to the second.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

from adahi_msgs.msg import DraftStatus, EpisodeResult
from rcl_interfaces.srv import GetParameters
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from adahi_lab.evaluation.run_record import Crossed, EpisodeRecord, RunRecord, episode_record_from_message
from adahi_lab.evaluation.task_contract import contract_of_task
from adahi_lab.link.link_commands import CommandedLink
from adahi_lab.nodes.domain import exclusive_domain, run_environment, server_prefix
from adahi_lab.nodes.observer import Observer
from adahi_lab.nodes.task_encoders import encoder_parameters
from adahi_lab.tasks import make
from adahi_ros.bags.recorded_topics import DIAGNOSTICS
from adahi_ros.contract.parsing import load_contract
from adahi_ros.nodes.common.messages import from_status
from adahi_ros.nodes.launching.child_processes import DdsRunError, NodeProcesses, node_processes
from adahi_ros.nodes.monitoring.bag_recorder_node import first_message
from adahi_ros.protocol.records import StepRecord
from adahi_ros.safety.named_limits import NO_LIMITS, limits_of_task

CONFIGURE_S = 180.0  # the first start may export two networks
STALL_S = 30.0
LONGEST_STEP_S = 60.0
STATUSES_KEPT = 1000
CUT_STEP = 20  # of each episode


def run_over_dds(
    task: str,
    draft_parameters: Mapping[str, object],
    verifier_parameters: Mapping[str, object],
    seed: int,
    episodes: range,
    lockstep: bool = True,
    on_status: Callable[[StepRecord], None] = lambda record: None,
    domain: int | None = None,
    bag: Path | None = None,
    cut_s: float = 0.0,
) -> RunRecord:
    """Run episodes over DDS, in a domain that no other run on this machine uses.

    Args:
        task: a key of `adahi_lab.tasks.TASKS`.
        draft_parameters: of the draft policy node, by name; `checkpoint` at least. Its backups are started.
        verifier_parameters: of the target verifier node, by name; `checkpoint` at least.
        seed: of the world's, the draft's and the verifier's draws.
        episodes: their numbers, one after the other.
        lockstep: the world waits for every command; else it runs in real time.
        on_status: called with every control step.
        domain: ROS domain that the caller holds, by `exclusive_domain`; None takes one for this run.
        bag: records the run; None records nothing.
        cut_s: duration of one cut of the link per episode, in real time; 0 for none.

    Raises:
        DdsRunError: a node ended early, could not be configured, or made no progress.
    """
    if len(episodes) == 0 or episodes.step != 1:
        raise ValueError(f"episodes: {episodes}, must be one or more consecutive numbers")
    draft = {
        "seed": seed,
        **observed(task),
        "verifier_wait_s": CONFIGURE_S,
        "safety.require_enable": False,  # the robot is simulated
        # In lockstep the world waits for the command to its current state, however long a step takes.
        **({"safety.hold_after_s": LONGEST_STEP_S, "command.lockstep": True} if lockstep else {}),
        **draft_parameters,
    }
    verifier = {
        "seed": seed,
        **encoder_parameters(make(task).spec.name),
        # In lockstep a robot acts as fast as replies arrive; a quota would refuse it (BUSY).
        **({"batch.quota_hz": 0.0} if lockstep else {}),
        **verifier_parameters,
    }
    simulator = {
        "task": task,
        "seed": seed,
        "first_episode": episodes.start,
        "episodes": len(episodes),
        "lockstep": lockstep,
        "contract": draft["contract"],
    }
    with ExitStack() as stack:
        if domain is None:
            domain = stack.enter_context(exclusive_domain())
        processes = stack.enter_context(node_processes(run_environment(domain)))
        cut = _Cut(cut_s)
        stack.callback(cut.end)
        drafting = processes.start("draft_policy_node", draft)
        backups = draft_parameters.get("verification.backups", ())
        assert isinstance(backups, Sequence)

        def start_verifiers() -> None:
            for namespace in ("", *backups):
                started = processes.start("target_verifier_node", verifier, server_prefix(), namespace)
                cut.verifiers.append(started.pid)

        if bag is None:
            start_verifiers()
        else:
            contract = str(draft["contract"])
            recorder = processes.start("bag_recorder_node", {"contract": contract, "out": str(bag)})
        processes.may_end = processes.start("adahi_lab.nodes.robot_simulator_node", simulator)
        observer = stack.enter_context(Observer(domain, "adahi_run"))

        def on_step(record: StepRecord) -> None:
            cut.on_step(record.step)
            on_status(record)

        collector = _Collector(observer.node, on_step)
        try:
            if not observer.change_state("draft_policy", "configure", CONFIGURE_S, processes.check):
                raise drafting.fault("did not configure")
            recorders = int(bag is not None)
            observer.wait_until(
                lambda: collector.connected(recorders), CONFIGURE_S, "simulator's topics", processes.check
            )
            if bag is not None:
                # The simulator repeats its first state until a command arrives. A whole run may be shorter
                # than DDS's discovery of a recorder. Who has the draft policy's diagnostics has its status,
                # too: DDS announces endpoints in order. Verifiers publish diagnostics, so they start later.
                observer.wait_until(
                    lambda: not unrecorded(contract, recorder.output),
                    CONFIGURE_S,
                    "recorder's first message of each observed topic",
                    processes.check,
                )
                start_verifiers()
            if not observer.change_state("draft_policy", "activate", CONFIGURE_S, processes.check):
                raise drafting.fault("did not activate")
            _watch(observer, collector, processes, len(episodes), lockstep)
            if bag is not None:
                # A busy recorder is behind: what it received before this request, it takes before it ends.
                client = observer.node.create_client(GetParameters, "bag_recorder/get_parameters")
                observer.call(client, GetParameters.Request(), STALL_S, processes.check)
        except TimeoutError as error:
            outputs = [str(process.fault("still runs")) for process in processes.all]
            raise DdsRunError("\n".join([str(error), *outputs])) from error
        return RunRecord(tuple(collector.steps), tuple(collector.episodes), collector.crossed())


def contract_of(task: str, draft_parameters: Mapping[str, object]) -> str:
    """Return the contract of a run's robot: its parameter, else the task's."""
    return str(draft_parameters.get("contract") or observed(task)["contract"])


def unrecorded(contract: str, output: str) -> list[str]:
    """Return what a recorder has no message of, by its output: observed topics and diagnostics."""
    topics = ("/" + topic.lstrip("/") for topic in [*load_contract(contract).channels, *DIAGNOSTICS])
    return [topic for topic in topics if first_message(topic) not in output]


def observed(task: str) -> dict[str, object]:
    """Return the parameters of a simulated robot's draft policy that its task decides."""
    limits = limits_of_task(make(task).spec.name) or NO_LIMITS
    contract = contract_of_task(task, Path(_written().name))
    return {"contract": contract, "safety.limits": limits, "fallback": "draft"}


@cache
def _written() -> tempfile.TemporaryDirectory[str]:
    """Return a folder of contracts, which is removed when this process ends."""
    return tempfile.TemporaryDirectory(prefix="adahi-contracts-")


class _Cut:
    """A cut of the link in each episode: the verifiers are suspended meanwhile, so nothing needs root."""

    def __init__(self, for_s: float) -> None:
        self.verifiers: list[int] = []
        """Their process ids."""
        self._for_s, self._until_s = for_s, math.inf

    def on_step(self, step: int) -> None:
        if self._for_s and step == CUT_STEP:
            self._until_s = time.monotonic() + self._for_s
            self._send(signal.SIGSTOP)
        elif time.monotonic() >= self._until_s:
            self.end()

    def end(self) -> None:
        self._until_s = math.inf
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        for pid in self.verifiers:
            with suppress(ProcessLookupError):  # it has ended, which the run notices by itself
                os.kill(pid, number)


class _Collector:
    """Collects every step and every episode of a run.

    Late subscribers get no earlier steps. So make this before the first client of the draft policy's
    services: DDS announces a process's endpoints in order, so a node that replies to that client also knows
    this subscription.
    """

    def __init__(self, node: Node, on_status: Callable[[StepRecord], None]) -> None:
        self.steps: list[StepRecord] = []
        self.episodes: list[EpisodeRecord] = []
        self._carried: tuple[int, int] | None = None  # by the link, up to the end of the first step
        self._node = node
        self._link = CommandedLink()
        self._on_status = on_status
        deep = QoSProfile(depth=STATUSES_KEPT)
        kept = QoSProfile(depth=STATUSES_KEPT, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        node.create_subscription(DraftStatus, "draft_status", self._add_step, deep)
        node.create_subscription(EpisodeResult, "episode_result", self._add_episode, kept)

    def connected(self, recorders: int) -> bool:
        """Whether both topics have their publisher, and this many recorders subscribe the status."""
        published = all(self._node.count_publishers(topic) for topic in ("draft_status", "episode_result"))
        return published and self._node.count_subscribers("draft_status") > recorders

    def crossed(self) -> Crossed | None:
        """Return the link's traffic since the end of the first step; None without a link."""
        carried = self._link.carried()
        if carried is None or self._carried is None:
            return None
        up, down = (now - before for now, before in zip(carried, self._carried, strict=True))
        return Crossed(len(self.steps) - 1, up, down)

    def _add_step(self, message: DraftStatus) -> None:
        self.steps.append(from_status(message))
        if len(self.steps) == 1:
            self._carried = self._link.carried()
        self._on_status(self.steps[-1])

    def _add_episode(self, message: EpisodeResult) -> None:
        self.episodes.append(episode_record_from_message(message))


def _watch(
    observer: Observer, collector: _Collector, processes: NodeProcesses, episodes: int, lockstep: bool
) -> None:
    """Spin until every episode is over and, in lockstep, every step's status has arrived."""

    def complete() -> bool:
        if len(collector.episodes) < episodes:
            return False
        return not lockstep or len(collector.steps) >= sum(record.steps for record in collector.episodes)

    while not complete():
        seen = len(collector.steps), len(collector.episodes)
        observer.wait_until(
            lambda: complete() or (len(collector.steps), len(collector.episodes)) != seen,  # noqa: B023
            STALL_S if seen[0] else CONFIGURE_S,  # the verifier may still be loading
            f"step {seen[0]}",
            processes.check,
        )


def main() -> None:
    """Run the episodes of a file, and write their record."""
    wanted, record = map(Path, sys.argv[1:])
    arguments = json.loads(wanted.read_text())
    arguments["episodes"] = range(*arguments["episodes"])
    try:
        run = run_over_dds(**arguments)
    except DdsRunError as error:
        sys.exit(str(error))
    record.write_text(json.dumps(asdict(run)) + "\n")


if __name__ == "__main__":
    main()
