"""Of the requests of one robot that wait, only the newest is served; nobody loses a turn by that."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.protocol.request import Request
from adahi_ros.server.request_queue import LATEST_S, SOONEST_S, UNSAID_S, WAITING_BYTES, RequestQueue, Turn

ARRIVALS = st.lists(
    st.builds(
        lambda robot, session, episode, step: Request(episode, step, step, robot_id=robot, session=session),
        *(st.sampled_from(["arm", "leg"]), st.integers(1, 2), st.integers(0, 1), st.integers(0, 3)),
    ),
    max_size=20,
)


def told(robot: str, step: int, session: int = 1, episode: int = 0, needed_in_s: float = 0.0) -> Request:
    return Request(episode, step, step, needed_in_s=needed_in_s, robot_id=robot, session=session)


def added(*requests: Request) -> tuple[RequestQueue[int], list[int]]:
    """Let requests wait, by their number of arrival; return also those that were overtaken, in that order."""
    waiting: RequestQueue[int] = RequestQueue(100, per_robot=100)
    overtaken = [
        each
        for number, request in enumerate(requests)
        for each in waiting.add(Turn.of(request, number, 0.001 * number))
    ]
    return waiting, overtaken


def served(waiting: RequestQueue[int]) -> list[int]:
    turns: list[int] = []
    while batch := waiting.take(1):
        turns += batch
    return turns


def test_requests_are_served_in_the_order_in_which_they_came() -> None:
    waiting, overtaken = added(told("arm", 3), told("leg", 1), told("hand", 2))
    assert (served(waiting), overtaken) == ([0, 1, 2], [])
    assert waiting.take(8) == []


def test_a_newer_request_has_the_turn_of_the_one_that_it_overtakes() -> None:
    waiting, overtaken = added(told("arm", 3), told("leg", 1), told("arm", 4), told("arm", 6))
    assert overtaken == [0, 2]
    assert served(waiting) == [3, 1]


def test_a_request_that_comes_after_a_newer_one_is_overtaken_itself() -> None:
    waiting, overtaken = added(told("arm", 4), told("arm", 3))
    assert (served(waiting), overtaken) == ([0], [1])


def test_a_request_that_comes_again_overtakes_nothing() -> None:
    waiting, overtaken = added(told("arm", 4), told("arm", 4))  # the engine remembers its reply
    assert (served(waiting), overtaken) == ([0, 1], [])
    waiting, overtaken = added(told("arm", 4), told("leg", 1), told("arm", 4), told("arm", 5))
    assert (served(waiting), overtaken) == ([3, 1], [0, 2])


def test_requests_of_another_episode_or_start_overtake_nothing() -> None:
    waiting, overtaken = added(told("arm", 4), told("arm", 5, episode=1), told("arm", 6, session=2))
    assert (served(waiting), overtaken) == ([0, 1, 2], [])


def test_what_was_served_is_not_overtaken() -> None:
    waiting, _ = added(told("arm", 4))
    assert waiting.take(1) == [0]
    assert waiting.add(Turn.of(told("arm", 5), 1, 0.0)) == []


def test_there_is_room_for_so_many_but_a_robot_may_always_ask_about_something_newer() -> None:
    waiting: RequestQueue[int] = RequestQueue(2)
    for step, robot in enumerate(["arm", "leg"]):
        assert waiting.has_room(robot)
        waiting.add(Turn.of(told(robot, step), step, 0.0))
    assert not waiting.has_room("eye")
    assert waiting.has_room("arm")
    assert waiting.add(Turn.of(told("arm", 5), 2, 1.0)) == [0]
    assert len(waiting) == 2
    waiting.take(1)
    assert waiting.has_room("eye")


def test_who_needs_the_reply_first_is_served_first_and_each_robot_once_in_a_batch() -> None:
    waiting: RequestQueue[str] = RequestQueue()
    for name, robot, episode, came_s, needed_in_s in (
        ("late", "arm", 0, 0.0, 0.9),
        ("soon", "leg", 0, 0.1, 0.2),
        ("soon, too", "leg", 1, 0.1, 0.3),
        ("unsaid", "eye", 0, 0.0, 0.0),
    ):
        request = told(robot, 3, episode=episode, needed_in_s=needed_in_s)
        waiting.add(Turn.of(request, name, came_s))
    assert UNSAID_S > 0.9
    assert waiting.oldest_s == 0.0
    assert waiting.take(3) == ["soon", "late", "unsaid"]
    assert waiting.take(3) == ["soon, too"]
    assert waiting.oldest_s == float("inf")


def test_nobody_is_due_never_or_before_everybody_else_whatever_he_says() -> None:
    waiting: RequestQueue[str] = RequestQueue()
    for name, needed_in_s in (("never", 3e38), ("at once", 1e-30), ("soon", SOONEST_S)):
        waiting.add(Turn.of(told(name, 0, needed_in_s=needed_in_s), name, 0.0))
    assert sorted(turn.due_s for turn in waiting) == [SOONEST_S, SOONEST_S, LATEST_S]


def test_images_that_wait_take_so_much_memory_and_no_more() -> None:
    waiting: RequestQueue[int] = RequestQueue()
    large = WAITING_BYTES // 3
    for number in range(3):
        assert waiting.has_room("arm", large)
        waiting.add(Turn.of(told(f"arm {number}", 0), number, 0.0, large))
    assert not waiting.has_room("arm", large)
    assert waiting.has_room("arm", 0)
    waiting.take(1)
    assert waiting.has_room("arm", large)


def test_who_asks_again_and_again_does_not_lose_his_turn() -> None:
    waiting: RequestQueue[str] = RequestQueue()
    waiting.add(Turn.of(told("arm", 0), "arm 0", 0.0))
    waiting.add(Turn.of(told("leg", 0), "leg", 0.5))
    for step in range(1, 5):
        waiting.add(Turn.of(told("arm", step), f"arm {step}", float(step)))
    assert waiting.take(1) == ["arm 4"]


def test_one_robot_has_so_many_places_whatever_it_calls_its_episodes() -> None:
    waiting: RequestQueue[int] = RequestQueue(100, per_robot=3)
    overtaken = [
        gone
        for number in range(10)
        for gone in waiting.add(Turn.of(told("arm", 0, session=number), number, float(number)))
    ]
    assert (overtaken, len(waiting)) == (list(range(7)), 3)


@given(ARRIVALS)
def test_each_request_has_one_fate_and_the_newest_of_each_episode_is_served(
    arrivals: list[Request],
) -> None:
    waiting, overtaken = added(*arrivals)
    turns = served(waiting)
    assert sorted(overtaken + turns) == list(range(len(arrivals)))
    episodes = [(each.robot_id, each.session, each.episode) for each in arrivals]
    steps = [each.step for each in arrivals]
    newest = {
        one: max(step for it, step in zip(episodes, steps, strict=True) if it == one) for one in episodes
    }
    assert {episodes[turn] for turn in turns} == newest.keys()
    assert all(steps[turn] == newest[episodes[turn]] for turn in turns)
    assert all(steps[each] < newest[episodes[each]] for each in overtaken)


def test_who_used_much_computing_cannot_claim_to_be_first() -> None:
    waiting: RequestQueue[str] = RequestQueue()
    waiting.add(Turn.of(told("flood", 0, needed_in_s=0.001), "flood", 0.0, used_s=0.3))
    waiting.add(Turn.of(told("arm", 0, needed_in_s=0.1), "arm", 0.0, used_s=0.02))
    assert waiting.take(2) == ["arm", "flood"]
    assert Turn.of(told("flood", 0), "flood", 0.0, used_s=100.0).due_s == LATEST_S


def test_clients_share_a_batch_whatever_names_they_use() -> None:
    """Requests of earlier clients are all due before it, and one of a client that comes last is served."""
    waiting: RequestQueue[str] = RequestQueue()
    for client in ("one", "two"):
        for number in range(10):
            name = f"{client} {number}"
            waiting.add(Turn.of(told(name, 0), name, 0.01 * number, client=client))
    waiting.add(Turn.of(told("arm", 0), "arm", 0.5, client="arm"))
    assert waiting.take(4) == ["one 0", "two 0", "arm", "one 1"]
    assert len(waiting) == 17


def test_a_full_queue_has_room_for_a_client_with_fewer_requests() -> None:
    waiting: RequestQueue[str] = RequestQueue(most=4)
    for number in range(3):
        waiting.add(Turn.of(told(f"flood {number}", 0), f"flood {number}", float(number), client="flood"))
    waiting.add(Turn.of(told("leg", 0), "leg", 9.0, client="leg"))
    assert waiting.displace("flood") is None
    assert waiting.displace("arm") == "flood 2"
    assert waiting.has_room("arm")
    waiting.add(Turn.of(told("arm", 0), "arm", 9.0, client="arm"))
    assert waiting.displace("leg") is None  # it has one, the flood two
    assert RequestQueue[str]().displace("arm") is None
