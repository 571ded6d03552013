"""Robot simulator, draft policy and target verifier as three processes over DDS, watched from here.

Inside `adahi link run` the verifier is at the other end of the emulated link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from adahi_msgs.msg import DraftStatus, EpisodeResult
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from adahi_ros.nodes.child_processes import DdsRunError, NodeProcesses, node_processes
from adahi_ros.nodes.domain import exclusive_domain, run_environment, server_prefix
from adahi_ros.nodes.messages import from_episode_result, from_status
from adahi_ros.nodes.observer import Observer
from adahi_ros.nodes.parameters import NO_NAMES
from adahi_ros.speculation.records import EpisodeRecord, RunRecord, StepRecord
from adahi_ros.tasks import make

CONFIGURE_S = 180.0  # the first start may export two networks
STALL_S = 30.0
STATUSES_KEPT = 1000


def run_over_dds(
    task: str,
    draft_parameters: Mapping[str, Any],
    verifier_parameters: Mapping[str, Any],
    seed: int,
    episodes: range,
    lockstep: bool = True,
    on_status: Callable[[StepRecord], None] = lambda record: None,
    on_episode: Callable[[EpisodeRecord], None] = lambda record: None,
) -> RunRecord:
    """Run episodes over DDS, in a domain that no other run on this machine has.

    Args:
        task: a key of `adahi_ros.tasks.TASKS`.
        draft_parameters: of the draft policy node, by name; `checkpoint` at least.
        verifier_parameters: of the target verifier node, by name; `checkpoint` at least.
        seed: of the world's, the draft's and the verifier's draws.
        episodes: their numbers, one after the other.
        lockstep: the world waits for every command; else it runs in real time.
        on_status: called with every control step.
        on_episode: called with every episode's end.

    Raises:
        DdsRunError: a node ended early, could not be configured, or nothing happened for long.
    """
    if len(episodes) == 0 or episodes.step != 1:
        raise ValueError(f"episodes: {episodes}, must be one or more consecutive numbers")
    spec = make(task).spec
    draft = {
        "seed": seed,
        "joint_names": list(spec.joint_names or NO_NAMES),
        "command.joint_names": list(spec.commanded),
        "command.field": spec.command_field,
        "control_rate_hz": spec.control_rate_hz,
        "verifier_wait_s": CONFIGURE_S,
        **draft_parameters,
    }
    verifier = {"seed": seed, **verifier_parameters}
    simulator = {
        "task": task,
        "seed": seed,
        "first_episode": episodes.start,
        "episodes": len(episodes),
        "lockstep": lockstep,
    }
    with ExitStack() as stack:
        domain = stack.enter_context(exclusive_domain())
        processes = stack.enter_context(node_processes(run_environment(domain)))
        drafting = processes.start("draft_policy_node", draft)
        processes.start("target_verifier_node", verifier, server_prefix())
        processes.may_end = processes.start("robot_simulator_node", simulator)
        observer = Observer(domain, "adahi_run")
        stack.callback(observer.close)
        collector = _Collector(observer.node, on_status, on_episode)
        try:
            if not observer.change_state("draft_policy", "configure", CONFIGURE_S, processes.check):
                raise drafting.fault("did not configure")
            observer.wait_until(collector.connected, CONFIGURE_S, "simulator's topics", processes.check)
            if not observer.change_state("draft_policy", "activate", CONFIGURE_S, processes.check):
                raise drafting.fault("did not activate")
            _watch(observer, collector, processes, len(episodes), lockstep)
        except TimeoutError as error:
            outputs = [str(process.fault("still runs")) for process in processes.all]
            raise DdsRunError("\n".join([str(error), *outputs])) from error
        return RunRecord(tuple(collector.steps), tuple(collector.episodes))


class _Collector:
    def __init__(
        self,
        node: Node,
        on_status: Callable[[StepRecord], None],
        on_episode: Callable[[EpisodeRecord], None],
    ) -> None:
        self.steps: list[StepRecord] = []
        self.episodes: list[EpisodeRecord] = []
        self._node = node
        self._on_status = on_status
        self._on_episode = on_episode
        kept = QoSProfile(depth=STATUSES_KEPT, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        node.create_subscription(DraftStatus, "draft_status", self._add_step, kept)
        node.create_subscription(EpisodeResult, "episode_result", self._add_episode, kept)

    def connected(self) -> bool:
        """Whether both topics have their publisher."""
        return all(self._node.count_publishers(topic) > 0 for topic in ("draft_status", "episode_result"))

    def _add_step(self, message: DraftStatus) -> None:
        self.steps.append(from_status(message))
        self._on_status(self.steps[-1])

    def _add_episode(self, message: EpisodeResult) -> None:
        self.episodes.append(from_episode_result(message))
        self._on_episode(self.episodes[-1])


def _watch(
    observer: Observer, collector: _Collector, processes: NodeProcesses, episodes: int, lockstep: bool
) -> None:
    """Spin until every episode is over and, in lockstep, every step's status is there."""

    def complete() -> bool:
        if len(collector.episodes) < episodes:
            return False
        return not lockstep or len(collector.steps) >= sum(record.steps for record in collector.episodes)

    while not complete():
        seen = len(collector.steps), len(collector.episodes)
        observer.wait_until(
            lambda: complete() or (len(collector.steps), len(collector.episodes)) != seen,  # noqa: B023
            STALL_S,
            f"step {seen[0]}",
            processes.check,
        )
