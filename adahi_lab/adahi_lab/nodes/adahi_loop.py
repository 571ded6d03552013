# SPDX-License-Identifier: Apache-2.0
"""Our closed loop: the simulator's node in real time, the draft policy's node, a verifier across the link.

As a program, at the robot's end,

    python -m adahi_lab.nodes.adahi_loop SETTINGS.json LOGS.json

runs the episodes of a `Drive` and writes their logs. `draft` in its settings has the parameters of the
draft policy's node. The verifier is another process at the server's end.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import rclpy
from adahi_msgs.msg import DraftStatus
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rclpy.utilities import try_shutdown

from adahi_lab.link.restarted_server import link_of
from adahi_lab.nodes.dds_run import CONFIGURE_S, STATUSES_KEPT, observed
from adahi_lab.nodes.observer import Observer
from adahi_lab.nodes.robot_simulator_node import RobotSimulatorNode
from adahi_lab.peers.closed_loop import MAX_COMMAND_AGE_S, Drive, EpisodeLog, RecordedTask, save_logs
from adahi_ros.nodes.common.spin import freeze_garbage
from adahi_ros.nodes.launching.child_processes import NodeProcesses, node_processes

DOMAIN = 0  # the link's namespaces isolate it
LOOK_S = 0.5


def drive(wanted: Drive) -> list[EpisodeLog]:
    """Run episodes; return their logs.

    Raises:
        DdsRunError: the draft policy's node ended early, or could not be configured.
    """
    draft = {
        "seed": wanted.seed,
        "verifier_wait_s": CONFIGURE_S,
        "safety.require_enable": False,  # the robot is simulated
        **observed(wanted.task),
        **wanted.settings["draft"],
    }
    with node_processes({}) as processes:
        drafting = processes.start("draft_policy_node", draft)
        with Observer(DOMAIN, "adahi_loop") as observer:
            for label in ("configure", "activate"):
                if not observer.change_state("draft_policy", label, CONFIGURE_S, processes.check):
                    raise drafting.fault(f"did not {label}")
        if wanted.judged:
            from adahi_lab.nodes.judged_robot import run_judged

            return run_judged(wanted, processes.check)
        return _simulate(wanted, draft, processes)


def _simulate(wanted: Drive, draft: dict[str, object], processes: NodeProcesses) -> list[EpisodeLog]:
    parameters = {
        "task": wanted.task,
        "seed": wanted.seed,
        "first_episode": wanted.first_episode,
        "episodes": wanted.episodes,
        "lockstep": False,
        "max_command_age_s": MAX_COMMAND_AGE_S,
        "contract": draft.get("contract", ""),
    }
    made: list[RecordedTask] = []

    def commanded(*arguments: object) -> RecordedTask:
        made.append(RecordedTask(*arguments, link=link_of(wanted.restart), outage_s=wanted.outage_s))
        return made[-1]

    rclpy.init(domain_id=DOMAIN)
    calls: Counter[int] = Counter()

    def count(message: DraftStatus) -> None:
        calls[message.episode_id] += message.transmitted

    overrides = [Parameter(name, value=value) for name, value in parameters.items()]
    node = RobotSimulatorNode(commanded, parameter_overrides=overrides, use_global_arguments=False)
    node.create_subscription(DraftStatus, "draft_status", count, QoSProfile(depth=STATUSES_KEPT))
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    freeze_garbage()
    while not node.finished.done():
        processes.check()
        executor.spin_once(timeout_sec=LOOK_S)
    node.destroy_node()
    try_shutdown()
    (world,) = made
    for log in world.logs:
        log.calls = calls[log.episode]
    return world.logs


if __name__ == "__main__":
    save_logs(drive(Drive.load(Path(sys.argv[1]))), Path(sys.argv[2]))
