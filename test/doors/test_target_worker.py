"""A target that stalls does not delay another, and its thread ends with it."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from concurrent.futures import Future

import numpy as np

from adahi_ros.doors.target_worker import TargetWorker
from adahi_ros.protocol.request import INTERNAL_ERROR, OK
from adahi_ros.server.verifier import TargetVerifier, Verdicts, VerificationRequest
from test.nodes.server.test_request_scheduler import OTHER, Front, Still

LONG_S = 20.0


class Stalling(TargetVerifier):
    """Waits, and then verifies or fails."""

    def __init__(self, go_on: threading.Event, error: Exception | None = None) -> None:
        super().__init__(Still(), "replace")
        self._go_on, self._error = go_on, error

    def submit(self, request: VerificationRequest, draws: np.ndarray, until_s: float) -> Future[Verdicts]:
        assert self._go_on.wait(LONG_S)
        if self._error is not None:
            raise self._error
        return super().submit(request, draws, until_s)


def served(front: Front, woken: threading.Event) -> list[tuple[int, int, float]]:
    """Serve until a reply goes out."""
    end_s = time.monotonic() + LONG_S
    while not (sent := front.serve()) and time.monotonic() < end_s:
        woken.wait(1.0)
        woken.clear()
    return sent


def test_a_stalled_target_does_not_delay_another() -> None:
    stall, free, woken = threading.Event(), threading.Event(), threading.Event()
    free.set()
    workers = TargetWorker(Stalling(stall)), TargetWorker(Stalling(free))
    front = Front(verifiers=workers, wake=woken.set)
    front.air.ask("arm", 0)
    assert front.serve() == []
    front.air.ask("hand", 1, target=OTHER)
    assert served(front, woken) == [(1, OK, 0.0)]
    stall.set()
    assert served(front, woken) == [(0, OK, 0.0)]


def test_a_fault_in_the_thread_costs_one_batch() -> None:
    free, woken = threading.Event(), threading.Event()
    free.set()
    worker = TargetWorker(Stalling(free, OSError("broken")))
    front = Front(verifiers=(worker, worker), wake=woken.set)
    for step in range(2):
        front.air.ask("arm", step)
        assert served(front, woken) == [(step, INTERNAL_ERROR, 0.0)]


def test_the_thread_ends_when_nothing_refers_to_its_target() -> None:
    before = set(threading.enumerate())
    worker = TargetWorker(Stalling(threading.Event()))
    (thread,) = set(threading.enumerate()) - before
    del worker
    gc.collect()
    thread.join(LONG_S)
    assert not thread.is_alive()


ENDS = """
import time
from adahi_ros.doors.target_worker import TargetWorker

class Heavy:
    terms, at_once, alone = None, 1, True

    def __del__(self):
        time.sleep(0.3)
        print("freed", flush=True)

worker = TargetWorker(Heavy())
"""


def test_a_policy_is_freed_before_the_process_ends() -> None:
    run = [sys.executable, "-c", ENDS]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("freed\n", "")
