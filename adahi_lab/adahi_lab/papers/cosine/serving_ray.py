# SPDX-License-Identifier: Apache-2.0
"""Many robots, several drafters and one verifier on Ray, each an actor on a node of its own.

    this process ─▶ drafters: the next token of each robot of a group, then fused, token by token
    (`Serving`)  ─▶ verifier: the runs of a group, in one pass

A pass and a drafted token take as long as `Service` says, or longer: an actor waits for the rest of that
time, to emulate large policies. Messages are in Ray's serialisation; a cluster's processes trust each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adahi_lab.environment_variables import environment_variables
from adahi_lab.papers.cosine.collaboration import Opinion
from adahi_lab.papers.cosine.serving import Robot, Served, Service, Serving, Way
from adahi_lab.papers.tokens.greedy_draft import GreedyDraft
from adahi_lab.papers.tokens.observed_chunks import Seen, load_token_policy
from adahi_ros.core.proposal import softmax
from adahi_ros.core.signature import Observations
from adahi_ros.server.ray.ray_head import ENVIRONMENT, OBJECT_STORE_BYTES

VERIFIER, DRAFTER = "verifier", "drafter"  # resources of the nodes
KNOWN = 0.9  # share of a measured duration that remains from one to the next

Ask = tuple[int, Observations, list[int]]
"""A chunk by its index, its observation, and its tokens so far."""


@contextmanager
def _lasting(seconds: float) -> Iterator[None]:
    """Let the block take this long, or longer."""
    until_s = time.monotonic() + seconds
    yield
    time.sleep(max(0.0, until_s - time.monotonic()))


class Drafter:
    """Drafts tokens on a node.

    Args:
        paths: of the policies that it may have.
        service: says how long a token takes.
    """

    def __init__(self, paths: Sequence[str], service: Service) -> None:
        self._policies, self._service = {path: load_token_policy(Path(path)) for path in paths}, service
        self._policy, self._drafts = self._policies[paths[0]], dict[int, GreedyDraft]()

    def opinions(self, asks: Sequence[Ask]) -> list[Opinion]:
        """Return the next token of each chunk."""
        found = []
        with _lasting(self._service.draft_s + self._service.draft_more_s * len(asks)):
            for index, observations, tokens in asks:
                if index not in self._drafts:
                    self._drafts[index] = GreedyDraft(self._policy, observations)
                probabilities = softmax(self._drafts[index].logits(tokens), 1.0)
                token = int(probabilities.argmax())
                found.append(Opinion(token, float(probabilities[token])))
        return found

    def use(self, path: str) -> None:
        """Draft with a policy, and forget all chunks."""
        self._policy, self._drafts = self._policies[path], {}

    def node(self) -> str:
        """Return the node that it is on."""
        return _node()


class Verifier:
    """Reads runs of tokens with the target.

    Args:
        path: of the target.
        service: says how long a pass takes.
    """

    def __init__(self, path: str, service: Service) -> None:
        self._policy, self._service = load_token_policy(Path(path)), service

    def own(self, asks: Sequence[Ask], new: int) -> list[list[int]]:
        """Return the target's tokens of each run, and the one after them; `new` tokens of all are unread."""
        found = []
        with _lasting(self._service.pass_of(new)):
            for _, observations, tokens in asks:
                codes = np.array([tokens], dtype=np.int64).reshape(1, -1)
                found.append(self._policy.begin(observations, codes).logits[0].argmax(axis=-1).tolist())
        return found

    def node(self) -> str:
        """Return the node that it is on."""
        return _node()


def _node() -> str:
    import ray

    found: str = ray.get_runtime_context().get_node_id()
    return found


@dataclass(frozen=True)
class _Chunk:
    """A chunk that actors decode: its length, and what they see at its start."""

    length: int
    for_draft: Observations
    for_target: Observations


class _Measured:
    """A duration by `expected` for a number, corrected by measured ones."""

    def __init__(self, expected: Callable[[float], float]) -> None:
        self._expected, self._share = expected, 1.0

    def __call__(self, number: float) -> float:
        """Return the duration for a number."""
        return self._share * self._expected(number)

    def add(self, took_s: float, number: float) -> None:
        """Learn what it was for a number."""
        self._share = KNOWN * self._share + (1.0 - KNOWN) * took_s / self._expected(number)


@contextmanager
def nodes_of(address: str, drafters: int) -> Iterator[None]:
    """Connect to a Ray, or start one with several nodes on this machine.

    Args:
        address: of a running one, with the resources `VERIFIER` and `DRAFTER`; empty to start one.
        drafters: nodes for drafters.

    Raises:
        ImportError: Ray is not installed.
    """
    with ExitStack() as ending:
        if not address:
            # Ray reads these as it is imported. Its workers have a low priority by default.
            ending.enter_context(environment_variables({**ENVIRONMENT, "RAY_worker_niceness": "0"}))
        import ray

        if not address:
            address = ending.enter_context(_started(drafters))
        ray.init(address=address, log_to_driver=False)
        ending.callback(ray.shutdown)
        yield


