"""CoSine's line of the table of token policies, by a test clock."""

from __future__ import annotations

import shutil

import pytest
from test.papers.token_lines import FOLDER, LINES, MACHINES

from adahi_lab.papers.cosine.table import ways
from adahi_lab.papers.tokens.token_pair import Chunks


@pytest.mark.smoke
def test_it_is_faster_than_the_target_alone(chunks: Chunks) -> None:
    for path in FOLDER.glob("draft.*"):
        for kind in range(2):
            there = chunks.out / "drafters" / f"draft_{kind}{path.name.removeprefix('draft')}"
            there.parent.mkdir(exist_ok=True)
            shutil.copy2(path, there)
    shutil.copy2(FOLDER / "tokenizer.json", chunks.out / "drafters")
    shutil.copy2(FOLDER / "tokenizer.safetensors", chunks.out / "drafters")
    found = ways(chunks)
    assert found.keys() == {LINES[MACHINES, "CoSine, 2 drafters"].way}
    assert found["CoSine"].time < 4.0  # a pass takes 1, an action has four tokens
    assert found["CoSine"].runs == 1.0
