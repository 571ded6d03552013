"""What asks a process to end is heard whatever it has inherited, and only meanwhile."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from adahi_ros.core.signals import leaving_on

BOTH = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in BOTH}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@pytest.mark.parametrize("before", [signal.SIG_IGN, signal.SIG_DFL, signal.default_int_handler])
def test_a_signal_ends_the_block_and_is_afterwards_what_it_was(before: signal.Handlers) -> None:
    for number in BOTH:
        signal.signal(number, before)
    with pytest.raises(KeyboardInterrupt), leaving_on(*BOTH):
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(SystemExit, match=r"^143$"), leaving_on(*BOTH):
        signal.raise_signal(signal.SIGTERM)
    assert [signal.getsignal(number) for number in BOTH] == [before, before]


def test_one_that_came_while_it_was_blocked_ends_the_block_at_once() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, BOTH)
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), leaving_on(*BOTH):
        pytest.fail("not heard")
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) >= set(BOTH)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_somebodys_stays() -> None:
    received: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    with leaving_on(*BOTH):
        signal.raise_signal(signal.SIGTERM)
    assert received == [signal.SIGTERM]


def test_a_thread_that_hears_no_signals_changes_nothing() -> None:
    found: list[object] = []

    def look() -> None:
        with leaving_on(*BOTH):
            found.extend(signal.getsignal(number) for number in BOTH)

    before = [signal.getsignal(number) for number in BOTH]
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == before
