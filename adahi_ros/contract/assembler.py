# SPDX-License-Identifier: Apache-2.0
"""Makes observations of messages: checked, selected, aligned in time; the same live and from a bag."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adahi_ros.contract.contract import Camera, Contract, Source
from adahi_ros.contract.fields import NANOSECONDS, FieldReader, InputError
from adahi_ros.vision.interface import ImageError

LARGEST_NUMBER = 2**32 - 1  # of episodes and steps, as messages have them
EARLY = 0.25  # of a control period: how early a sample may start a step
OTHER_CLOCK_S = 1e8  # an age that large means another clock: simulated time counts from 0
EPISODE_GAP_S = 1.0  # without a step; then the robot counts a new episode
IMAGES_KEPT = 64
NUMBERS_KEPT = 2**17  # some seconds of a whole arm at 1 kHz; a megabyte
SAMPLES_KEPT = 64  # at least, of whatever size

NO_FEATURES = np.zeros(0, dtype=np.float32)

Encode = Callable[[np.ndarray], np.ndarray]
"""From images (C, H, W, 3) uint8 to features (C, F) float32."""


@dataclass(frozen=True)
class Observation:
    """The input of one control step.

    Attributes:
        stamp_ns: of the sample that started the step.
        episode: number of the episode.
        step: number of the step in it.
        values: (O,) float32: S numbers, then the features of images, except those for the target alone.
        goal: (G,) float32.
        read: (S,) float64, the S numbers before any operator, in the messages' units.
        images: of each camera, by key, (rows, columns, 3) uint8.
        named: the numbers of each key of the contract except cameras, (size,) float32.
        image_features: (F,) float32, of images for the target alone, if encoded, which no robot does.
    """

    stamp_ns: int
    episode: int
    step: int
    values: np.ndarray
    goal: np.ndarray
    read: np.ndarray
    images: Mapping[str, np.ndarray] = field(default_factory=dict)
    named: Mapping[str, np.ndarray] = field(default_factory=dict)
    image_features: np.ndarray = field(default_factory=lambda: NO_FEATURES)

    @property
    def key(self) -> tuple[int, int]:
        return self.episode, self.step


@dataclass(frozen=True)
class _Pace:
    """A sample that starts a step."""

    stamp_ns: int
    episode: int
    step: int


class Samples:
    """Samples of one source, sorted by time; of several with the same time only the first.

    They are kept as long as a step may need one, at any rate, within a bound of memory.

    Args:
        source: the source of these samples.
    """

    def __init__(self, source: Source | Camera) -> None:
        self.source = source
        self.reader = source.reader() if isinstance(source, Source) else None
        self._topic = source.channel.topic.lstrip("/")
        self._tolerance_ns = round(source.align.tolerance_s * NANOSECONDS)
        self._most = IMAGES_KEPT
        if isinstance(source, Source):
            self._most = max(SAMPLES_KEPT, NUMBERS_KEPT // source.size)
        self.clear()

    def clear(self) -> None:
        """Forget all samples."""
        self._times: list[int] = []
        self._samples: list[object] = []

    def add(self, at_ns: int, sample: Any, first_ns: int, last_ns: int) -> None:
        """Keep a sample, and those that a step from `first_ns` to `last_ns` may need."""
        times, samples = self._times, self._samples
        place = bisect_left(times, at_ns)
        if place == len(times) or times[place] != at_ns:
            times.insert(place, at_ns)
            samples.insert(place, sample)
        end = bisect_right(times, last_ns)  # later ones are from before a clock went back
        # The first step may use the newest sample before it.
        start = max(bisect_right(times, first_ns, hi=end) - 1, end - self._most, 0)
        for kept in (times, samples):
            del kept[end:]
            del kept[:start]

    def at(self, at_ns: int) -> object | None:
        """Return the sample for a step's time; None where it may yet arrive.

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
        """Describe the samples there are, instead of the one that a step waited for in vain."""
        near = self._nearest(at_ns)
        if near is None or self.source.align.strategy != "asof":
            return InputError(self._topic, f"no sample for a step has come ({self.source.key})")
        distance_s = abs(at_ns - self._times[near]) / NANOSECONDS
        return self._fault(f"the sample nearest to a step is {distance_s:.3f} s away, at most ")

    def _nearest(self, at_ns: int) -> int | None:
        """Return the index of the best sample; None where none fits."""
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


