# SPDX-License-Identifier: Apache-2.0
"""Computes a target's inputs from a robot's observations, as sent and received over the network.

Only the full path gives bit-identical inputs: images are scaled down before compression, and up after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adahi_lab.calibration.lerobot_recording import LeRobotRecording, is_lerobot
from adahi_lab.datasets.bag_dataset import BagDataset, observations_of
from adahi_ros.acceptance.replace import Replace
from adahi_ros.contract.assembler import Observation
from adahi_ros.contract.contract import BY_CONTRACT, Contract
from adahi_ros.core.assets import ENCODERS, named
from adahi_ros.core.signature import GOAL, OBSERVATION, Feature, Observations, Signature
from adahi_ros.protocol.description import Description, Wants
from adahi_ros.protocol.request import NOTHING
from adahi_ros.protocol.window import WHOLE, WireWindow
from adahi_ros.robot.compatibility import offer_of
from adahi_ros.robot.target_view import VIEWS, view_of_contract
from adahi_ros.server.engine import check_request
from adahi_ros.server.received_images import ReceivedImages, pictures
from adahi_ros.server.window_cache import WindowCache
from adahi_ros.vision.encoder import Encoder
from adahi_ros.vision.interface import QUALITY

ROBOT = "bag"


class Jpeg(NamedTuple):
    """How images are compressed before they are sent: the robot's verification.jpeg_*.

    Attributes:
        quality: at most.
        budget_bytes: upper limit of an image, reached by a lower quality; 0 for none.
    """

    quality: int = QUALITY
    budget_bytes: int = 0


AS_BY_DEFAULT = Jpeg()
MEASURED = 32  # observations
BATCH = 16  # observations that a target gets at once
NO_CODES = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Query:
    """How a target is asked at recorded steps.

    Attributes:
        bags: of the robot, or LeRobotDatasets.
        contract: what its observations are made of.
        namespace: of the robot.
        name: of the target, for people.
        origin: everything the plans depend on except the bags: contract, target and its settings.
        samples: S, plans at each step; 1 for a target without draws.
        seed: of the draws.
        jpeg: of images that are sent.
        batch: observations that the target gets at once.
    """

    bags: Sequence[Path]
    contract: Contract
    namespace: str
    name: str
    origin: dict[str, Any]
    samples: int = 1
    seed: int = 0
    jpeg: Jpeg = AS_BY_DEFAULT
    batch: int = BATCH


class TargetInputs:
    """Turns a robot's observations into the inputs of its target.

    Args:
        contract: of the robot.
        signature: the target's.
        encoder: the verifier's, for a target that reads image features; None without.
        jpeg: of images that are sent.

    Attributes:
        sent_bytes: size of the observation that was read last, as it is sent.
    """

    def __init__(
        self,
        contract: Contract,
        signature: Signature,
        encoder: Encoder | None = None,
        jpeg: Jpeg = AS_BY_DEFAULT,
    ) -> None:
        self._signature = signature
        view = view_of_contract(BY_CONTRACT, contract.images_for_target, bool(contract.encoder))
        self._view = VIEWS[view](contract.number_dim, *jpeg)
        images = None if encoder is None else ReceivedImages(encoder)
        read = len(signature.images)
        self._windows = WindowCache(signature.history, signature.observation_dim, images, pictures=read)
        self._last: tuple[int, int] | None = None
        self.sent_bytes = 0

    def add(self, observation: Observation) -> None:
        """Take the newest observation, as the robot's loop does; a repeated one is ignored."""
        before, self._last = self._last, observation.key
        if before == self._last:
            return
        if before is None or before[0] != observation.episode or before[1] > observation.step:
            self._view.forget()
        observed = {**observation.named, OBSERVATION: observation.values, GOAL: observation.goal}
        self._view.add(observed, observation.images)

    def read(self, instruction: str = "") -> Observations:
        """Return the current inputs of one robot.

        Args:
            instruction: for a target that takes one.

        Raises:
            RequestError: a verifier would refuse it.
        """
        sent = self._view.window(self._signature)
        newest = sent.newest(1)
        self.sent_bytes = len(newest.numbers) + len(newest.features) + sum(map(len, newest.images))
        window = self._windows.complete(ROBOT, WireWindow(WHOLE, sent.rows, sent.goal))
        self._windows.keep(ROBOT, window, 0.0)
        return check_request(
            self._signature,
            Replace(),
            window.values,
            window.goal,
            NO_CODES,
            NOTHING,
            instruction=instruction,
            images=pictures(self._signature.images, window.images),
        ).observations


