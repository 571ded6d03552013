"""An index of demonstrations: its size, its seed, its figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test.papers.heisd.walks import EPISODES, STEPS, recorded, saved

from adahi_lab.papers.heisd.retrieval import Index, load_retrieval
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
        make_index(data, 1, neighbours=4, most_bytes=100)


def test_the_same_seed_makes_the_same_index() -> None:
    one, other = (make_index(recorded(), 3, 4, 5600) for _ in range(2))
    assert one[1] == other[1]
    for name, values in vars(one[0]).items():
        np.testing.assert_array_equal(values, getattr(other[0], name))


def test_indices_are_made_of_what_they_say() -> None:
    index, figures = make_index(recorded(), 1, 4, 2**20)
    assert isinstance(index, Index)
    assert figures["steps"] == EPISODES * STEPS
    assert figures["error"] > 0.0
    assert index.keys.dtype == np.float32
