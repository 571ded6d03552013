"""HeiSD's lines of the table of token policies."""

from __future__ import annotations

from test.papers.token_lines import FOLDER, LINES, STEP, TASK

from adahi_lab.methods.methods import METHODS, for_task


def test_its_parts_are_arguments_of_its_proposer() -> None:
    names = ("HeiSD", "HeiSD, all verified", "HeiSD, retrieved actions alone")
    methods = [METHODS[for_task(LINES[STEP, name].method, TASK, FOLDER)] for name in names]
    index = {"file": f"{FOLDER}/retrieval"}
    assert [method.proposer_arguments for method in methods] == [
        index,
        {**index, "skipped": 0},
        {**index, "skipped": 1_000_000, "above": 0.0},
    ]
