# SPDX-License-Identifier: Apache-2.0
"""Drafters and verifier on Ray, each an actor of its own; see `serving_loop`.

A pass and a drafted token take a time that is given, or longer: an actor waits for the rest of it, to emulate
large policies. Messages are in Ray's serialisation; a cluster's processes trust each other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from adahi_lab.environment_variables import environment_variables
from adahi_lab.papers.cosine.collaboration import Opinion
from adahi_lab.papers.cosine.serving import Served, Service, Way
from adahi_lab.papers.cosine.serving_loop import Ask, LiveChunk, Owns, Places, ServingLoop, own_tokens
from adahi_lab.papers.tokens.greedy_draft import GreedyDraft
from adahi_lab.papers.tokens.observed_chunks import Seen, load_token_policy
from adahi_ros.server.ray.ray_head import ENVIRONMENT, OBJECT_STORE_BYTES


class Place:
    """A policy that drafts or verifies.

    Args:
        path: of the policy.
        lasts_s: how long a drafted token of all chunks takes, or a pass.
    """

    def __init__(self, path: Path, lasts_s: float) -> None:
        self._policy, self._lasts_s = load_token_policy(path), lasts_s
        self._drafts = dict[int, GreedyDraft]()

    def opinions(self, asks: Sequence[Ask]) -> list[Opinion]:
        """Return the next token of each chunk."""
        found = []
        with self._lasting():
            for number, (seen, _), tokens in asks:
                if number not in self._drafts:
                    self._drafts[number] = GreedyDraft(self._policy, seen)
                found.append(Opinion(*self._drafts[number].next_token(tokens)))
        return found

    def own(self, asks: Sequence[Ask]) -> Owns:
        """See `own_tokens`."""
        with self._lasting():
            return own_tokens(self._policy, [(number, seen, tokens) for number, (_, seen), tokens in asks])

    @contextmanager
    def _lasting(self) -> Iterator[None]:
        until_s = time.monotonic() + self._lasts_s
        yield
        time.sleep(max(0.0, until_s - time.monotonic()))


@contextmanager
def ray_with(address: str, actors: int) -> Iterator[None]:
    """Connect to a Ray, or start one on this machine.

    Args:
        address: of a running one; empty to start one.
        actors: that one that is started has processors for.

    Raises:
        ImportError: Ray is not installed.
    """
    # Ray reads these as it is imported. Its workers have a low priority by default.
    with environment_variables({} if address else {**ENVIRONMENT, "RAY_worker_niceness": "0"}):
        import ray

        own = {"num_cpus": actors, "object_store_memory": OBJECT_STORE_BYTES, "include_dashboard": False}
        ray.init(log_to_driver=False, **({"address": address} if address else own))
        try:
            yield
        finally:
            ray.shutdown()


class RayPlaces(Places):
    """Drafters and a verifier on a Ray that this process is connected to, on as many nodes as it has.

    Args:
        drafts: paths of the drafters' policies.
        target: path of the target.
        service: how many drafters there are, and how long everything takes.
    """

    def __init__(self, drafts: Sequence[Path], target: Path, service: Service) -> None:
        import ray

        actor = ray.remote(Place).options(num_cpus=1, scheduling_strategy="SPREAD")
        super().__init__(service.drafters)
        self._service, self.present = service, [True] * service.drafters
        self._drafters = [actor.remote(path.resolve(), service.draft_s) for path in drafts]
        self._verifier = actor.remote(target.resolve(), service.pass_s)
        ray.get([each.__ray_ready__.remote() for each in (*self._drafters, self._verifier)])

    def opinions(self, drafter: int, asks: Sequence[Ask]) -> Future[list[Opinion]]:
        """See `Places`."""
        found: Future[list[Opinion]] = self._drafters[drafter].opinions.remote(asks).future()
        return found

    def own(self, asks: Sequence[Ask]) -> Future[Owns]:
        """See `Places`."""
        found: Future[Owns] = self._verifier.own.remote(asks).future()
        return found

    def serve(self, seen: Sequence[Sequence[Seen]], length: int, way: Way) -> Served:
        """Serve robots until each has its chunks.

        Args:
            seen: by robot, what draft and target see at the start of each chunk.
            length: tokens of a chunk.
            way: how drafts are made.
        """
        loop, began_s = ServingLoop(self, way, self._service), time.monotonic()
        chunks = [(robot, LiveChunk(length, each)) for robot, own in enumerate(seen) for each in own]
        for robot, chunk in chunks:
            loop.ask(robot, chunk)
        finished, made = [chunk.found.result() for _, chunk in chunks], loop.made
        made.time_s, made.chunks = time.monotonic() - began_s, [tokens for tokens, _ in finished]
        made.latencies_s = [latency_s for _, latency_s in finished]
        loop.close()
        return made
