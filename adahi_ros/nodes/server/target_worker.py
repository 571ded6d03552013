# SPDX-License-Identifier: Apache-2.0
"""A thread for each target, so that a slow one delays neither other targets nor the node's services."""

from __future__ import annotations

import threading
import weakref
from concurrent.futures import Future
from queue import SimpleQueue

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.server.verification_request import VerificationRequest
from adahi_ros.server.verifier import Verifier

Said = Future[list[Verdict | Exception]]
_Work = tuple[VerificationRequest, np.ndarray, float, Said]


class TargetWorker:
    """A `Verifier` that computes in a thread; the engine gives it one batch at a time.

    The thread ends after its batch once nothing refers to this object. It never delays the process's end.

    Args:
        verifier: computes; no other thread may use it from now on.
    """

    def __init__(self, verifier: Verifier) -> None:
        self.signature, self.draws = verifier.signature, verifier.draws
        self.rule, self.acceptance = verifier.rule, verifier.acceptance
        self.fingerprint = verifier.fingerprint
        self.at_once = 1
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        threading.Thread(target=_compute, args=(verifier, self._work), name="target", daemon=True).start()
        weakref.finalize(self, self._work.put, None)

    def submit(self, request: VerificationRequest, draws: np.ndarray, until_s: float) -> Said:
        """See `Verifier`."""
        said: Said = Future()
        self._work.put((request, draws, until_s, said))
        return said


def _compute(verifier: Verifier, work: SimpleQueue[_Work | None]) -> None:
    while (each := work.get()) is not None:
        request, draws, until_s, said = each
        try:
            said.set_result(verifier.submit(request, draws, until_s).result())
        except Exception as error:  # noqa: BLE001  a fault of one batch must not end the thread
            said.set_exception(error.with_traceback(None))
        del each, request, draws, said  # the next batch may be far away