def verifiers_encoder(contract: Contract, signature: Signature) -> Encoder | None:
    """Return the verifier's encoder of the images, for a target that reads their features.

    Raises:
        ValueError: it cannot be loaded.
    """
    if not (contract.images_for_target and signature.image_dim):
        return None
    return Encoder.load(named(contract.encoder, ENCODERS))


def check_target(contract: Contract, name: str, signature: Signature, encoder: Encoder | None) -> None:
    """Check that a target fits a robot, as the robot does before its first request.

    Args:
        contract: of the robot.
        name: of the target.
        signature: likewise.
        encoder: see `verifiers_encoder`.

    Raises:
        ValueError: it does not fit; names the target and what differs.
    """
    size, images = contract.number_dim, 0
    if encoder is not None:
        images = len(contract.cameras) * encoder.features
    elif contract.encoder and not contract.images_for_target:
        size += len(contract.cameras) * Encoder.load(named(contract.encoder, ENCODERS)).features
    own = Signature(1, 1, contract.action.size, (Feature(OBSERVATION, size),))
    fault = Wants(own, offer_of(contract, size, images)).mismatch(Description(name, "replace", signature))
    if fault is not None:
        raise ValueError(f"target: {name}: {fault}")


def read_inputs(
    query: Query, dataset: BagDataset, signature: Signature, encoder: Encoder | None, first: int = 0
) -> Iterator[Observations]:
    """Yield a target's inputs at each step of a dataset, of one robot; few images are in memory at a time.

    Args:
        query: how the target is asked.
        dataset: of its bags, by its contract.
        signature: the target's.
        encoder: see `verifiers_encoder`.
        first: step to begin with.

    Raises:
        BagError: a bag is no longer readable.
        RequestError: a verifier would refuse an observation.
    """
    instructions, step = dataset.instructions, first
    for bag, path in enumerate(query.bags):
        wanted = deque(dataset.places[first:][dataset.places[first:, 0] == bag, 1].tolist())
        if not wanted:
            continue
        inputs = TargetInputs(query.contract, signature, encoder, query.jpeg)
        observed = _observations(path, query, bool(instructions), signature)
        for number, observation in enumerate(observed):
            inputs.add(observation)
            if number == wanted[0]:
                yield inputs.read(instructions[step] if instructions else "")
                step += 1
                wanted.popleft()
                if not wanted:
                    break


def mean_request_bytes(
    query: Query, dataset: BagDataset, signature: Signature, encoder: Encoder | None
) -> int:
    """Return the mean size of the first observations as they are sent; see `read_inputs`."""
    inputs = TargetInputs(query.contract, signature, encoder, query.jpeg)
    instruction = dataset.instructions[0] if dataset.instructions else ""
    sizes = []
    for observation in islice(_observations(query.bags[0], query, bool(instruction), signature), MEASURED):
        inputs.add(observation)
        inputs.read(instruction)
        sizes.append(inputs.sent_bytes)
    return round(sum(sizes) / len(sizes)) + len(instruction)


def _observations(path: Path, query: Query, instructed: bool, signature: Signature) -> Iterator[Observation]:
    """Yield the observations of a bag or a LeRobotDataset, identical to those of the dataset made of it."""
    contract, namespace = query.contract, query.namespace
    if is_lerobot(path):
        cameras = [each.key for each in contract.cameras if signature.image_dim]  # the verifier encodes all
        recording = LeRobotRecording.read_from(path, contract)
        yield from recording.observations([*cameras, *(image.name for image in signature.images)])
        return
    yield from observations_of(path, contract, namespace, instructed)
