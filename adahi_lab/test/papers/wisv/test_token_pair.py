"""WISV on the shipped pair of token policies: it keeps more tokens than plain speculation."""

from __future__ import annotations

from test.papers.token_lines import LINES, PREFIX, played


def test_a_round_of_wisv_decides_some_actions_of_a_chunk() -> None:
    plain, wisv = (played(LINES[PREFIX, name]) for name in ("speculative decoding", "WISV"))
    assert plain.kept is not None
    assert wisv.kept is not None
    assert plain.kept < wisv.kept
    assert wisv.passes < plain.passes < 4.0
    assert 4.0 < wisv.drafted < plain.drafted < 32.0  # a chunk is drafted for each round
