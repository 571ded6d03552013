# SPDX-License-Identifier: Apache-2.0
"""Many robots, several drafters and one verifier in real time, on places of any kind.

    robots ─▶ this process ─▶ drafters: the next token of each robot of a group, then fused, token by token
              (`Serving`)  ─▶ verifier: the runs of a group, in one pass

`serving_ray` has actors on the nodes of a Ray, `serving_nodes` ROS nodes. A chunk that is asked for while
others are decoded is in the next group. A drafter that fails or is silent is left out until it replies again.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from queue import SimpleQueue
from typing import Any

import numpy as np

from adahi_lab.papers.cosine.collaboration import Opinion
from adahi_lab.papers.cosine.serving import Robot, Service, Serving, Way
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_ros.policies.interface import TargetUnavailableError
from adahi_ros.protocol.request import RequestError, RequestFault

GATHER_SHARE = 0.02  # of a pass: the next group waits so long for robots that ask again
KNOWN = 0.9  # share of a measured duration that remains from one to the next
SILENT_S, SILENT_TOKENS = 0.5, 4.0  # a drafter is silent after this, and so many times a token's duration

Ask = tuple[int, Any, list[int]]
"""A chunk by its number, what its robot observes, and its tokens so far."""
Owns = list[list[int] | None]
"""The target's tokens of runs, n + 1 each; None where they are not finite."""


class Places(ABC):
    """Where drafters and verifier compute.

    Attributes:
        present: whether each drafter replies; changes in any thread.

    Args:
        drafters: how many there are.
    """

    def __init__(self, drafters: int) -> None:
        self.present = [False] * drafters

    @abstractmethod
    def opinions(self, drafter: int, asks: Sequence[Ask]) -> Future[list[Opinion]]:
        """Begin to draft the next token of each chunk."""

    @abstractmethod
    def own(self, asks: Sequence[Ask]) -> Future[Owns]:
        """Begin to verify: `own_tokens` of the target."""

    def lost(self, drafter: int, why: str) -> None:
        """Leave a drafter out."""
        self.present[drafter] = False


@dataclass(eq=False)
class LiveChunk:
    """A chunk that places decode.

    Attributes:
        length: of the chunk.
        seen: what its robot observes, as places need it.
        number: of the chunk; each has another.
        found: its tokens, and how long it took; RequestError if the target makes nothing of the observation,
            or the target's error.
    """

    length: int
    seen: Any
    number: int = field(default_factory=count().__next__)
    found: Future[tuple[list[int], float]] = field(default_factory=Future)


class _Measured:
    """A duration by `expected` for a number, corrected by measured ones."""

    def __init__(self, expected: Callable[[float], float]) -> None:
        self._expected, self._share, self._known = expected, 1.0, 0.0

    def __call__(self, number: float) -> float:
        """Return the duration for a number."""
        return self._share * self._expected(number)

    def add(self, took_s: float, number: float) -> None:
        """Learn what it was for a number."""
        self._share = self._known * self._share + (1.0 - self._known) * took_s / self._expected(number)
        self._known = KNOWN

    def expect_less(self) -> None:
        """Expect less while nothing is measured, so that it is tried again."""
        self._share, self._known = KNOWN * self._share, 0.0


