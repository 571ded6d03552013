"""Which commands a controller says it follows."""

from __future__ import annotations

from adahi_ros.safety.followed_commands import FollowedCommands

MS = 1_000_000
STEP_NS, STATE_NS = 50 * MS, 20 * MS


def commanded(steps: int) -> FollowedCommands:
    found = FollowedCommands()
    for step in range(steps):
        found.note_command(step * STEP_NS)
    return found


def test_a_controller_that_follows_two_commands_gets_them() -> None:
    found = commanded(3)
    for stamp_ns in (0, 0, STEP_NS):
        found.note_state(stamp_ns)
        assert not found.known
    found.note_state(STEP_NS + MS // 10)
    assert found.known
    found.clear()
    assert not found.known


def test_a_controller_that_holds_by_itself_follows_no_command() -> None:
    found = commanded(60)
    for _ in range(100):
        found.note_state(7 * STEP_NS)  # it began to hold as a command was sent
    assert not found.known


def test_times_that_move_with_each_state_are_no_stamps() -> None:
    found = commanded(60)
    for state in range(150):
        found.note_state(state * STATE_NS)  # each fifth of them is that of a command
    assert not found.known


def test_what_is_kept_of_a_followed_controller_is_bounded() -> None:
    found = FollowedCommands()
    for step in range(1000):
        found.note_command(step * STEP_NS)
        for _ in range(2):
            found.note_state(step * STEP_NS)
    assert found.known
    assert len(found._followed) < 10
