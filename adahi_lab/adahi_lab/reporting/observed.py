# SPDX-License-Identifier: Apache-2.0
"""Other data of a run's bag: measured joints, camera frames, safety interventions."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from adahi_lab.calibration.bag_run import BagRun
from adahi_lab.reporting.run_holds import Held, held
from adahi_ros.bags.bag_reader import OnLoss, read_bag
from adahi_ros.bags.recorded_topics import BESIDE_A_RUN, DRAFT_STATUS
from adahi_ros.contract.assembler import ObservationAssembler
from adahi_ros.contract.commanded import commanded_by_sink
from adahi_ros.contract.contract import GOALS, Contract
from adahi_ros.contract.fields import NANOSECONDS, InputError, stamp_ns
from adahi_ros.robot.session import VerifierState
from adahi_ros.safety.intervention import Intervention
from adahi_ros.vision.images import resized, to_jpeg, within

FRAMES = 240  # of a camera, at most; about 5 kB each
FRAME_ROWS, FRAME_COLUMNS, FRAME_QUALITY = 144, 192, 60
UNITS = {
    **dict.fromkeys(("positions", GOALS), "rad or m"),
    "velocities": "rad/s or m/s",
    "accelerations": "rad/s² or m/s²",
    "effort": "N m or N",
}
"""By the commanded field, as messages have them."""
OWN_UNIT = "the policy's unit"  # `apply` makes it of the message's
T = TypeVar("T", bound=Any)
KINDS = tuple(each.name.lower() for each in Intervention)


@dataclass(frozen=True)
class Frame:
    """A camera's image, small.

    Attributes:
        time_s: as in `BagRun.times_s`.
        camera: key of the contract.
        jpeg: in base64.
    """

    time_s: float
    camera: str
    jpeg: str


@dataclass(frozen=True)
class Observed:
    """Data of a bag except statuses.

    Attributes:
        names: of the A entries of an action; numbers where no contract names them.
        units: of these entries, as far as the contract says; empty without one.
        held: whether the arm was held, and why, at each state of the safety envelope.
        measured: (T, A) of the run's steps in action units, NaN without a measurement.
        frames: in the order of their times.
        marks: times of safety interventions, s as in `BagRun.times_s`, and their kinds.
    """

    names: tuple[str, ...]
    measured: np.ndarray
    frames: tuple[Frame, ...]
    marks: tuple[tuple[float, str], ...]
    units: tuple[str, ...] = ()
    held: tuple[Held, ...] = ()


def read_observed(
    path: Path, run: BagRun, contract: Contract | None, namespace: str = "", on_loss: OnLoss | None = None
) -> Observed:
    """Read measured joints, frames and interventions of a run. For `on_loss` see `read_bag`.

    Args:
        path: bag of the run.
        run: measurements are matched to its steps.
        contract: names topics and joints; None reads only the safety interventions.
        namespace: of the robot.
        on_loss: see `read_bag`.

    Raises:
        BagError: the bag cannot be used.
    """
    width = max((max(len(s.action), len(s.planned_action)) for s in run.steps), default=0)
    names = _names(contract, width)
    places = [None] * width if contract is None else contract.measured(names).places
    row_at = {step.stamp_ns: row for row, step in enumerate(run.steps)}
    measured = np.full((len(run.steps), width), np.nan)
    zero_ns = run.steps[0].stamp_ns
    frames: list[Frame] = []
    marks: list[tuple[float, str]] = []
    states: list[Held] = []
    link: int = VerifierState.READY
    assembler = None if contract is None else _assembler(contract)
    channels = {} if contract is None else {topic: c.kind for topic, c in contract.channels.items()}
    every_s = max(float(run.times_s[-1]) / FRAMES, 0.0)
    due_s: dict[str, float] = {}
    for received in read_bag(path, DRAFT_STATUS, {**BESIDE_A_RUN, **channels}, namespace, on_loss):
        if received.topic == "safety_state":
            at_s = (stamp_ns(received.message.header.stamp) - zero_ns) / NANOSECONDS
            marks += [(at_s, KINDS[kind]) for kind in received.message.interventions if kind < len(KINDS)]
            states.append(held(at_s, received.message, link))
        elif received.topic == "link_state":
            link = received.message.verifier
        elif assembler is not None and received.topic in channels:
            try:
                observation = assembler.add(received.topic, received.message, received.received_ns)
            except InputError:
                continue
            if observation is None:
                continue
            row = row_at.get(observation.stamp_ns)
            if row is not None:
                measured[row] = [np.nan if p is None else observation.values[p] for p in places]
            at_s = (observation.stamp_ns - zero_ns) / NANOSECONDS
            for camera, image in observation.images.items():
                if at_s >= due_s.get(camera, -np.inf):
                    due_s[camera] = at_s + every_s
                    frames.append(Frame(at_s, camera, _small(image)))
    units = () if contract is None else tuple(_units(contract))
    units *= len(units) == width
    return Observed(names, measured, tuple(frames), tuple(_changes(marks)), units, tuple(states))


def _names(contract: Contract | None, width: int) -> tuple[str, ...]:
    if contract is None:
        return tuple(str(number) for number in range(width))
    named = tuple(entry.partition(".")[2] for entry in contract.action.select)
    return named if len(named) == width else tuple(str(number) for number in range(width))


def _units(contract: Contract) -> Iterator[str]:
    """Yield the unit of each entry of an action. A contract does not say whether a joint turns or slides."""
    for sink, what in zip(contract.action.sinks, commanded_by_sink(contract.action), strict=True):
        applied = [each.forward for each in sink.source.operators]
        for name, field in zip(what.names, what.fields, strict=True):
            unit = UNITS[field]
            if name.startswith(("linear.", "angular.")):  # of a twist
                unit = unit.split(" or ")[name.startswith("linear.")]
            if applied == [np.rad2deg]:
                unit = unit.split(" or ")[0].replace("rad", "degrees")
            yield unit if applied in ([], [np.rad2deg]) else OWN_UNIT


def _assembler(contract: Contract) -> ObservationAssembler:
    nothing = np.zeros((len(contract.cameras), 1), dtype=np.float32)
    return ObservationAssembler(contract, None if contract.images_for_target else lambda images: nothing)


def _small(image: np.ndarray) -> str:
    rows, columns = within(image.shape[:2], FRAME_ROWS, FRAME_COLUMNS, keeps_aspect=True)
    return base64.b64encode(to_jpeg(resized(image, rows, columns), FRAME_QUALITY)).decode()


def _changes(marks: Sequence[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """Yield the first of repeated marks within a second."""
    last: dict[str, float] = {}
    for at_s, kind in sorted(marks):
        if at_s - last.get(kind, -np.inf) > 1.0:
            yield at_s, kind
        last[kind] = at_s


def activations(run: BagRun, observed: Observed) -> list[tuple[BagRun, Observed]]:
    """Split a run where the policy was activated again: its counters restart at 0."""
    counts = [sum(step.reason_counts) for step in run.steps]
    starts = [0, *(row + 1 for row, (a, b) in enumerate(pairwise(counts)) if b < a), len(counts)]
    if len(starts) == 2:
        return [(run, observed)]
    return [_part(run, observed, first, end) for first, end in pairwise(starts)]


def _part(run: BagRun, observed: Observed, first: int, end: int) -> tuple[BagRun, Observed]:
    zero_s = float(run.times_s[first])
    end_s = float(run.times_s[end]) if end < len(run.times_s) else np.inf
    steps = run.steps[first:end]
    episodes = {step.episode for step in steps}
    judged: list[Any] = [each for each in run.episodes if each.episode in episodes]
    if any(len([e for e in run.episodes if e.episode == number]) > 1 for number in episodes):
        judged = []  # two activations with the same number: the result is ambiguous

    def since(timed: Sequence[T]) -> tuple[T, ...]:
        """Return what is of this part, with times since its first step."""
        return tuple(replace(e, time_s=e.time_s - zero_s) for e in timed if zero_s <= e.time_s < end_s)

    times_s, link = run.times_s[first:end] - zero_s, since(run.link)
    part = BagRun(steps, times_s, tuple(judged), link, {}, run.loss, since(run.pushes))
    marks = tuple((at_s - zero_s, kind) for at_s, kind in observed.marks if zero_s <= at_s < end_s)
    frames, held = since(observed.frames), since(observed.held)
    measured = observed.measured[first:end]
    return part, replace(observed, measured=measured, frames=frames, marks=marks, held=held)