class ServingLoop:
    """Decodes chunks for robots, in a thread of its own, until it is closed.

    Attributes:
        made: what happened; the chunks are with those who ask.

    Args:
        places: of drafters and verifier.
        way: how drafts are made.
        service: how many drafters there are, and how long everything takes at first.
    """

    def __init__(self, places: Places, way: Way, service: Service) -> None:
        self._places, self._serving = places, Serving[LiveChunk](way, service)
        self.made = self._serving.made
        self._token_s, self._pass_s = _Measured(service.token_s), _Measured(service.pass_of)
        self._serving.token_s, self._serving.pass_s = self._token_s, self._pass_s
        self._ready, self._verifying = list[Robot[LiveChunk]](), list[Robot[LiveChunk]]()
        self._drafting = False
        self._free_s = self._until_s = time.monotonic()
        self._events: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._drafter = ThreadPoolExecutor(1, "draft")
        self._thread = threading.Thread(target=self._run, name="serving", daemon=True)
        self._thread.start()

    def ask(self, robot: Hashable, chunk: LiveChunk) -> None:
        """Decode a chunk for a robot, after those that it has asked for."""
        self._events.put(lambda: self._serving.add(robot, chunk, time.monotonic()))

    def close(self) -> None:
        """End; chunks that are not finished have a `TargetUnavailableError`."""
        self._events.put(None)
        self._thread.join()
        self._drafter.shutdown(wait=True)

    def _run(self) -> None:
        while (event := self._events.get()) is not None:
            try:
                event()
                if self._events.empty():
                    self._continue()
            except Exception as error:  # noqa: BLE001  no chunk may wait for ever
                self._end_all(f"its drafts failed: {error!r}")
        self._end_all("its verifier was ended")

    def _end_all(self, why: str) -> None:
        self._ready, self._verifying, self._drafting = [], [], False
        while robots := list(self._serving.robots.values()):
            for robot in robots:
                chunk = self._serving.end(robot, 0.0)[0]
                chunk.found.set_exception(TargetUnavailableError(f"target: {why}"))
        self._serving.waiting.clear()

    def _continue(self) -> None:
        if self._ready and not self._verifying:
            self._verify()
        if not self._drafting and self._serving.begins(bool(self._verifying)):
            self._begin_draft()

    def _begin_draft(self) -> None:
        """Begin to draft for the next group."""
        self._serving.present = [number for number, there in enumerate(self._places.present) if there]
        group, self._drafting = self._serving.group(), True
        busy_s = max(0.0, self._until_s - time.monotonic()) if self._verifying else 0.0
        drafted = self._drafter.submit(self._draft, group, busy_s)
        drafted.add_done_callback(lambda found: self._events.put(partial(self._drafted, group, found)))

    def _drafted(self, group: list[Robot[LiveChunk]], found: Future[None]) -> None:
        found.result()
        self._ready, self._drafting = self._ready + group, False

    def _verify(self) -> None:
        """Begin to verify all that is ready."""
        batch, self._ready = self._ready, []
        self._verifying, began_s = batch, time.monotonic()
        self.made.idle_s += began_s - self._free_s
        new = sum(len(robot.run) - len(robot.verified) + 1 for robot in batch)
        self._until_s = began_s + self._pass_s(new)
        verdicts = self._places.own([_ask(robot) for robot in batch])
        verdicts.add_done_callback(
            lambda found: self._events.put(lambda: self._verified(found, time.monotonic() - began_s, new))
        )

    def _verified(self, found: Future[Owns], took_s: float, new: int) -> None:
        batch, self._verifying, self._free_s = self._verifying, [], time.monotonic()
        if (error := found.exception()) is not None:
            for robot in batch:
                self._serving.end(robot, self._free_s)[0].found.set_exception(error)
            return
        self._pass_s.add(took_s, new)
        if new == len(batch):
            self._token_s.expect_less()
        for robot, own in zip(batch, found.result(), strict=True):
            if own is None:
                what = "observation_window: so far from the task's that the target's prediction is not finite"
                error = RequestError(RequestFault.NOT_FINITE, what)
                self._serving.end(robot, self._free_s)[0].found.set_exception(error)
            elif (finished := self._serving.verified(robot, own, self._free_s)) is not None:
                finished[0].found.set_result(finished[1:])
        time.sleep(GATHER_SHARE * took_s)

    def _draft(self, group: Sequence[Robot[LiveChunk]], busy_s: float) -> None:
        """Draft for a group; see `Serving.wanting`."""
        began_s = token_began_s = time.monotonic()
        while wanting := self._serving.wanting(group, token_began_s - began_s, busy_s):
            opinions = self._opinions(wanting)
            for robot, own in zip(wanting, opinions, strict=True):
                self._serving.draft(robot, own)
            now_s, number = time.monotonic(), sum(map(len, opinions))
            if number:
                self._token_s.add(now_s - token_began_s, number)
            token_began_s = now_s

    def _opinions(self, wanting: Sequence[Robot[LiveChunk]]) -> list[dict[int, Opinion]]:
        """Return the opinions of each robot's drafters, of those that reply in time."""
        by_drafter, asked = dict[int, list[int]](), dict[int, Future[list[Opinion]]]()
        for place, robot in enumerate(wanting):
            for drafter in robot.opinions:
                by_drafter.setdefault(drafter, []).append(place)
        for drafter, places in by_drafter.items():
            if self._places.present[drafter]:
                asked[drafter] = self._places.opinions(drafter, [_ask(wanting[place]) for place in places])
        most_s = SILENT_S + SILENT_TOKENS * self._token_s(sum(map(len, by_drafter.values())))
        wait(asked.values(), most_s)
        found: list[dict[int, Opinion]] = [{} for _ in wanting]
        for drafter, replied in asked.items():
            if not replied.done() or replied.exception() is not None:
                why = str(replied.exception()) if replied.done() else f"no reply for {most_s:.1f} s"
                self._places.lost(drafter, why)
                continue
            for place, opinion in zip(by_drafter[drafter], replied.result(), strict=True):
                found[place][drafter] = opinion
        return found


def own_tokens(policy: TokenPolicy, asks: Sequence[Ask]) -> Owns:
    """Return a target's tokens of each run, and the one after them, by one pass over all runs.

    Of each the robot's `Observations` are given.
    """
    signature, sizes = policy.signature, [len(tokens) for _, _, tokens in asks]
    codes = np.zeros((len(asks), max(sizes)), dtype=np.int64)
    for row, (_, _, tokens) in zip(codes, asks, strict=True):
        row[: len(tokens)] = tokens
    windows = np.concatenate([signature.window(seen) for _, seen, _ in asks])
    goals = np.concatenate([signature.condition(seen) for _, seen, _ in asks])
    logits = policy.begin(signature.observations(windows, goals), codes).logits
    runs = (each[: size + 1] for each, size in zip(logits, sizes, strict=True))
    return [run.argmax(axis=-1).tolist() if np.isfinite(run).all() else None for run in runs]


def _ask(robot: Robot[LiveChunk]) -> Ask:
    return robot.texts[0].number, robot.texts[0].seen, robot.run
