"""An index of demonstrations takes no more than it may."""

from __future__ import annotations

from pathlib import Path

import pytest
from test.papers.heisd.walks import STEPS, recorded, saved

from adahi_lab.papers.heisd.retrieval import load_retrieval
from adahi_lab.papers.heisd.retrieval_index import make_index


def test_an_index_takes_no_more_than_it_may(tmp_path: Path) -> None:
    data = recorded()
    whole, part = (load_retrieval(saved(tmp_path, data, most)) for most in (2**20, 5600))
    sizes = [
        sum(getattr(each.index, name).nbytes for name in ("keys", "actions", "last"))
        for each in (whole, part)
    ]
    assert sizes[1] <= 5600 < sizes[0]
    assert len(part.index.keys) % STEPS == 0
    with pytest.raises(ValueError, match=r"^episodes: 0 of 12 fit, must be at least 8"):
        make_index(data, 1, 100)
