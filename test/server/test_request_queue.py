"""Of the requests of one robot that wait, only the newest is served; no robot loses a turn by that."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.protocol.request import Request
from adahi_ros.protocol.window import WHOLE, WireRows, WireWindow
from adahi_ros.server.request_queue import LATEST_S, SOONEST_S, UNSAID_S, WAITING_BYTES, RequestQueue, Turn

Name = int | str
ARRIVALS = st.lists(
    st.builds(
        lambda robot, session, episode, step: Request(episode, step, step, robot_id=robot, session=session),
        *(st.sampled_from(["arm", "leg"]), st.integers(1, 2), st.integers(0, 1), st.integers(0, 3)),
    ),
    max_size=20,
)


def asks(robot: str, step: int = 0, session: int = 1, episode: int = 0, needed_in_s: float = 0.0) -> Request:
    return Request(episode, step, step, needed_in_s=needed_in_s, robot_id=robot, session=session)


def names(turns: Iterable[Turn[Name]]) -> list[Name]:
    return [turn.sender for turn in turns]


class Queue(RequestQueue[Name]):
    """Each request has a name."""

    def wait(
        self, name: Name, request: Request, at_s: float = 0.0, client: Hashable = None, used_s: float = 0.0
    ) -> list[Name]:
        """Have a request wait; return those that are overtaken."""
        return names(self.add(Turn(request, name, at_s, client).with_deadline(used_s=used_s)))

    def next(self, most: int = 1) -> list[Name]:
        return names(self.take(most))

    def displaced_for(self, client: Hashable) -> Name | None:
        turn = self.displace(client)
        return None if turn is None else turn.sender


def waiting(*requests: Request) -> tuple[Queue, list[Name]]:
    """Have requests wait, named by their order of arrival; return also those that were overtaken."""
    queue = Queue(100, per_robot=100)
    overtaken = [
        name for number, each in enumerate(requests) for name in queue.wait(number, each, 1e-3 * number)
    ]
    return queue, overtaken


def served(queue: Queue) -> list[Name]:
    turns: list[Name] = []
    while batch := queue.next():
        turns += batch
    return turns


@pytest.mark.parametrize(
    ("requests", "in_turn", "overtaken"),
    [
        ([asks("arm", 3), asks("leg", 1), asks("hand", 2)], [0, 1, 2], []),
        # A newer request has the turn of the one that it overtakes.
        ([asks("arm", 3), asks("leg", 1), asks("arm", 4), asks("arm", 6)], [3, 1], [0, 2]),
        ([asks("arm", 4), asks("arm", 3)], [0], [1]),
        # A copy overtakes nothing: the engine remembers its reply.
        ([asks("arm", 4), asks("arm", 4)], [0, 1], []),
        ([asks("arm", 4), asks("leg", 1), asks("arm", 4), asks("arm", 5)], [3, 1], [0, 2]),
        # Nor does a request of another episode or start.
        ([asks("arm", 4), asks("arm", 5, episode=1), asks("arm", 6, session=2)], [0, 1, 2], []),
    ],
)
def test_order_and_what_is_overtaken(
    requests: list[Request], in_turn: list[int], overtaken: list[int]
) -> None:
    queue, dropped = waiting(*requests)
    assert (served(queue), dropped) == (in_turn, overtaken)
    assert queue.next(8) == []


@given(ARRIVALS)
def test_each_request_has_one_fate_and_the_newest_of_an_episode_is_served(arrivals: list[Request]) -> None:
    queue, overtaken = waiting(*arrivals)
    turns = served(queue)
    assert sorted(map(int, overtaken + turns)) == list(range(len(arrivals)))
    of = {number: (each.robot_id, each.session, each.episode) for number, each in enumerate(arrivals)}
    newest = {one: max(each.step for n, each in enumerate(arrivals) if of[n] == one) for one in of.values()}
    assert {of[int(turn)] for turn in turns} == newest.keys()
    assert all(arrivals[int(turn)].step == newest[of[int(turn)]] for turn in turns)
    assert all(arrivals[int(each)].step < newest[of[int(each)]] for each in overtaken)


def test_a_full_queue_still_takes_something_newer_of_a_robot_in_it() -> None:
    queue = Queue(2)
    for step, robot in enumerate(["arm", "leg"]):
        assert queue.has_room(robot)
        queue.wait(step, asks(robot, step))
    assert not queue.has_room("eye")
    assert queue.has_room("arm")
    assert queue.wait(2, asks("arm", 5), 1.0) == [0]
    assert len(queue) == 2
    queue.next()
    assert queue.has_room("eye")


def test_the_earliest_deadline_is_first_and_each_robot_once_in_a_batch() -> None:
    queue = Queue()
    queue.wait("late", asks("arm", needed_in_s=0.9))
    queue.wait("soon", asks("leg", needed_in_s=0.2), 0.1)
    queue.wait("soon, too", asks("leg", episode=1, needed_in_s=0.3), 0.1)
    queue.wait("unsaid", asks("eye"))
    assert UNSAID_S > 0.9
    assert queue.oldest_s == 0.0
    assert queue.next(3) == ["soon", "late", "unsaid"]
    assert queue.next(3) == ["soon, too"]
    assert queue.oldest_s == float("inf")


def test_a_deadline_is_within_bounds_whatever_a_robot_says() -> None:
    queue = Queue()
    for name, needed_in_s in (("never", 3e38), ("at once", 1e-30), ("soon", SOONEST_S)):
        queue.wait(name, asks(name, needed_in_s=needed_in_s))
    assert sorted(turn.due_s for turn in queue) == [SOONEST_S, SOONEST_S, LATEST_S]


def test_images_that_wait_take_so_much_memory_and_no_more() -> None:
    queue, large = Queue(), WAITING_BYTES // 3
    window = WireWindow(WHOLE, WireRows(b"", images=(bytes(large),)), b"")
    for number in range(3):
        assert queue.has_room("arm", large)
        queue.wait(number, Request(0, 0, 0, window, robot_id=f"arm {number}"))
    assert not queue.has_room("arm", large)
    assert queue.has_room("arm", 0)
    queue.next()
    assert queue.has_room("arm", large)


def test_one_robot_has_so_many_places_whatever_it_calls_its_episodes() -> None:
    queue = Queue(100, per_robot=3)
    overtaken = [gone for n in range(10) for gone in queue.wait(n, asks("arm", session=n), float(n))]
    assert (overtaken, len(queue)) == (list(range(7)), 3)


def test_a_client_that_used_much_computing_cannot_claim_to_be_first() -> None:
    queue = Queue()
    queue.wait("flood", asks("flood", needed_in_s=0.001), used_s=0.3)
    queue.wait("arm", asks("arm", needed_in_s=0.1), used_s=0.02)
    assert queue.next(2) == ["arm", "flood"]
    assert Turn(asks("flood"), "flood", 0.0).with_deadline(used_s=100.0).due_s == LATEST_S


def test_clients_share_a_batch_whatever_names_they_use() -> None:
    """Requests of earlier clients are all due before it, and one of a client that comes last is served."""
    queue = Queue()
    for client in ("one", "two"):
        for number in range(10):
            name = f"{client} {number}"
            queue.wait(name, asks(name), 0.01 * number, client)
    queue.wait("arm", asks("arm"), 0.5, "arm")
    assert queue.next(4) == ["one 0", "two 0", "arm", "one 1"]
    assert len(queue) == 17


def test_a_full_queue_has_room_for_a_client_with_fewer_requests() -> None:
    queue = Queue(most=4)
    for number in range(3):
        queue.wait(f"flood {number}", asks(f"flood {number}"), float(number), "flood")
    queue.wait("leg", asks("leg"), 9.0, "leg")
    assert queue.displaced_for("flood") is None
    assert queue.displaced_for("arm") == "flood 2"
    assert queue.has_room("arm")
    queue.wait("arm", asks("arm"), 9.0, "arm")
    assert queue.displaced_for("leg") is None  # it has one, the flood two
    assert Queue().displaced_for("arm") is None
