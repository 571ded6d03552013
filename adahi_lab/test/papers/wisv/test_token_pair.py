"""WISV on the shipped pair of token policies: with a tolerance it keeps more tokens than speculation."""

from __future__ import annotations

from dataclasses import replace

from test.papers.token_lines import LINES, PREFIX, played


def test_a_round_of_wisv_decides_some_actions_of_a_chunk() -> None:
    line = LINES[PREFIX, "speculative decoding"]
    plain, wisv = (played(replace(line, method=line.method.replace("=0", each))) for each in ("=0", "=0.5"))
    assert (plain.kept or 0.0) < (wisv.kept or 0.0)
    assert wisv.passes < plain.passes < 4.0
    assert 4.0 < wisv.drafted < plain.drafted < 32.0  # a chunk is drafted for each round
