"""Messages of a request across a link, counted by its bytes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from adahi_ros.core.signature import OBSERVATION, Feature, Signature
from adahi_ros.protocol.window import request_bytes
from benchmarks.state_uploads_link import messages

READ = Signature(4, 8, 4, (Feature(OBSERVATION, 18),))
TOKENS = 32


def step(episode: int, number: int, size: int) -> Any:
    return SimpleNamespace(episode=episode, step=number, request_bytes=size)


def test_a_second_message_adds_to_the_bytes_of_the_first() -> None:
    def first(rows: int) -> int:
        return request_bytes(rows * 18, 0, 0, 0, TOKENS, 2)

    asked = [
        step(0, 0, first(4)),
        step(0, 1, first(1)),
        step(0, 3, first(2) + 240),
        step(1, 0, first(4) + 240),
        step(1, 9, first(4)),
    ]
    assert messages(asked, READ, TOKENS).tolist() == [1, 1, 2, 2, 1]
