# SPDX-License-Identifier: Apache-2.0
"""Threads for each target, so that a slow one delays neither other targets nor the node's services."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from concurrent.futures import Future
from queue import SimpleQueue

import numpy as np

from adahi_ros.server.verifier import Verdicts, VerificationRequest, Verifier

_Work = tuple[VerificationRequest, np.ndarray, float, Future[Verdicts]]
PARTING_S = 3.0  # for the last batch, at the process's end
_THREADS: weakref.WeakKeyDictionary[threading.Thread, SimpleQueue[_Work | None]] = weakref.WeakKeyDictionary()


class TargetWorker:
    """A `Verifier` that computes in threads, one for each batch that the engine gives it at once.

    A thread ends after its batch once nothing refers to this object. It delays the process's end by at most
    `PARTING_S`.

    Args:
        verifier: computes; no other thread may use it from now on.
    """

    def __init__(self, verifier: Verifier) -> None:
        self.terms, self.at_once, self.alone = verifier.terms, verifier.at_once, verifier.alone
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=_compute, args=(verifier, self._work), name="target", daemon=True)
            for _ in range(self.at_once)
        ]
        for thread in self._threads:
            _THREADS[thread] = self._work
            thread.start()
            weakref.finalize(self, self._work.put, None)

    def submit(self, request: VerificationRequest, draws: np.ndarray, until_s: float) -> Future[Verdicts]:
        """See `Verifier`."""
        verdicts: Future[Verdicts] = Future()
        self._work.put((request, draws, until_s, verdicts))
        return verdicts


@atexit.register
def _end_threads() -> None:
    """End all threads before Python ends: it aborts where torch computes or frees a policy meanwhile."""
    until_s = time.monotonic() + PARTING_S
    for thread, work in list(_THREADS.items()):
        work.put(None)
        thread.join(max(until_s - time.monotonic(), 0.0))


def _compute(verifier: Verifier, work: SimpleQueue[_Work | None]) -> None:
    while (each := work.get()) is not None:
        request, draws, until_s, verdicts = each
        try:
            verdicts.set_result(verifier.submit(request, draws, until_s).result())
        except Exception as error:  # noqa: BLE001  a fault of one batch must not end the thread
            verdicts.set_exception(error.with_traceback(None))
        del each, request, draws, verdicts  # the next batch may be far away
