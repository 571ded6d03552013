# SPDX-License-Identifier: Apache-2.0
"""Robots that ask for one chunk after another; verifier and drafters are processes with a ROS node each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rclpy.task import Future

from adahi_lab.nodes.domain import exclusive_domain, run_environment
from adahi_lab.nodes.observer import Observer
from adahi_lab.papers.cosine.next_token import NAME
from adahi_lab.papers.cosine.serving import Served, Service, Way
from adahi_lab.papers.tokens.observed_chunks import Seen
from adahi_ros.core.signature import Signature
from adahi_ros.nodes.common.verifier_messages import from_reply, to_request
from adahi_ros.nodes.launching.child_processes import NodeProcesses, node_processes
from adahi_ros.nodes.robot.dds_transport import VerifierClients
from adahi_ros.protocol.request import OK, Request, Sender
from adahi_ros.protocol.window import WireWindow

START_S, REPLY_S = 120.0, 600.0
FOUND_S = 3.0  # within which a verifier finds the drafters that are there
COMMON = {"verification.reliability": "reliable", "batch.quota_hz": 0.0}
GATHER_S = 0.01  # a drafter's batch waits so long for the other robots of a group
NODE, SESSION = "target_verifier_node", 1


@dataclass
class Nodes:
    """The nodes of a service, and this process's own.

    Attributes:
        processes: of the drafters, and of the verifier.
        observer: this process's node.
        clients: of the verifier.
    """

    processes: NodeProcesses
    observer: Observer
    clients: VerifierClients

    def ask(self, robot: int, number: int, signature: Signature, seen: Seen) -> Future:
        """Ask for a robot's chunk, by its number."""
        window = WireWindow.pack(signature.window(seen[1])[0], signature.condition(seen[1])[0])
        request, sender = Request(0, number, number, window), Sender(f"robot_{robot}", SESSION, "", None)
        return self.clients.verifying.call_async(to_request(request, window, sender))


@contextmanager
def serving_nodes(
    drafts: Sequence[Path], target: Path, way: Way, service: Service, robots: Sequence[str] = ()
) -> Iterator[Nodes]:
    """Start the nodes of a service in a ROS domain of their own.

    Args:
        drafts: paths of the drafters' policies.
        target: path of the target.
        way: how drafts are made.
        service: how long a pass and a drafted token wait.
        robots: namespaces of robots with a service of their own; empty for one service.

    Raises:
        DdsRunError: one ended early.
        TimeoutError: one is not there in time.
    """
    spaces = [f"/drafter_{number}" for number in range(len(drafts))]
    engine: dict[str, object] = {"name": "cosine", "drafters": spaces}
    engine |= {"routed": way.routed, "fused": way.selected, "pipelined": way.pipelined, "tokens": way.tokens}
    drafter = {"rule.name": NAME, "added_compute_s": service.draft_s, "batch.wait_s": GATHER_S, **COMMON}
    with (
        exclusive_domain() as domain,
        node_processes(run_environment(domain)) as processes,
        Observer(domain, "robots") as observer,
    ):
        for space, draft in zip(spaces, drafts, strict=True):
            processes.start(NODE, {**drafter, "checkpoint": str(draft.resolve())}, namespace=space)
        given = {f"engine.{name}": value for name, value in engine.items()}
        given |= {"checkpoint": str(target.resolve()), "added_compute_s": service.pass_s}
        processes.start(NODE, {**given, **COMMON, "robots": list(robots) or [""]})
        asked = (*spaces, "/" + robots[0] if robots else "")
        clients = [VerifierClients(observer.node, "reliable", space) for space in asked]
        observer.wait_until(lambda: all(each.present for each in clients), START_S, "nodes", processes.check)
        time.sleep(FOUND_S)
        yield Nodes(processes, observer, clients[-1])


def serve_robots(nodes: Nodes, seen: Sequence[Sequence[Seen]], signature: Signature) -> Served:
    """Let robots ask for their chunks, each for the next one as it has one; return them and their latencies.

    Args:
        nodes: of the service.
        seen: by robot, at the start of each chunk.
        signature: the target's.

    Raises:
        RuntimeError: a request was refused.
        TimeoutError: a reply did not come.
    """
    made, began_s = Served(), time.monotonic()
    chunks: list[list[list[int]]] = [[] for _ in seen]
    asked = {robot: (nodes.ask(robot, 0, signature, own[0]), began_s) for robot, own in enumerate(seen)}

    def served() -> bool:
        for robot, (call, since_s) in list(asked.items()):
            if call.done():
                reply, now_s = from_reply(0, call.result()), time.monotonic()
                if reply.status != OK or reply.fault:
                    raise RuntimeError(f"robot {robot}: {reply.fault or reply.message}")
                chunks[robot].append(np.asarray(reply.codes).tolist())
                made.latencies_s.append(now_s - since_s)
                del asked[robot]
                if further := seen[robot][len(chunks[robot]) :]:
                    asked[robot] = nodes.ask(robot, len(chunks[robot]), signature, further[0]), now_s
        return not asked

    nodes.observer.wait_until(served, REPLY_S, "chunks", nodes.processes.check)
    made.time_s, made.chunks = time.monotonic() - began_s, [chunk for own in chunks for chunk in own]
    return made
