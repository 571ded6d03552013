# SPDX-License-Identifier: Apache-2.0
"""A client's observation, a mapping of arrays, as a request to one target; nothing in it is trusted.

A client's keys are the names of the target's own inputs, and `prompt`. A file lets a client keep its keys:

    keys:                                     # the target's name: the client's key, or keys to join
      observation.state: [observation/joint_position, observation/gripper_position]
      observation.images.front: observation/exterior_image_1_left
    metadata: {reset_pose: [0.0, -1.5]}       # sent to clients beside what the target says of itself
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator
from pydantic.dataclasses import dataclass

from adahi_ros.core.schema import Listed, Schema, Text, must
from adahi_ros.core.signature import Feature, ImageInput, Signature
from adahi_ros.core.texts import INSTRUCTION_LENGTH, abridged, nearest
from adahi_ros.protocol.request import Request, RequestError, RequestFault, check_finite
from adahi_ros.protocol.window import WireWindow
from adahi_ros.server.service import LoadedTarget
from adahi_ros.server.window_cache import Pixels

PROMPT = "prompt"
INSTRUCTION = "instruction"
MOST_NESTED = 4
NUMBERS = "fiub"  # kinds of numpy's
SHOWN = 200  # characters

Keys = Annotated[
    Listed[Text],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    must("be a key, or a list of keys", bool),
]


@dataclass(frozen=True, kw_only=True)
class ClientFile(Schema):
    """How clients name what a target reads.

    Attributes:
        keys: by the target's own name, the client's key; several are joined, in this order. `instruction` is
            the sentence.
        metadata: sent to clients beside the target's.
    """

    keys: dict[Text, Keys] = field(default_factory=dict)
    metadata: dict[Text, Any] = field(default_factory=dict)


class ObservationReader:
    """Reads the observations of clients for one target.

    Args:
        signature: the target's.
        file: of the clients' keys.
    """

    def __init__(self, signature: Signature, file: ClientFile) -> None:
        self._signature = signature
        self._keys = file.keys

    def metadata(self) -> dict[str, Any]:
        """Return what a client needs to know of the target, as plain data."""
        read, history = self._signature, self._signature.history
        several = [] if history == 1 else [history]
        inputs = {
            each.name: self._described(each.name, [*several, each.size], "float32") for each in read.features
        }
        inputs |= {each.name: self._described(each.name, [each.size], "float32") for each in read.conditions}
        for each in read.images:
            shape = [*several, each.rows, each.columns, 3]
            inputs[each.name] = self._described(each.name, shape, "uint8")
        if read.instruction:
            inputs[INSTRUCTION] = {"keys": [self._prompt]}
        return {
            "observation": inputs,
            "action_names": list(read.action_names),
            "action_dim": read.action_dim,
            "horizon": read.horizon,
            "rate_hz": read.rate_hz,
        }

    def _described(self, name: str, shape: list[int], dtype: str) -> dict[str, Any]:
        return {"keys": list(self._keys_of(name)), "shape": shape, "dtype": dtype}

    def most_bytes(self) -> int:
        """Return the size of the largest observation, with numbers as float64."""
        read = self._signature
        pixels = sum(3 * each.rows * each.columns for each in read.images)
        return read.history * (8 * read.observation_dim + pixels) + 8 * read.goal_dim

    def request(self, observation: object, header: Request) -> Request:
        """Return the request of an observation.

        Args:
            observation: unchecked.
            header: the request without its content.

        Raises:
            RequestError: something is missing or wrong; names the key, the value and what is allowed.
        """
        if not isinstance(observation, dict):
            found = type(observation).__name__
            raise _wrong(f"observation: a {found}, must be a mapping from keys to arrays")
        seen = _flat(observation)
        read, history = self._signature, self._signature.history
        numbers = [self._numbers(seen, each, history) for each in read.features]
        goal = [self._numbers(seen, each, 1)[0] for each in read.conditions]
        window = np.concatenate(numbers, axis=1) if numbers else np.zeros((history, 0), np.float32)
        return replace(
            header,
            window=WireWindow.pack(
                window, np.concatenate([*goal, np.zeros(0, np.float32)]), images=self._images(seen)
            ),
            instruction=self._sentence(seen) if read.instruction else "",
        )

    @property
    def _prompt(self) -> str:
        return self._keys.get(INSTRUCTION, (PROMPT,))[0]

    def _keys_of(self, name: str) -> tuple[str, ...]:
        return self._keys.get(name, (name,))

    def _numbers(self, seen: Mapping[str, Any], wanted: Feature, history: int) -> np.ndarray:
        """Return the numbers (history, size) float32 of an input."""
        keys = self._keys_of(wanted.name)
        parts = [_array(seen, key, history) for key in keys]
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        if joined.shape[1] != wanted.size:
            raise _wrong(
                f"{' with '.join(keys)}: {joined.shape[1]} numbers, must be {wanted.size}, the size of "
                f"{wanted.name}"
            )
        return joined

    def _images(self, seen: Mapping[str, Any]) -> list[bytes]:
        """Return H x C pictures, those of the oldest observation first."""
        if not self._signature.images:
            return []
        history = self._signature.history
        shown = [
            _pictures(seen, self._keys_of(each.name)[0], each, history) for each in self._signature.images
        ]
        return [Pixels.from_picture(pictures[at]) for at in range(history) for pictures in shown]

    def _sentence(self, seen: Mapping[str, Any]) -> str:
        sentence = _found(seen, self._prompt)
        if (
            not isinstance(sentence, str)
            or not 0 < len(sentence.strip()) <= len(sentence) <= INSTRUCTION_LENGTH
        ):
            allowed = f"must be a sentence of at most {INSTRUCTION_LENGTH} characters"
            raise RequestError(RequestFault.NO_INSTRUCTION, f"{self._prompt}: {_shown(sentence)}, {allowed}")
        return sentence


def reader_of(target: LoadedTarget, file: ClientFile) -> ObservationReader:
    """Return the reader of observations for a target.

    Raises:
        RequestError: the target needs drafts, which such clients do not have.
    """
    described = target.description
    if described.rule.needs_codes:
        raise RequestError(
            RequestFault.WRONG_SHAPE,
            f"target: {described.target!r} has the rule {described.acceptance}, must have replace here",
        )
    return ObservationReader(described.signature, file)


def _flat(observation: Mapping[Any, Any], within: str = "", depth: int = 1) -> dict[str, Any]:
    """Return a mapping without mappings inside: B in the mapping A is A/B."""
    flat: dict[str, Any] = {}
    for key, value in observation.items():
        name = f"{within}{key}"
        if isinstance(value, dict) and depth < MOST_NESTED:
            flat |= _flat(value, f"{name}/", depth + 1)
        else:
            flat[name] = value
    return flat


def _found(seen: Mapping[str, Any], key: str) -> Any:
    if key not in seen:
        there_are = abridged(", ".join(seen), SHOWN) or "nothing"
        raise _wrong(
            f"{abridged(key, SHOWN)}: missing, must be there{nearest(key, seen)}; there is {there_are}"
        )
    return seen[key]


def _array(seen: Mapping[str, Any], key: str, history: int) -> np.ndarray:
    """Return the numbers (history, N) float32 at a key; one observation may lack the first axis."""
    value = _found(seen, key)
    try:
        array = np.asarray(value)
    except ValueError:  # lists of several lengths
        array = np.array("")
    if array.dtype.kind not in NUMBERS:
        raise _wrong(f"{key}: {_shown(value)}, must be numbers")
    if history == 1 and array.ndim < 2:
        array = array.reshape(1, -1)
    if array.ndim != 2 or len(array) != history:
        wanted = "a list of numbers" if history == 1 else f"{history} lists of numbers, the oldest first"
        raise _wrong(f"{key}: an array of shape {np.shape(value)}, must be {wanted}")
    with np.errstate(over="ignore"):  # too large ones become infinite, and are refused
        numbers = array.astype(np.float32)
    if numbers.size:
        check_finite(key, numbers)
    return numbers


def _pictures(seen: Mapping[str, Any], key: str, wanted: ImageInput, history: int) -> np.ndarray:
    """Return the pictures (history, rows, columns, 3) uint8 at a key; colours may be the first axis."""
    value = _found(seen, key)
    if not isinstance(value, np.ndarray) or value.dtype != np.uint8:
        raise _wrong(f"{key}: {_shown(value)}, must be an image of uint8")
    pictures = value[None] if history == 1 and value.ndim == 3 else value
    if pictures.ndim == 4 and pictures.shape[3] != 3 and pictures.shape[1] == 3:
        pictures = pictures.transpose(0, 2, 3, 1)
    rows, columns = wanted.rows, wanted.columns
    fits = pictures.ndim == 4 and len(pictures) == history and pictures.shape[3] == 3
    if not fits or not (0 < pictures.shape[1] <= rows and 0 < pictures.shape[2] <= columns):
        first = "" if history == 1 else f"{history}, "
        raise _wrong(
            f"{key}: an array of shape {value.shape}, must be ({first}{rows}, {columns}, 3) or smaller"
        )
    return pictures


def _shown(value: object) -> str:
    """Return what a value is, in a few words."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    return abridged(repr(value), 60) if isinstance(value, str | int | float) else f"a {type(value).__name__}"


def _wrong(message: str) -> RequestError:
    return RequestError(RequestFault.WRONG_SHAPE, abridged(message, 500))
