# SPDX-License-Identifier: Apache-2.0
"""Unloads a target that no robot requests, which frees its memory, and loads it again when one does."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future

import numpy as np

from adahi_ros.core.texts import shortened
from adahi_ros.nodes.server.machine import free_memory
from adahi_ros.nodes.server.target_worker import TargetWorker
from adahi_ros.policies.interface import TargetUnavailableError
from adahi_ros.server.verifier import Verdicts, VerificationRequest, Verifier

RETRY_S = 0.25, 5.0  # shortest and longest time until a robot should request again
PAUSE_S = 5.0  # after a load that failed


class IdleTarget:
    """A `Verifier` that loads and unloads another one in a thread, which ends with this object.

    Args:
        verifier: loaded, and run once.
        load: returns it again, loaded and run once; may raise anything.
        took_s: how long that takes, for the first `retry_after_s`.
        idle_s: how long no robot requests it before it is unloaded.
        say: called with log texts, in any thread.
        away: called with the reason if it cannot be loaded, likewise.
    """

    def __init__(
        self,
        verifier: Verifier,
        load: Callable[[], Verifier],
        took_s: float,
        idle_s: float,
        say: Callable[[str], object],
        away: Callable[[str], object],
    ) -> None:
        self.terms, self.at_once, self.alone = verifier.terms, verifier.at_once, verifier.alone
        self._loading = _Loading(verifier, load, took_s, idle_s, say, away)
        threading.Thread(target=self._loading.run, name="idle target", daemon=True).start()
        weakref.finalize(self, self._loading.end)

    @property
    def state(self) -> str:
        """Whether it is loaded, for people."""
        return self._loading.state

    def submit(self, request: VerificationRequest, draws: np.ndarray, until_s: float) -> Future[Verdicts]:
        """See `Verifier`; while it is not loaded, each robot gets when to request again."""
        return self._loading.submit(request, draws, until_s)


class _Loading:
    """See `IdleTarget`; does not refer to it.

    Attributes:
        state: loaded, unloaded, loading, or why it cannot be loaded.
    """

    def __init__(
        self,
        verifier: Verifier,
        load: Callable[[], Verifier],
        took_s: float,
        idle_s: float,
        say: Callable[[str], object],
        away: Callable[[str], object],
    ) -> None:
        self.state = "loaded"
        self._terms = verifier.terms
        self._load, self._took_s, self._idle_s = load, took_s, idle_s
        self._say, self._away = say, away
        self._changed = threading.Condition()  # of all below
        self._worker: TargetWorker | None = TargetWorker(verifier)
        self._in_flight = 0
        self._used_s = self._since_s = time.monotonic()
        self._wanted = self._ended = False

    def submit(self, request: VerificationRequest, draws: np.ndarray, until_s: float) -> Future[Verdicts]:
        with self._changed:
            self._used_s = time.monotonic()
            worker = self._worker
            if worker is None:
                self._wanted = True
                self._changed.notify()
                verdicts: Future[Verdicts] = Future()
                verdicts.set_result([self._unavailable()] * len(draws))
                return verdicts
            self._in_flight += 1
        verdicts = worker.submit(request, draws, until_s)
        verdicts.add_done_callback(self._done)
        return verdicts

    def end(self) -> None:
        """End the thread."""
        with self._changed:
            self._ended, self._worker = True, None
            self._changed.notify()

    def run(self) -> None:
        """Unload and load, until the end."""
        while True:
            with self._changed:
                while not self._ended and (left_s := self._left_s()) > 0.0:
                    self._changed.wait(left_s)
                if self._ended:
                    return
                worker, self._worker, self.state = self._worker, None, "unloaded"
            if worker is not None:
                worker.close()
            free_memory()
            self._say(f"unloaded: no robot has requested it for {self._idle_s:g} s")
            while not self._loaded_again():
                pass

    def _loaded_again(self) -> bool:
        """Wait for a request, and load; return whether that is done, or it ends."""
        with self._changed:
            self._changed.wait_for(lambda: self._wanted or self._ended)
            if self._ended:
                return True
            self.state, self._since_s = "loading", time.monotonic()
        try:
            verifier = self._load()
            self._check(verifier)
        except Exception as error:  # noqa: BLE001  whatever it is, robots are waiting
            why = shortened(f"cannot be loaded again: {error}")
            del error  # its traceback would keep the partly loaded policy in memory
            free_memory()
            self._away(why)
            with self._changed:
                self.state = why
                self._changed.wait_for(lambda: self._ended, PAUSE_S)
                self._wanted = False
            return False
        with self._changed:
            self._used_s = time.monotonic()
            self._took_s = self._used_s - self._since_s
            self.state, self._wanted = "loaded", False
            self._worker = None if self._ended else TargetWorker(verifier)
        del verifier
        free_memory()
        self._say(f"loaded again in {self._took_s:.1f} s")
        return True

    def _check(self, verifier: Verifier) -> None:
        """Check that it is the same policy, because robots do not request the description again."""
        was, now = self._terms, verifier.terms
        if (was.fingerprint, was.signature) != (now.fingerprint, now.signature):
            raise ValueError("its files changed meanwhile; use load_target, or start the verifier again")

    def _left_s(self) -> float:
        """Return how long it must still stay loaded, s."""
        if self._in_flight:
            return self._idle_s
        return self._used_s + self._idle_s - time.monotonic()

    def _done(self, verdicts: Future[Verdicts]) -> None:
        with self._changed:
            self._in_flight -= 1
            self._used_s = time.monotonic()

    def _unavailable(self) -> TargetUnavailableError:
        if self.state in ("unloaded", "loading"):
            loaded_s = time.monotonic() - self._since_s if self.state == "loading" else 0.0
            return TargetUnavailableError("the target is being loaded", _clipped(self._took_s - loaded_s))
        return TargetUnavailableError(self.state, PAUSE_S)


def _clipped(after_s: float) -> float:
    return min(max(after_s, RETRY_S[0]), RETRY_S[1])