class ObservationAssembler:
    """Makes one observation per control step, once all of its samples have arrived.

    A sample of the pacing topic starts a step: every sample, where the contract has numbers of steps;
    otherwise samples that are a control period apart. A step with a missing sample gets no observation.

    Args:
        contract: defines an observation.
        encode: the encoder of the contract's images; needed with cameras, except where the images
            are for the target alone.
        missed: called with what was missing for each step that is dropped when the next one starts.
        first_episode: number of the first episode, where the robot counts them itself.
    """

    def __init__(
        self,
        contract: Contract,
        encode: Encode | None = None,
        missed: Callable[[InputError], None] = lambda fault: None,
        first_episode: int = 0,
    ) -> None:
        if encode is None and contract.cameras and not contract.images_for_target:
            raise ValueError("encode: None, must be the encoder of the contract's images")
        self.contract = contract
        self._encode = encode
        self._missed = missed
        goal = () if contract.goal is None else (contract.goal,)
        self._streams = [Samples(source) for source in (*contract.cameras, *contract.numbers, *goal)]
        self._counter = None if contract.episode is None else contract.episode.reader()
        self._pacer = next(each for each in contract.observed if each.channel.topic == contract.paced_by)
        self._max_age_ns = round(contract.max_age_s * NANOSECONDS)
        waits_s = [each.align.tolerance_s for each in contract.observed if each.align.strategy == "asof"]
        self._longest_wait_ns = self._max_age_ns + round(max(waits_s, default=0.0) * NANOSECONDS)
        self._lacking: Samples
        """The samples that the pending step waits for."""
        self._episode = first_episode
        self._started = False
        self._arrived: dict[str, tuple[FieldReader | None, object] | None]  # None: a message had our names
        self._grey: dict[str, bool] = {}  # of each camera, whether every image was
        self._spoiled: dict[str, str] = {}  # by camera, what happens to its images
        self.clear()

    @property
    def picture_faults(self) -> tuple[str, ...]:
        """Warnings of cameras without colour, and of images for the target that are stretched or enlarged."""
        keys = ", ".join(key for key, grey in self._grey.items() if grey)
        fault = "no image has colour; if the policy learnt colours, change the encoding"
        return (*([f"{keys}: {fault}"] if keys else []), *self._spoiled.values())

    def arrived(self) -> dict[str, str]:
        """Return the topics that had a message since the last call: '', or that none has our names."""
        arrived, self._arrived = self._arrived, {}
        return {
            topic: str(each[0].unmatched(each[1])) if each and each[0] else ""
            for topic, each in arrived.items()
        }

    def clear(self) -> None:
        """Forget all samples; where the robot counts episodes itself, the next observation starts one."""
        for stream in self._streams:
            stream.clear()
        self._arrived = {}
        self._pending: _Pace | None = None
        self._last_ns: int | None = None
        self._due_ns = 0
        self._step = 0

    def add(self, topic: str, message: Any, now_ns: int) -> Observation | None:
        """Take a message; return the observation that it completes, if any.

        Args:
            topic: as the contract names it.
            message: rclpy's, or one read from a bag.
            now_ns: when it was received.

        A message with none of the selected names, such as a gripper's joint state, is ignored without
        a fault.

        Raises:
            InputError: it is stale, lacks a field, or a number is not finite; names the field.
        """
        streams = [stream for stream in self._streams if stream.source.channel.topic == topic]
        concerned = [each for each in streams if each.reader is None or concerns(each.reader, message)]
        if concerned or not streams:
            self._arrived[topic] = None
        elif self._arrived.get(topic, ()) is not None:
            self._arrived[topic] = streams[0].reader, message
        stamps_ns = [self._stamp(stream.source, message, now_ns) for stream in concerned]
        # Images are decoded only when a step needs them: most frames never are.
        samples = [message if each.reader is None else each.reader.read(message) for each in concerned]
        # Only after all parts of the message are valid.
        for stream, at_ns, sample in zip(concerned, stamps_ns, samples, strict=True):
            # The oldest step still waits for a sample that may be as old as allowed on arrival.
            stream.add(at_ns, sample, now_ns - self._longest_wait_ns, now_ns + self._max_age_ns)
        if topic == self.contract.paced_by and (concerned or self._counter is not None):
            self._pace(message, now_ns)
        return None if self._pending is None else self._complete(self._pending)

    def _stamp(self, source: Source | Camera, message: Any, now_ns: int) -> int:
        """Return the time of a message, which must be fresh."""
        if source.align.timeline == "receive":
            return now_ns
        topic = source.channel.topic.lstrip("/")
        try:
            stamp = message.header.stamp
        except AttributeError:
            raise InputError(
                f"{topic}.header", "the message has none; its timeline must be receive"
            ) from None
        at_ns = int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)
        if not at_ns and now_ns > self._max_age_ns:
            allowed = "must be set by the driver, or align: {timeline: receive} counts from its arrival"
            raise InputError(f"{topic}.header.stamp", f"0, {allowed}")
        if abs(now_ns - at_ns) > self._max_age_ns:
            age_s = (now_ns - at_ns) / NANOSECONDS
            when = f"{abs(age_s):.3f} s {'old' if age_s > 0 else 'in the future'}"
            limit = f"at most max_age_s = {self.contract.max_age_s:g} s allowed"
            clock = "; is use_sim_time the same at both ends?" if abs(age_s) > OTHER_CLOCK_S else ""
            raise InputError(f"{topic}.header.stamp", f"{when}, {limit}{clock}")
        return at_ns

    def _pace(self, message: object, now_ns: int) -> None:
        at_ns = self._stamp(self._pacer, message, now_ns)
        if self.contract.episode is not None:
            self._begin(_Pace(at_ns, *self._counted(self.contract.episode, message)))
        elif self._begins_step(at_ns):
            self._begin(_Pace(at_ns, self._episode, self._step))

    def _begin(self, pace: _Pace) -> None:
        """Make a step wait for its samples, instead of the previous one."""
        before, self._pending = self._pending, pace
        if before is not None and (before.episode, before.step) != (pace.episode, pace.step):
            self._missed(self._lacking.missing_at(before.stamp_ns))

    def _counted(self, source: Source, message: object) -> tuple[int, int]:
        """Return the numbers of episode and step in a message."""
        assert self._counter is not None
        numbers = self._counter.read(message).tolist()
        for path, number in zip(source.select, numbers, strict=True):
            if not (number.is_integer() and 0 <= number <= LARGEST_NUMBER):
                field = f"{source.channel.topic.lstrip('/')}.{path}"
                raise InputError(field, f"{number:g}, must be a whole number from 0 to {LARGEST_NUMBER}")
        episode, step = map(int, numbers)
        return episode, step

    def _begins_step(self, at_ns: int) -> bool:
        """Count steps and episodes by the times of the pacing samples."""
        period_ns = round(self.contract.period_s * NANOSECONDS)
        last_ns, gap_ns = self._last_ns, max(round(EPISODE_GAP_S * NANOSECONDS), 5 * period_ns)
        if last_ns is None or not -period_ns < at_ns - last_ns <= gap_ns:  # samples may arrive out of order
            self._episode += self._started
            self._started = True
            self._step = 0
            self._due_ns = at_ns + period_ns
        elif at_ns >= self._due_ns - round(EARLY * period_ns):
            self._step += 1
            late = at_ns - self._due_ns
            self._due_ns = (self._due_ns if late < period_ns else at_ns) + period_ns
        else:
            return False
        self._last_ns = at_ns
        return True

    def _complete(self, pace: _Pace) -> Observation | None:
        try:
            samples = [stream.at(pace.stamp_ns) for stream in self._streams]
        except InputError:
            self._pending = None
            raise
        for stream, sample in zip(self._streams, samples, strict=True):
            if sample is None:
                self._lacking = stream
                return None
        self._pending = None
        seen = len(self.contract.cameras)
        pictured = zip(self.contract.cameras, samples[:seen], strict=True)
        images = {camera.key: self._pictured(camera, sample) for camera, sample in pictured}
        read: list[np.ndarray] = samples[seen:]  # type: ignore[assignment]
        goal = np.empty(0)
        if self.contract.goal is not None:
            goal = self.contract.goal.from_wire(read.pop())
        parts = [source.from_wire(sample) for source, sample in zip(self.contract.numbers, read, strict=True)]
        named: dict[str, np.ndarray] = {}
        for source, part in zip(self.contract.numbers, parts, strict=True):
            before = named.get(source.key, NO_FEATURES)
            named[source.key] = np.concatenate([before, part]).astype(np.float32)
        features = NO_FEATURES
        if images and self._encode is not None:
            features = self._encode(np.stack(list(images.values()))).ravel()
        if not self.contract.images_for_target:
            parts.append(features)
            features = NO_FEATURES
        return Observation(
            pace.stamp_ns,
            pace.episode,
            pace.step,
            np.concatenate(parts).astype(np.float32),
            goal.astype(np.float32),
            np.concatenate(read) if read else np.empty(0),
            images,
            named,
            features,
        )

    def _pictured(self, camera: Camera, message: object) -> np.ndarray:
        # Many robots have no cameras.
        from adahi_ros.vision.images import from_image, is_grey, resized, spoiled

        key, size = camera.key, (camera.rows, camera.columns)
        try:
            image = from_image(message)
            if not self.contract.encoder and (how := spoiled(image.shape, *size)):
                seen = f"{image.shape[0]} x {image.shape[1]} pixels are {how} to {size[0]} x {size[1]}"
                self._spoiled[key] = f"{key}: {seen}: resize to the camera's own size, or set the camera"
            image = resized(image, *size)
        except ImageError as error:
            raise InputError(camera.channel.topic.lstrip("/"), str(error)) from None
        self._grey[key] = self._grey.get(key, True) and is_grey(image)
        return image


def concerns(reader: FieldReader, message: object) -> bool:
    """Whether a message has any of the entries: other joints on the same topic are no fault."""
    return not reader.names_at or not reader.wanted.isdisjoint(getattr(message, reader.names_at))
