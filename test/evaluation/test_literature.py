"""What `adahi methods` says is there, and is run as it says."""

from __future__ import annotations

from pathlib import Path

import pytest

import adahi_ros
from adahi_ros.assets import asset
from adahi_ros.evaluation.literature import LITERATURE, Neighbour
from adahi_ros.evaluation.methods import parse_methods

PACKAGE = Path(adahi_ros.__file__).parent


@pytest.mark.parametrize("each", LITERATURE, ids=lambda each: each.name)
def test_it_is_where_it_is_said_to_be(each: Neighbour) -> None:
    assert (PACKAGE / each.file).is_file()
    first, _, names = each.run.partition(" ")
    if first == "--methods":
        assert parse_methods(names) == names.split(",")


def test_the_docs_have_them_all() -> None:
    page = asset("docs/methods.md").read_text()
    for each in LITERATURE:
        assert each.name in page
        assert f"`{each.file}`" in page
