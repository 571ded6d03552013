"""Of the requests of one robot that wait, only the newest is served; nobody loses a turn by that."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.server.service import Heading
from adahi_ros.server.waiting import Waiting

ARRIVALS = st.lists(
    st.builds(
        lambda robot, session, episode, step: Heading(robot, session, episode, step, step),
        *(st.sampled_from(["arm", "leg"]), st.integers(1, 2), st.integers(0, 1), st.integers(0, 3)),
    ),
    max_size=20,
)


def told(robot: str, step: int, session: int = 1, episode: int = 0) -> Heading:
    return Heading(robot, session, episode, step, step)


def added(*headings: Heading) -> tuple[Waiting[int], list[int]]:
    """Let requests wait, by their number of arrival; return also those that were overtaken, in that order."""
    waiting: Waiting[int] = Waiting(100)
    overtaken = [each for number, heading in enumerate(headings) for each in waiting.add(heading, number)]
    return waiting, overtaken


def served(waiting: Waiting[int]) -> list[int]:
    turns = []
    while (turn := waiting.next()) is not None:
        turns.append(turn)
    return turns


def test_requests_are_served_in_the_order_in_which_they_came() -> None:
    waiting, overtaken = added(told("arm", 3), told("leg", 1), told("hand", 2))
    assert (served(waiting), overtaken) == ([0, 1, 2], [])
    assert waiting.next() is None


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
    assert waiting.next() == 0
    assert waiting.add(told("arm", 5), 1) == []


def test_there_is_room_for_so_many() -> None:
    waiting: Waiting[int] = Waiting(2)
    rooms = []
    for step, robot in enumerate(["arm", "arm", "leg"]):
        rooms.append(waiting.full)
        waiting.add(told(robot, step), step)
    assert rooms == [False, False, False]
    assert waiting.full
    waiting.next()
    assert not waiting.full


@given(ARRIVALS)
def test_each_request_has_one_fate_and_the_newest_of_each_episode_is_served(arrivals: list[Heading]) -> None:
    waiting, overtaken = added(*arrivals)
    turns = served(waiting)
    assert sorted(overtaken + turns) == list(range(len(arrivals)))
    newest = {each[:3]: max(it.step for it in arrivals if it[:3] == each[:3]) for each in arrivals}
    assert {arrivals[turn][:3] for turn in turns} == newest.keys()
    assert all(arrivals[turn].step == newest[arrivals[turn][:3]] for turn in turns)
    assert all(arrivals[each].step < newest[arrivals[each][:3]] for each in overtaken)
