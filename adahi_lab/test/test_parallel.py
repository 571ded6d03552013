from __future__ import annotations

import math
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adahi_lab.parallel import cores, run_jobs

DEADLINE_S = 60  # only what never ends takes longer

# One job ends, so that its worker has nothing to do, and one waits for ever.
PROGRAM = """
import os, signal
from adahi_lab.parallel import run_jobs
if __name__ == "__main__":
    jobs = [(os.getpid, ()), (signal.pause, ())]
    run_jobs(jobs, 2, lambda index: print("ended", index, flush=True))
"""


@pytest.mark.parametrize("workers", [1, 2, 50])
def test_results_are_in_the_order_of_the_jobs_and_each_is_reported_once(workers: int) -> None:
    reported: list[int] = []
    # The first takes by far the longest.
    jobs: list[Any] = [(math.factorial, (20_000,)), *((pow, (2, power)) for power in range(5))]
    assert run_jobs(jobs, workers, reported.append) == [math.factorial(20_000), 1, 2, 4, 8, 16]
    assert sorted(reported) == list(range(len(jobs)))
    if workers == 1:
        assert reported == list(range(len(jobs)))


@pytest.mark.parametrize("workers", [1, 4])
def test_no_jobs_have_no_results(workers: int) -> None:
    assert run_jobs([], workers, lambda index: pytest.fail("told of a job")) == []


Job = tuple[Callable[..., Any], tuple[Any, ...]]


def test_one_worker_is_this_process_and_more_are_others_with_a_core_each() -> None:
    assert run_jobs([(os.getpid, ())] * 3, 1) == [os.getpid()] * 3
    others = run_jobs([(os.getpid, ())] * 3, 2)
    assert os.getpid() not in others
    assert len(set(others)) <= 2
    assert run_jobs([(os.getenv, ("OMP_NUM_THREADS",))] * 2, 2) == ["1", "1"]
    assert multiprocessing.active_children() == []


def test_an_exception_of_a_job_is_raised_here() -> None:
    reported: list[int] = []
    with pytest.raises(ValueError, match=r"math domain error|nonnegative"):
        run_jobs([(math.sqrt, (4.0,)), (math.sqrt, (-1.0,)), (math.sqrt, (9.0,))], 1, reported.append)
    assert reported == [0]


def test_an_exception_ends_the_call_though_another_job_never_ends() -> None:
    jobs: list[Job] = [(signal.pause, ()), (math.sqrt, (-1.0,))]
    with pytest.raises(ValueError, match=r"math domain error|nonnegative"):
        run_jobs(jobs, 2)
    assert multiprocessing.active_children() == []


def test_a_callback_may_end_the_call_too() -> None:
    def stop(index: int) -> None:
        raise KeyboardInterrupt

    jobs: list[Job] = [(signal.pause, ()), (math.sqrt, (4.0,))]
    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, 2, stop)
    assert multiprocessing.active_children() == []


def test_ctrl_c_is_acted_on_by_this_process_alone() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    jobs: list[Job] = [(signal.raise_signal, (signal.SIGINT,)), (pow, (2, 3))]
    try:
        results = run_jobs(jobs, 2)
    except KeyboardInterrupt:
        pytest.fail("a worker acted on it")
    assert results == [None, 8]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    assert signal.SIGINT not in before


@pytest.fixture
def running(deaf: Callable[[], None]) -> Iterator[subprocess.Popen[str]]:
    """The program with one job left, which has inherited no ear for signals, and leads a process group."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=deaf,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ended 0\n"
        yield running
        running.kill()


def test_ctrl_c_leaves_no_process_behind(running: subprocess.Popen[str]) -> None:
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does
    # Every process of the group holds the pipes: reading ends once all of them have.
    output, complained = running.communicate(timeout=DEADLINE_S)
    assert output == ""
    assert complained.count("Traceback") == 1, complained
    assert complained.rstrip().endswith("KeyboardInterrupt")


def test_sigterm_leaves_no_process_behind(running: subprocess.Popen[str]) -> None:
    running.send_signal(signal.SIGTERM)
    assert running.communicate(timeout=DEADLINE_S) == ("", "")
    assert running.returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize("workers", [0, -1])
def test_less_than_one_worker_is_refused(workers: int) -> None:
    with pytest.raises(ValueError, match=f"^workers: {workers}, must be at least 1$"):
        run_jobs([(os.getpid, ())], workers)


def test_there_is_a_core_to_work_on() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)


ALIKE = """
import os, signal, sys
from pathlib import Path
from adahi_lab.parallel import run_alike

def work(folder):
    try:
        (Path(folder) / "first").touch(exist_ok=False)
    except FileExistsError:
        (Path(folder) / "other").touch()
    else:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    print(sorted(run_alike(work, (sys.argv[1],), 2)))
"""


def test_of_processes_that_do_alike_one_that_is_killed_is_let_go(tmp_path: Path) -> None:
    program = tmp_path / "alike.py"
    program.write_text(ALIKE)
    ended = subprocess.run([sys.executable, program, tmp_path], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.returncode) == (f"[{-signal.SIGKILL}, 0]\n", 0), ended.stderr
    assert (tmp_path / "other").exists()


IMPORTED = """
import os, signal
if __name__ == "__mp_main__":
    os.kill(os.getpid(), signal.SIGINT)  # amid the imports of a worker

from adahi_lab.parallel import run_alike, run_jobs

def work():
    pass

if __name__ == "__main__":
    print(run_alike(work, (), 2), run_jobs([(work, ())] * 2, 2))
"""


def test_a_worker_ignores_ctrl_c_from_its_start(tmp_path: Path) -> None:
    program = tmp_path / "imported.py"
    program.write_text(IMPORTED)
    ended = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=60.0, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[0, 0] [None, None]\n", "")
