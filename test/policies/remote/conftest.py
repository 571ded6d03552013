"""What tests of targets behind servers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from adahi_ros.policies.remote.remote import PolicyServer


def served_by(server: Callable[[], Any]) -> Any:
    """Return a fixture: a server of such a kind while it runs."""

    @pytest.fixture
    def served() -> Iterator[Any]:
        policy = server()
        policy.start()
        yield policy
        policy.stop()

    return served


class Clock:
    """Goes when it is told."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def connected(server: PolicyServer) -> bool:
    return any(link.alive() for link in server._idle)
