from __future__ import annotations

from adahi_ros.core.texts import abridged, misspelt, printable


def test_what_fits_stays_and_of_what_is_longer_both_ends_do() -> None:
    assert abridged("fps: 3, must be 4") == "fps: 3, must be 4"
    assert abridged("x" * 20, 20) == "x" * 20
    for length in (6, 7, 26, 27):
        short = abridged("a" + "7" * 70_000 + "z", length)
        assert (len(short), short[0]) == (length, "a")
    assert abridged("fps: " + "7" * 70_000 + ", must be 4", 40).endswith(", must be 4")


def test_nothing_gives_a_terminal_a_command() -> None:
    assert printable("a\x1b[31m\nb\ud800") == "a?[31m?b?"
    assert abridged("\x1b" * 70_000, 9) == "?? ... ??"


def test_a_misspelt_name_is_refused_with_the_right_one() -> None:
    allowed = ("threshold", "score", "state")
    assert misspelt(["treshold", "score"], allowed) == (
        "treshold: has no meaning here (did you mean 'threshold'?); another name must differ more"
    )
    assert misspelt(["score", "scores", "start", "_states", "weights"], allowed) == ""  # names of its own
