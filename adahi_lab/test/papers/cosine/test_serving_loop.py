"""CoSine in real time: who is served when, and what becomes of drafters and chunks that fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from adahi_lab.papers.cosine import serving_loop
from adahi_lab.papers.cosine.collaboration import Opinion
from adahi_lab.papers.cosine.serving import COSINE, Service, Way
from adahi_lab.papers.cosine.serving_loop import Ask, LiveChunk, Owns, Places, ServingLoop
from adahi_ros.policies.interface import TargetUnavailableError
from adahi_ros.protocol.request import RequestError

LENGTH, PASS_S, WAIT_S = 16, 0.02, 20.0
SERVICE = Service(2, draft_s=1e-3, draft_more_s=0.0, pass_s=PASS_S, pass_more_s=0.0)


class CountingPlaces(Places):
    """Token i of the target is i, and so drafters say."""

    def __init__(self) -> None:
        super().__init__(2)
        self.present = [True, True]
        self.batches: list[list[int]] = []  # numbers of the chunks of each verification
        self.drafted: list[int] = []  # drafters of each call
        self.why: dict[int, str] = {}
        self.draft: Callable[[int, Sequence[Ask]], Future[list[Opinion]]] = self._all
        self.verify: Callable[[Sequence[Ask]], Owns] = lambda asks: [
            list(range(len(tokens) + 1)) for _, _, tokens in asks
        ]
        self._thread = ThreadPoolExecutor(1)

    def opinions(self, drafter: int, asks: Sequence[Ask]) -> Future[list[Opinion]]:
        self.drafted.append(drafter)
        return self.draft(drafter, asks)

    def own(self, asks: Sequence[Ask]) -> Future[Owns]:
        self.batches.append([number for number, _, _ in asks])
        return self._thread.submit(self._own, asks)

    def lost(self, drafter: int, why: str) -> None:
        super().lost(drafter, why)
        self.why[drafter] = why

    def _own(self, asks: Sequence[Ask]) -> Owns:
        time.sleep(PASS_S)
        return self.verify(asks)

    def _all(self, drafter: int, asks: Sequence[Ask]) -> Future[list[Opinion]]:
        made: Future[list[Opinion]] = Future()
        made.set_result([Opinion(len(tokens), 0.9) for _, _, tokens in asks])
        return made


@pytest.fixture
def places() -> CountingPlaces:
    return CountingPlaces()


@pytest.fixture(params=[Way(), COSINE], ids=["plain", "cosine"])
def loop(places: CountingPlaces, request: pytest.FixtureRequest) -> Iterator[ServingLoop]:
    running = ServingLoop(places, request.param, SERVICE)
    yield running
    running.close()


def asked(loop: ServingLoop, robot: str) -> LiveChunk:
    chunk = LiveChunk(LENGTH, None)
    loop.ask(robot, chunk)
    return chunk


def tokens(chunk: LiveChunk) -> list[int]:
    return chunk.found.result(WAIT_S)[0]


def test_chunks_are_the_targets_and_drafts_save_passes(loop: ServingLoop, places: CountingPlaces) -> None:
    chunks = [asked(loop, robot) for robot in "aabc"]
    assert [tokens(chunk) for chunk in chunks] == [list(range(LENGTH))] * 4
    assert loop.made.accepted == loop.made.drafted > 0
    assert loop.made.passes < 4 * LENGTH
    assert len(places.batches) < loop.made.passes  # several robots in one pass


def test_a_robot_that_joins_is_in_the_next_group(loop: ServingLoop, places: CountingPlaces) -> None:
    places.draft = lambda drafter, asks: _failed(ValueError("none"))  # so that a chunk takes 16 passes
    first = asked(loop, "a")
    while len(places.batches) < 3:
        time.sleep(PASS_S / 10)
    second, before = asked(loop, "b"), len(places.batches)
    assert tokens(first) == tokens(second) == list(range(LENGTH))
    assert second.number in {each for batch in places.batches[: before + 2] for each in batch}


def test_a_silent_drafter_is_left_out(
    loop: ServingLoop, places: CountingPlaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_loop, "SILENT_S", 0.1)
    reply = places.draft
    places.draft = lambda drafter, asks: reply(drafter, asks) if drafter else Future()
    for _ in range(4):  # so that each drafter has its turn
        assert [tokens(each) for each in [asked(loop, robot) for robot in "abcd"]] == [
            list(range(LENGTH))
        ] * 4
    assert places.present == [False, True]
    assert places.why[0].startswith("no reply for 0.1")
    assert places.drafted.count(0) == 1 < places.drafted.count(1)


def test_a_drafter_that_fails_is_asked_again_once_it_is_back(
    loop: ServingLoop, places: CountingPlaces
) -> None:
    reply = places.draft
    places.draft = lambda drafter, asks: _failed(ValueError("its window is another"))
    for _ in range(4):
        assert tokens(asked(loop, "a")) == list(range(LENGTH))
    assert "its window is another" in places.why.values()
    places.draft, places.present, before = reply, [True, True], len(places.drafted)
    assert [tokens(each) for each in [asked(loop, robot) for robot in "abcd"]] == [list(range(LENGTH))] * 4
    assert len(places.drafted) > before


def test_one_chunk_without_finite_tokens_fails_alone(loop: ServingLoop, places: CountingPlaces) -> None:
    verify, bad = places.verify, asked(loop, "a")
    places.verify = lambda asks: [
        None if ask[0] == bad.number else own for ask, own in zip(asks, verify(asks), strict=True)
    ]
    good = asked(loop, "b")
    assert tokens(good) == list(range(LENGTH))
    with pytest.raises(RequestError, match="not finite"):
        tokens(bad)


def test_a_failed_pass_ends_its_chunks_alone(loop: ServingLoop, places: CountingPlaces) -> None:
    verify = places.verify

    def fail(asks: Sequence[Ask]) -> Owns:
        places.verify = verify
        raise RuntimeError("out of memory")

    places.verify = fail
    with pytest.raises(RuntimeError, match="out of memory"):
        tokens(asked(loop, "a"))
    assert tokens(asked(loop, "a")) == list(range(LENGTH))


def test_a_failure_of_its_own_ends_the_chunks_at_hand(loop: ServingLoop, places: CountingPlaces) -> None:
    reply, places.draft = places.draft, lambda _, asks: asks[len(asks)]  # type: ignore
    for chunk in [asked(loop, robot) for robot in "aab"]:
        with pytest.raises(TargetUnavailableError, match="its drafts failed: IndexError"):
            tokens(chunk)
    places.draft = reply
    assert tokens(asked(loop, "a")) == list(range(LENGTH))


def test_the_end_leaves_no_chunk_without_a_result(places: CountingPlaces) -> None:
    loop = ServingLoop(places, COSINE, SERVICE)
    chunk = asked(loop, "a")
    loop.close()
    with pytest.raises(TargetUnavailableError, match="was ended"):
        tokens(chunk)


def test_drafting_that_was_slow_once_is_tried_again(places: CountingPlaces) -> None:
    loop, reply = ServingLoop(places, COSINE, SERVICE), places.draft

    def slow(drafter: int, asks: Sequence[Ask]) -> Future[list[Opinion]]:
        time.sleep(10 * PASS_S)
        places.draft = reply
        return reply(drafter, asks)

    places.draft = slow
    assert tokens(asked(loop, "a")) == tokens(asked(loop, "a")) == list(range(LENGTH))
    before = len(places.drafted)
    assert tokens(asked(loop, "a")) == tokens(asked(loop, "a")) == list(range(LENGTH))
    loop.close()
    assert len(places.drafted) > before


def _failed(error: Exception) -> Future[list[Opinion]]:
    made: Future[list[Opinion]] = Future()
    made.set_exception(error)
    return made
