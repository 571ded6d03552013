# SPDX-License-Identifier: Apache-2.0
"""A chunk decoded for real: the draft in this thread, runs read by targets in others, void ones stopped."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread

from adahi_ros.core.signature import Observations
from adahi_ros.policies.tokens.greedy_draft import GreedyDraft
from adahi_ros.policies.tokens.layered_target import LayeredTarget, VoidRunError
from adahi_ros.proposers.token_runs import Run, TokenRuns, agreed, contradicts


@dataclass(frozen=True)
class ByThreads:
    """A chunk, and how long it took.

    Attributes:
        tokens: of the chunk.
        took_s: wall time.
        runs: that were sent.
        drafted: tokens that were drafted.
    """

    tokens: list[int]
    took_s: float
    runs: int
    drafted: int


def by_threads(
    draft: GreedyDraft,
    targets: Sequence[LayeredTarget],
    observations: Observations,
    batch: int,
    most: int,
    draft_s: float = 0.0,
) -> ByThreads:
    """Decode a chunk; a run goes to the first target that is free.

    Args:
        draft: drafts.
        targets: each reads as many runs at once as its `at_once` says.
        observations: of one robot, as the targets read them.
        batch: drafted tokens per run.
        most: runs in flight.
        draft_s: wait after each drafted token, to emulate a slower draft.
    """
    runs = TokenRuns(targets[0].codec.codebooks, batch, most)
    work: SimpleQueue[Run | None] = SimpleQueue()
    done: SimpleQueue[tuple[Run, list[int] | Exception]] = SimpleQueue()

    def read(target: LayeredTarget) -> None:
        while (run := work.get()) is not None:
            try:
                done.put((run, target.run(observations, run.tokens, lambda run=run: _void(run, runs))))  # type: ignore[misc]
            except Exception as error:  # noqa: BLE001  the caller gets it
                done.put((run, error))

    threads = [Thread(target=read, args=(each,)) for each in targets for _ in range(each.at_once)]
    for thread in threads:
        thread.start()
    started_s, sent, drafted = time.monotonic(), 0, 0
    try:
        while not runs.done:
            while (run := runs.due()) is not None:
                work.put(run)
                sent += 1
            try:
                found, own = done.get(block=not runs.wants_draft)
            except Empty:
                runs.draft(draft.next_token(runs.drafted))
                drafted += 1
                time.sleep(draft_s)
                continue
            if isinstance(own, VoidRunError):
                runs.lost(found)
            elif isinstance(own, Exception):
                raise own
            else:
                runs.returned(found, *agreed(found.tokens, own))
        took_s = time.monotonic() - started_s
    finally:
        for _ in threads:
            work.put(None)
        for thread in threads:
            thread.join()
    return ByThreads(runs.verified, took_s, sent, drafted)


def _void(run: Run, runs: TokenRuns) -> bool:
    """Return whether other tokens were verified, or all of them."""
    return runs.done or contradicts(run.tokens, runs.verified)
