"""A client that replies do not reach costs a bounded time, and never a reply of a client that they reach."""

from __future__ import annotations

from adahi_ros.nodes.common.reachable import CLIENTS_KEPT, CREDIT_PER_S, CREDIT_S, Unreached

BLOCK_S = 0.1


def blocked_s(unreached: Unreached, clients: list[str], now_s: float) -> float:
    """Return how long sends to clients block that no reply reaches."""
    spent_s = 0.0
    for client in clients:
        if unreached.may_send(client, now_s + spent_s):
            spent_s += BLOCK_S
            unreached.sent(client, BLOCK_S, True, now_s + spent_s)
    return spent_s


def test_one_unreached_client_blocks_once_and_later_less_and_less_often() -> None:
    unreached = Unreached()
    assert blocked_s(unreached, ["gone"] * 256, 0.0) == BLOCK_S
    assert unreached.paused("gone", 0.5)
    later = [second for second in range(1, 60) if blocked_s(unreached, ["gone"], float(second))]
    assert later == [2, 7, 24]  # 1.1 s, then 4 s and 16 s after the block before


def test_fresh_unreached_clients_share_a_budget_and_reached_ones_have_none() -> None:
    unreached = Unreached()
    unreached.sent("honest", 0.001, False, 0.0)
    total_s = 0.0
    for second in range(20):
        fresh = [f"client {second}.{number}" for number in range(256)]
        total_s += blocked_s(unreached, fresh, float(second))
        assert unreached.may_send("honest", second + 0.99)
    assert total_s <= CREDIT_S + BLOCK_S + 20 * CREDIT_PER_S


def test_a_client_that_is_reached_again_has_no_pause() -> None:
    unreached = Unreached()
    blocked_s(unreached, ["late"], 0.0)
    unreached.sent("late", 0.001, False, 2.0)
    assert not unreached.paused("late", 2.0)
    assert unreached.may_send("late", 2.0)


def test_no_more_clients_are_remembered_than_there_is_room_for() -> None:
    unreached = Unreached()
    for number in range(2 * CLIENTS_KEPT):
        unreached.sent(number, 0.001, False, 0.0)
        unreached.sent(-number, BLOCK_S, True, 0.0)
    assert len(unreached._reached) <= CLIENTS_KEPT
    assert len(unreached._pauses) <= CLIENTS_KEPT
