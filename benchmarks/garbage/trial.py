"""All kinds of garbage, numbered: which inputs there are, who gives them, and what became of them."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import traceback
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any

from .outcome import Outcome
from .values import Garbage

SHARES = {  # of a hundred inputs
    "joint_states": 14,
    "task_state": 14,
    "images": 8,
    "enable": 3,
    "parameters": 5,
    "answers": 9,
    "requests": 10,
    "starts": 5,
    "contracts": 8,
    "limits": 8,
    "calibrations": 3,
    "links": 3,
    "recipes": 4,
    "checkpoints": 3,
    "bags": 3,
}
WITH_NODES = ("joint_states", "task_state", "images", "enable", "parameters", "answers", "requests")
IN_ORDER = tuple(kind for kind, share in SHARES.items() for _ in range(share))
NODES_AT_ONCE = 3  # they mostly wait
TOGETHER = 20  # inputs that a worker is given at once
LIMIT_S = 30  # for one input
MEMORY_BYTES = 12 * 2**30
TOLD = 300  # characters of a crash


class TooSlowError(BaseException):
    """An input that takes longer than `LIMIT_S`; no `Exception`, for nobody may take it for theirs."""


def kind_of(number: int) -> str:
    """Return the kind of an input."""
    return IN_ORDER[number * 37 % len(IN_ORDER)]  # 37: neighbours are of different kinds


def by_kind(numbers: Sequence[int]) -> dict[str, list[int]]:
    """Return the inputs of each kind."""
    found: dict[str, list[int]] = defaultdict(list)
    for number in numbers:
        found[kind_of(number)].append(number)
    return {kind: found[kind] for kind in SHARES if kind in found}


def run(numbers: Sequence[int], seed: int, on_kind: Callable[[Outcome], None]) -> list[Outcome]:
    """Give inputs; return what became of each kind.

    All is done in processes beside this one, so that not even a crash of those ends the trial.

    Args:
        numbers: of the inputs.
        seed: of all that is drawn.
        on_kind: told each kind that is through.
    """
    kinds = by_kind(numbers)
    outcomes = []
    with _workers(NODES_AT_ONCE) as with_nodes, _workers(1) as without:
        jobs = {
            kind: [with_nodes.submit(to_nodes, kind, given, seed)]
            if kind in WITH_NODES
            else [without.submit(to_readers, kind, part, seed) for part in _parts(given)]
            for kind, given in kinds.items()
        }
        for kind in kinds:
            outcomes.append(_collected(kind, kinds[kind], jobs[kind]))
            on_kind(outcomes[-1])
    return outcomes


def _parts(numbers: Sequence[int]) -> list[Sequence[int]]:
    return [numbers[at : at + TOGETHER] for at in range(0, len(numbers), TOGETHER)]


def _workers(count: int) -> ProcessPoolExecutor:
    fresh = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, mp_context=fresh, initializer=_prepare)


def _prepare() -> None:
    """Make a worker that garbage cannot hurt others from, and that says nothing."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGALRM, _too_slow)
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silent, stream)


def _too_slow(number: int, frame: Any) -> None:
    raise TooSlowError(f"more than {LIMIT_S} s")


def _collected(kind: str, numbers: Sequence[int], jobs: Sequence[Future[Outcome]]) -> Outcome:
    total = Outcome(kind)
    for index, job in enumerate(jobs):
        try:
            outcome = job.result()
        except Exception as error:  # noqa: BLE001  a process of the trial has ended, or cannot even begin
            first = numbers[min(index * TOGETHER, len(numbers) - 1)]
            total.crashes.append(f"{first} or one of those after it: {type(error).__name__}: {error}")
            break
        total.inputs += outcome.inputs
        total.named += outcome.named
        total.commands += outcome.commands
        total.compared += outcome.compared
        total.crashes += outcome.crashes
        total.outside += outcome.outside
    return total


def to_nodes(kind: str, numbers: Sequence[int], seed: int) -> Outcome:
    """Give inputs of one kind to nodes that run."""
    from .robots import Answers, enable, messages_to, parameters, to_robot
    from .verifiers import requests

    if kind == "requests":
        return requests(numbers, seed)
    gives = {
        "joint_states": messages_to("joint_states"),
        "task_state": messages_to("task_state"),
        "images": messages_to("camera/image_raw"),
        "enable": enable,
        "parameters": parameters,
        "answers": Answers(),
    }
    return to_robot(kind, gives[kind], numbers, seed)


def to_readers(kind: str, numbers: Sequence[int], seed: int) -> Outcome:
    """Give inputs of one kind to what reads them; a crash is whatever comes out that names nothing."""
    from .bags import bag
    from .files import FILES, read_garbage
    from .starts import start

    read = {**FILES, "bags": bag, "starts": start}[kind]
    outcome = Outcome(kind)
    for number in numbers:
        outcome.inputs += 1
        signal.alarm(LIMIT_S)
        try:
            outcome.named += bool(read_garbage(read, Garbage(seed, number)))
        except (Exception, TooSlowError) as error:  # noqa: BLE001  that is what is counted
            outcome.crashes.append(f"{number}: {type(error).__name__} {_where(error)}: {error}"[:TOLD])
        finally:
            signal.alarm(0)
    return outcome


def _where(error: BaseException) -> str:
    """Return the last line of the package that an error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/adahi_ros/" in frame.filename] or frames
    return f"{ours[-1].filename.rpartition('/adahi_ros/')[2]}:{ours[-1].lineno}"
