# SPDX-License-Identifier: Apache-2.0
"""The samples of one source that a step may yet need, by their times."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

from adahi_ros.contract.contract import Camera, Source
from adahi_ros.contract.fields import NANOSECONDS, InputError

IMAGES_KEPT = 64
NUMBERS_KEPT = 2**17  # some seconds of a whole arm at 1 kHz; a megabyte
SAMPLES_KEPT = 64  # at least, of whatever size


class Samples:
    """What has come of one source, sorted by time; of one time only what came first.

    However fast they come, they are kept for as long as a step may need one, within a bound of memory.

    Args:
        source: whose samples these are.
    """

    def __init__(self, source: Source | Camera) -> None:
        self.source = source
        self._topic = source.channel.topic.lstrip("/")
        self._tolerance_ns = round(source.align.tolerance_s * NANOSECONDS)
        self._most = IMAGES_KEPT
        if isinstance(source, Source):
            self._most = max(SAMPLES_KEPT, NUMBERS_KEPT // source.size)
        self.clear()

    def clear(self) -> None:
        """Forget what has come."""
        self._times: list[int] = []
        self._samples: list[Any] = []

    def add(self, at_ns: int, sample: Any, first_ns: int, last_ns: int) -> None:
        """Keep a sample, and of all of them those that a step from `first_ns` to `last_ns` may need."""
        times, samples = self._times, self._samples
        place = bisect_left(times, at_ns)
        if place == len(times) or times[place] != at_ns:
            times.insert(place, at_ns)
            samples.insert(place, sample)
        end = bisect_right(times, last_ns)  # what is later was there before a clock went back
        # The newest before the first step may be what that step is to hold.
        start = max(bisect_right(times, first_ns, hi=end) - 1, end - self._most, 0)
        for kept in (times, samples):
            del kept[end:]
            del kept[:start]

    def at(self, at_ns: int) -> Any | None:
        """Return the sample that goes with a step's time; None where it may yet come.

        Raises:
            InputError: the newest is too old, and there is none to wait for.
        """
        near = self._nearest(at_ns)
        if near is None:
            return None
        distance_ns = abs(at_ns - self._times[near])
        if distance_ns <= self._tolerance_ns:
            return self._samples[near]
        if self.source.align.strategy == "asof":
            return None
        raise self._fault(f"its newest sample is {distance_ns / NANOSECONDS:.3f} s old, at most ")

    def missing_at(self, at_ns: int) -> InputError:
        """Say what there is in the place of the sample that a step waited for in vain."""
        near = self._nearest(at_ns)
        if near is None or self.source.align.strategy != "asof":
            return InputError(self._topic, f"no sample for a step has come ({self.source.key})")
        distance_s = abs(at_ns - self._times[near]) / NANOSECONDS
        return self._fault(f"the sample nearest to a step is {distance_s:.3f} s away, at most ")

    def _nearest(self, at_ns: int) -> int | None:
        """Return the place of the sample that is the best there is; None where none will do."""
        times = self._times
        newest = bisect_right(times, at_ns) - 1
        if self.source.align.strategy != "asof":
            return newest if newest >= 0 else None
        places = [place for place in (newest, newest + 1) if 0 <= place < len(times)]
        return min(places, key=lambda place: abs(at_ns - times[place]), default=None)

    def _fault(self, words: str) -> InputError:
        return InputError(
            self._topic, f"{words}{self.source.align.tolerance_s:g} s allowed ({self.source.key})"
        )
