"""A door that serves a policy whose plans are known."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from test.doors.served import Planner, Served, served


@pytest.fixture
def planner() -> Planner:
    return Planner()


@pytest.fixture
def door(planner: Planner) -> Iterator[Served]:
    with served(planner) as serving:
        yield serving
