"""KERV on the shipped pair of token policies: its parts save passes of the target."""

from __future__ import annotations

import pytest
from test.papers.token_lines import LINES, STEP, played


@pytest.mark.parametrize("name", ["speculative decoding", "Spec-VLA, 9 bins"])
def test_drafts_of_an_action_save_passes(name: str) -> None:
    made = played(LINES[STEP, name])
    assert 1.0 <= made.passes < 4.0
    assert made.drafted == 4.0
    assert made.kept is not None
    assert 0.0 < made.kept < 4.0
