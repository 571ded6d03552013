# SPDX-License-Identifier: Apache-2.0
"""How long a pipelined chunk takes, by a simulated clock. The decisions are those of `TokenRuns`.

    drafter ──▶ link ──▶ lane 1: stage 1 ▶ stage 2 ▶ ...       PipeInfer: one lane of several stages
                         lane 2: ...                           DSI: several lanes of one stage

A stage reads one run at a time, layer by layer. A void run leaves its stage after the present layer.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from adahi_lab.papers.pipeinfer.token_runs import CUTOFF, NO_CUTOFF, Cutoff, Run, TokenRuns, contradicts
from adahi_lab.papers.tokens.run_clock import Decoded, Machines
from adahi_lab.papers.tokens.texts import Text, agreed
from adahi_lab.papers.tokens.token_pair import CLUSTER, TOKENS_PER_RUN, Chunks, Simulated, by_clock

INSTANCES = 7  # as in DSI's simulations
UNBOUNDED = 1000  # runs in flight


def ways(chunks: Chunks) -> dict[str, Simulated]:
    """Return PipeInfer and DSI; see `Clock`."""
    instances = replace(CLUSTER, stages=1, layers=CLUSTER.stages * CLUSTER.layers)
    lanes = {f"DSI, {count}": (replace(instances, lanes=count), count, NO_CUTOFF) for count in (2, INSTANCES)}
    return {
        name: by_clock(chunks, lambda text, how=how: pipelined(text, TOKENS_PER_RUN, *how))  # type: ignore[misc]
        for name, how in {"PipeInfer": (CLUSTER, UNBOUNDED, CUTOFF), **lanes}.items()
    }


def pipelined(text: Text, batch: int, machines: Machines, most: int, cutoff: Cutoff = NO_CUTOFF) -> Decoded:
    """Draft on while runs are read.

    Args:
        text: to decode.
        batch: drafted tokens per run.
        machines: target and draft.
        most: runs in flight.
        cutoff: of the draft.
    """
    return _Simulation(text, machines, TokenRuns(text.length, batch, most, cutoff=cutoff)).decoded()


class _Simulation:
    def __init__(self, text: Text, machines: Machines, runs: TokenRuns) -> None:
        self._text, self._machines, self._runs = text, machines, runs
        self._made = Decoded()
        self._now_s, self._count = 0.0, 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._drafting: list[int] | None = None  # after these
        self._known = [list[int]() for _ in range(machines.lanes)]
        self._queues = [[deque[Run]() for _ in range(machines.stages)] for _ in range(machines.lanes)]
        self._busy = [[False] * machines.stages for _ in range(machines.lanes)]

    def decoded(self) -> Decoded:
        self._send()
        while not self._runs.done:
            self._now_s, _, happen = heapq.heappop(self._events)
            happen()
        self._made.time_s, self._made.tokens = self._now_s, self._runs.verified
        return self._made

    def _after(self, delay_s: float, happen: Callable[[], None]) -> None:
        self._count += 1  # events at one time happen in the order in which they were planned
        heapq.heappush(self._events, (self._now_s + delay_s, self._count, happen))

    def _send(self) -> None:
        """Send all runs that are due, and draft on."""
        while (run := self._runs.next_run()) is not None:
            self._after(self._machines.link_s, lambda run=run: self._arrive(run))  # type: ignore[misc]
        if self._drafting is None and self._runs.wants_draft:
            self._drafting = before = list(self._runs.drafted)
            self._after(self._machines.draft_s, lambda: self._drafted(before))

    def _drafted(self, before: list[int]) -> None:
        if before is not self._drafting:
            return  # it was stopped
        self._drafting = None
        self._runs.draft(*self._text.drafted(before))
        self._send()

    def _arrive(self, run: Run) -> None:
        waiting = [len(queues[0]) + busy[0] for queues, busy in zip(self._queues, self._busy, strict=True)]
        self._queue(waiting.index(min(waiting)), 0, run)

    def _queue(self, lane: int, stage: int, run: Run) -> None:
        self._queues[lane][stage].append(run)
        self._next(lane, stage)

    def _next(self, lane: int, stage: int) -> None:
        """Let an idle stage read its next run."""
        while self._queues[lane][stage] and not self._busy[lane][stage]:
            run = self._queues[lane][stage].popleft()
            if stage == 0:
                self._made.passes += 1
            self._busy[lane][stage] = True
            self._layer(lane, stage, run, 0)

    def _layer(self, lane: int, stage: int, run: Run, layer: int) -> None:
        """Read the next layer of a run, or stop it."""
        machines = self._machines
        over, passed = layer == machines.layers, stage * machines.layers + layer
        if machines.cancels and self._void(lane, run) and passed < machines.stages * machines.layers:
            self._made.void += 1
            self._made.saved += machines.stages * machines.layers - passed
        elif not over:
            self._after(machines.layer_s, lambda: self._layer(lane, stage, run, layer + 1))
            return
        elif stage + 1 < machines.stages:
            self._after(machines.link_s, lambda: self._queue(lane, stage + 1, run))
        else:
            self._finish(lane, run)
        self._busy[lane][stage] = False
        self._next(lane, stage)

    def _void(self, lane: int, run: Run) -> bool:
        known = self._known[lane]
        return contradicts(run.tokens, known) or len(run.tokens) < len(known)

    def _finish(self, lane: int, run: Run) -> None:
        accepted, following = agreed(run.tokens, self._text.own(run.tokens))
        found = [*run.tokens[:accepted], following]
        for each in range(self._machines.lanes) if self._machines.shares else (lane,):
            self._known[each] = max(self._known[each], found, key=len)
        self._after(self._machines.link_s, lambda: self._reply(run, accepted, following))

    def _reply(self, run: Run, accepted: int, following: int) -> None:
        self._runs.returned(run, accepted, following)
        if self._drafting is not None and self._drafting != self._runs.drafted:
            self._drafting = None  # its tokens were refused
        self._send()
