"""Which bag an episode has, and what keys do."""

from __future__ import annotations

from pathlib import Path

import pytest

from adahi_ros.bags.episodes import (
    DISCARD,
    INSTRUCT,
    LEAST_FREE_BYTES,
    QUIT,
    TOGGLE,
    EpisodeError,
    Episodes,
    Keys,
    status_lines,
)

FREE = LEAST_FREE_BYTES


def started(episodes: Episodes) -> Path:
    """Start an episode as a recorder does."""
    path = episodes.next(FREE)
    path.mkdir(parents=True)
    episodes.running = path
    return path


def test_episodes_are_numbered_on_and_a_discarded_number_is_used_again(tmp_path: Path) -> None:
    episodes = Episodes(tmp_path / "bags")
    assert started(episodes).name == "episode_000000"
    assert episodes.end(kept=True).name == "episode_000000"
    started(episodes)
    assert episodes.number == 1
    episodes.end(kept=False).rmdir()
    assert started(episodes).name == "episode_000001"
    assert episodes.outcome.endswith("bags: 1 episode saved")
    episodes.end(kept=True)
    assert episodes.outcome.endswith("bags: 2 episodes saved")
    (tmp_path / "bags/episode_000007").mkdir()  # of a recorder that was killed
    assert started(Episodes(tmp_path / "bags")).name == "episode_000008"


def test_what_cannot_be_done_now_says_why(tmp_path: Path) -> None:
    episodes = Episodes(tmp_path)
    with pytest.raises(EpisodeError, match="no episode is being recorded; start one first"):
        episodes.end(kept=True)
    with pytest.raises(EpisodeError, match=r"0\.9 GB free, must be at least 1 GB to start an episode"):
        episodes.next(FREE - 10**8)
    path = started(episodes)
    with pytest.raises(EpisodeError, match=f"{path}: is being recorded; save or discard it first"):
        episodes.next(FREE)


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        ("s", TOGGLE),
        ("\r", TOGGLE),
        ("\n", TOGGLE),
        ("\x1b[C", TOGGLE),
        ("\x1bOC", TOGGLE),
        ("d", DISCARD),
        ("\x1b[D", DISCARD),
        ("q", QUIT),
        ("x", None),
        ("\x1b[A", None),
        ("", None),
        ("sd", TOGGLE),
    ],
)
def test_a_key_is_a_command(typed: str, command: str | None) -> None:
    assert Keys().take(typed, 0.0) == command


def test_a_key_that_repeats_counts_once() -> None:
    keys = Keys()
    pressed = [keys.take("\r", at_s) for at_s in (1.0, 1.1, 1.3, 1.5, 2.0)]
    assert pressed == [TOGGLE, None, None, None, TOGGLE]


def test_an_instruction_is_typed_and_its_letters_are_no_commands() -> None:
    keys = Keys()
    assert keys.take("i", 0.0) is None
    assert keys.take("discs é", 1.0) is None
    assert keys.typed == "discs é"
    assert keys.take("\x7f\x7f!\r", 2.0) == INSTRUCT
    assert (keys.instruction, keys.typed) == ("discs!", None)
    assert keys.take("ino\x1b", 3.0) is None  # Esc
    assert keys.take("i\r", 4.0) is None  # nothing was typed
    assert keys.instruction == "discs!"
    assert keys.take("s", 5.0) == TOGGLE


def test_the_status_says_what_is_recorded(tmp_path: Path) -> None:
    episodes, rates = Episodes(tmp_path), {"joint_states": 49.6, "command": 0.0}
    assert status_lines(episodes, 3.0, rates, "", 2 * FREE) == (
        "episode 0 | waiting | no instruction | 2 GB free",
        "joint_states 50 Hz | command 0 Hz",
    )
    started(episodes)
    line, _ = status_lines(episodes, 3.4, rates, "lift it", 2 * FREE)
    assert line == "episode 0 | RECORDING 3 s | 'lift it' | 2 GB free"