@contextmanager
def _started(drafters: int) -> Iterator[str]:
    """Start a Ray; yield its address."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": OBJECT_STORE_BYTES}
    head = {**node, "resources": {VERIFIER: 1}, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(drafters):
            cluster.add_node(**node, resources={DRAFTER: 1})
        yield cluster.address
    finally:
        cluster.shutdown()


class RayService:
    """Drafters and a verifier on the nodes of a Ray that this process is connected to.

    Attributes:
        nodes: how many nodes they are on.

    Args:
        drafts: paths of the policies that drafters may have, each on a node with the resource `DRAFTER`.
        target: path of the target, on the node with the resource `VERIFIER`.
        service: how many drafters there are, and how long everything takes.
    """

    def __init__(self, drafts: Sequence[Path], target: Path, service: Service) -> None:
        import ray

        def on(resource: str, kind: type, policy: object) -> Any:
            actor = ray.remote(kind).options(num_cpus=1, resources={resource: 1})
            return actor.remote(policy, service)

        self._ray, self._service = ray, service
        paths = [str(path.resolve()) for path in drafts]
        self._drafters = [on(DRAFTER, Drafter, paths) for _ in range(service.drafters)]
        self._verifier = on(VERIFIER, Verifier, str(target.resolve()))
        actors = (*self._drafters, self._verifier)
        self.nodes = len(set(ray.get([each.node.remote() for each in actors])))  # and they are loaded

    def serve(self, drafts: Sequence[Path], seen: Sequence[Sequence[Seen]], length: int, way: Way) -> Served:
        """Serve robots until each has its chunks.

        Args:
            drafts: which policy each drafter has.
            seen: by robot, what draft and target see at the start of each chunk.
            length: tokens of a chunk.
            way: how drafts are made.
        """
        self._ray.get(
            [each.use.remote(str(path.resolve())) for each, path in zip(self._drafters, drafts, strict=True)]
        )
        serving = Serving([[_Chunk(length, *each) for each in own] for own in seen], way, self._service)
        serving.token_s, serving.pass_s = _, pass_s = _Measured(serving.token_s), _Measured(serving.pass_s)
        began_s, free_s, until_s, new = time.monotonic(), 0.0, 0.0, 0
        made, ready = serving.made, list[Robot[_Chunk]]()
        group, batch = list[Robot[_Chunk]](), list[Robot[_Chunk]]()
        drafting: Future[None] | None = None
        verifying: Future[list[list[int]]] | None = None

        def now_s() -> float:
            return time.monotonic() - began_s

        with ThreadPoolExecutor(1) as thread:
            while serving.waiting or ready or drafting or verifying:
                if verifying is None and ready:
                    made.idle_s += now_s() - free_s
                    batch, ready = ready, []
                    new = sum(len(robot.run) - len(robot.verified) + 1 for robot in batch)
                    free_s, until_s = now_s(), now_s() + pass_s(new)
                    asks = [_ask(robot, for_target=True) for robot in batch]
                    verifying = self._verifier.own.remote(asks, new).future()
                if drafting is None and serving.begins(verifying is not None):
                    group, busy_s = serving.group(), 0.0 if verifying is None else until_s - now_s()
                    drafting = thread.submit(self._draft, serving, group, busy_s)
                pending: list[Future[Any]] = [each for each in (drafting, verifying) if each]
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                if drafting in done:
                    drafting.result()
                    ready, drafting = ready + group, None
                if verifying in done:
                    pass_s.add(now_s() - free_s, new)
                    for robot, own in zip(batch, verifying.result(), strict=True):
                        serving.verified(robot, own, now_s())
                    verifying, free_s = None, now_s()
        made.time_s = now_s()
        return made

    def _draft(self, serving: Serving[_Chunk], group: Sequence[Robot[_Chunk]], busy_s: float) -> None:
        """Draft for a group; see `Serving.wanting`."""
        began_s = token_began_s = time.monotonic()
        while wanting := serving.wanting(group, token_began_s - began_s, busy_s):
            of_each = [
                [robot for robot in wanting if drafter in robot.opinions]
                for drafter in range(len(self._drafters))
            ]
            found = self._ray.get(
                [
                    drafter.opinions.remote([_ask(robot) for robot in robots])
                    for drafter, robots in zip(self._drafters, of_each, strict=True)
                ]
            )
            by_robot: dict[int, list[Opinion]] = {robot.number: [] for robot in wanting}
            for robots, opinions in zip(of_each, found, strict=True):
                for robot, opinion in zip(robots, opinions, strict=True):
                    by_robot[robot.number].append(opinion)
            for robot in wanting:
                serving.draft(robot, by_robot[robot.number])
            now_s = time.monotonic()
            assert isinstance(serving.token_s, _Measured)
            serving.token_s.add(now_s - token_began_s, sum(len(robot.opinions) for robot in wanting))
            token_began_s = now_s


def _ask(robot: Robot[_Chunk], for_target: bool = False) -> Ask:
    index, chunk = robot.texts[0]
    return index, chunk.for_target if for_target else chunk.for_draft, robot.run
