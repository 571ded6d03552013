"""A minute across a link with bursts and outages. `soak(30)` is half an hour of it, with fewer outages."""

from __future__ import annotations

import json

import pytest

from adahi_lab.bench.soak import soak, soak_profile
from adahi_lab.link.emulator import unavailable

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(600),
    pytest.mark.skipif(unavailable() is not None, reason=str(unavailable())),
]


def test_nothing_is_late_or_lost_and_memory_stays_flat_for_a_minute() -> None:
    result = soak(1.0, profile=soak_profile(20.0))  # three periods
    print(json.dumps(result.values()))
    assert result.passed, result.faults
    assert result.steps == result.verified + result.skipped + sum(result.fallbacks.values())
    assert min(result.verified, result.skipped, *result.fallbacks.values()) > 0
