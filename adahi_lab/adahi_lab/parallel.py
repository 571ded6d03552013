# SPDX-License-Identifier: Apache-2.0
"""Runs jobs on all cores, each in a separate process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing, contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from adahi_ros.core.signals import leaving_on

T = TypeVar("T")
WAKE_S = 0.5
Job = tuple[Callable[..., T], tuple[Any, ...]]


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_jobs(
    jobs: Sequence[Job[T]], workers: int, on_done: Callable[[int], None] = lambda index: None
) -> list[T]:
    """Run jobs; return their results in the order of the jobs.

    Arguments and errors as of `ended_jobs`. `on_done` is called with the index of each job that has ended.
    """
    results: dict[int, T] = {}
    with closing(ended_jobs(jobs, workers)) as ended:
        for index, result in ended:
            results[index] = result
            on_done(index)
    return [results[index] for index in range(len(jobs))]


def ended_jobs(jobs: Sequence[Job[T]], workers: int) -> Generator[tuple[int, T], None, None]:
    """Run jobs; yield the index and the result of each as it ends. Close it unless you exhaust it.

    A job's result must not depend on its process, so that results do not depend on the number of workers.
    At the end, also by Ctrl-C or SIGTERM, no process is left behind; running jobs are not awaited.

    Args:
        jobs: functions with their arguments; both must pickle.
        workers: processes; with 1, everything runs in this one.

    Raises:
        ValueError: less than one worker.
        Exception: the first that a job raises.
    """
    if workers < 1:
        raise ValueError(f"workers: {workers}, must be at least 1")
    if min(workers, len(jobs)) <= 1:
        for index, (function, arguments) in enumerate(jobs):
            yield index, function(*arguments)
    else:
        context = multiprocessing.get_context("spawn")  # forking a process that has threads may hang
        reader, writer = context.Pipe(duplex=False)
        pool = ProcessPoolExecutor(min(workers, len(jobs)), context, _begin, (reader,))
        with leaving_on(signal.SIGINT, signal.SIGTERM), pool, reader, writer:
            yield from _ended(pool, jobs)


@contextmanager
def _sigint_waits() -> Iterator[None]:
    """Start processes that never receive SIGINT, also not during their imports.

    Ctrl-C reaches the whole process group, but only this process is to act on it. Processes start with the
    mask of the thread that starts them.
    """
    resource_tracker.ensure_running()  # its own start unblocks SIGINT, in some versions of Python
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _ended(pool: ProcessPoolExecutor, jobs: Sequence[Job[T]]) -> Iterator[tuple[int, T]]:
    """Yield the index and the result of each job as it ends."""
    with _sigint_waits():
        running: dict[Future[T], int] = {
            pool.submit(_work, function, *arguments): index
            for index, (function, arguments) in enumerate(jobs)
        }
    while running:
        # Awake now and then: where another thread is given the signal, a wait without end sleeps through it.
        ended, _ = wait(running, WAKE_S, FIRST_COMPLETED)
        for future in ended:
            yield running.pop(future), future.result()


def run_alike(function: Callable[..., None], arguments: tuple[object, ...], workers: int) -> list[int]:
    """Run the same function in separate processes until all have ended; return their exit codes.

    If one is killed, the others continue. None is left behind.

    Args:
        function: what to run; it and its arguments must pickle.
        arguments: of each.
        workers: processes.

    Returns:
        Their exit codes, below 0 for the signal that killed one.
    """
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    processes = [
        context.Process(target=_run_beside, args=(reader, function, arguments)) for _ in range(workers)
    ]
    with leaving_on(signal.SIGINT, signal.SIGTERM), reader, writer:
        try:
            with _sigint_waits():
                for process in processes:
                    process.start()
            for process in processes:
                while process.exitcode is None:
                    process.join(WAKE_S)
        finally:
            for process in processes:
                if process.pid is not None:
                    process.terminate()
                    process.join()
    return [process.exitcode or 0 for process in processes]


def _run_beside(pipe: Connection, function: Callable[..., None], arguments: tuple[object, ...]) -> None:
    """Run a function that ends with its parent process, which closes the pipe then."""
    os.environ["OMP_NUM_THREADS"] = "1"

    def end() -> None:
        pipe.poll(None)
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
    function(*arguments)


_between_jobs = threading.Lock()  # held then by a worker's main thread, which may be sending a result


def _work(function: Callable[..., T], *arguments: object) -> T:
    _between_jobs.release()
    try:
        return function(*arguments)
    finally:
        _between_jobs.acquire()


def _begin(pipe: Connection) -> None:
    """Set up a worker: one core; it ends, also during a job, when the other end of the pipe closes."""
    os.environ["OMP_NUM_THREADS"] = "1"
    _between_jobs.acquire()
    parent = multiprocessing.parent_process()

    def end() -> None:
        pipe.poll(None)
        # With half a result, the pool would wait forever for the other half.
        while not _between_jobs.acquire(timeout=0.1) and parent is not None and parent.is_alive():
            pass
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
