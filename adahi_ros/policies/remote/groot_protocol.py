# SPDX-License-Identifier: Apache-2.0
"""Messages to and from the policy server of Isaac GR00T, by the version of its protocol.

See NVIDIA/Isaac-GR00T: gr00t/policy/server_client.py and gr00t_policy.py (N1.6, N1.7), gr00t/eval/service.py
and gr00t/model/policy.py (N1.5).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adahi_ros.core.texts import abridged
from adahi_ros.policies.remote.packed_arrays import PackedError, unpack_groot
from adahi_ros.policies.remote.remote import ERROR_LENGTH, ServerFault, error_line

EARLY_ERROR = b"ERROR"  # of N1, to requests that it cannot read


@dataclass(frozen=True)
class Protocol:
    """Layout of observations, actions and names.

    Attributes:
        flat: an observation is one mapping, with `video.front` and `state.gripper` in it; actions likewise.
        bare: a request's data is only the observation, and an answer only the actions.
        prefixed: the modality configuration also has prefixed names such as video.front.
        dtype: of the state.
    """

    flat: bool = False
    bare: bool = False
    prefixed: bool = False
    dtype: type[np.floating[Any]] = np.float32

    def data(
        self,
        video: Mapping[str, np.ndarray],
        state: Mapping[str, np.ndarray],
        language: Mapping[str, Sequence[str]],
    ) -> dict[str, Any]:
        """Return the data of a request for actions of B robots.

        Args:
            video: by name, (B, H, rows, columns, 3) uint8.
            state: by name, (B, H, size).
            language: by name, B sentences.
        """
        typed = {name: values.astype(self.dtype) for name, values in state.items()}
        observation: dict[str, Any]
        if self.flat:
            observation = {f"video.{name}": values for name, values in video.items()}
            observation |= {f"state.{name}": values for name, values in typed.items()}
            observation |= {name: list(sentences) for name, sentences in language.items()}
        else:
            texts = {name: [[each] for each in sentences] for name, sentences in language.items()}
            observation = {"video": dict(video), "state": typed, "language": texts}
        return observation if self.bare else {"observation": observation, "options": None}

    def actions(self, answer: Any) -> Any:
        """Return the actions in an answer, an array or a mapping of arrays.

        Raises:
            ServerFault: there are none.
        """
        if not self.bare:
            answer = answer[0] if isinstance(answer, list) and answer else None
        if not isinstance(answer, dict | np.ndarray):
            raise ServerFault("answered without actions")
        return answer


PROTOCOLS = {
    "n1.5": Protocol(flat=True, bare=True, prefixed=True, dtype=np.float64),
    "n1.6": Protocol(),
    "n1.6_sim": Protocol(flat=True),
}
"""Layouts of GR00T N1.5; of N1.6 and N1.7; and of these when served with `--use-sim-policy-wrapper`."""


@dataclass(frozen=True)
class Modalities:
    """Inputs and outputs of a policy, to be compared with its modality configuration.

    Attributes:
        video, state, language: names of its inputs.
        action: names of the used actions.
        history: H, the newest observations, of video and state.
        horizon: T, the least number of actions.
    """

    video: tuple[str, ...]
    state: tuple[str, ...]
    language: tuple[str, ...]
    action: tuple[str, ...]
    history: int
    horizon: int

    def check_greeting(self, greeting: Mapping[Any, Any]) -> None:
        """Compare with what vLLM-Omni sends first of a policy; what it does not say is accepted.

        Raises:
            ServerFault: the policy differs.
        """
        keys, horizon = greeting.get("action_keys"), greeting.get("action_horizon")
        if isinstance(keys, list) and not {*self.action} <= {*map(str, keys)}:
            found, ours = _listed({*map(str, keys)}), _listed({*self.action})
            raise ServerFault(f"is another policy: its action is {found}, the file's {ours}")
        if isinstance(horizon, int) and horizon < self.horizon:
            raise ServerFault(
                f"is another policy: it plans {horizon} actions, the file's horizon is {self.horizon}"
            )

    def check(self, configuration: Any, protocol: Protocol) -> None:
        """Compare with a server's configuration; a server without one is accepted.

        Raises:
            ServerFault: the policy differs.
        """
        if not isinstance(configuration, dict):
            raise ServerFault(f"is no policy server: its modalities are a {type(configuration).__name__}")
        for modality in ("video", "state", "language", "action"):
            if modality not in configuration:
                continue
            keys, steps = _configured(modality, configuration[modality])
            ours: set[str] = set(getattr(self, modality))
            if protocol.prefixed and modality != "language":
                ours = {f"{modality}.{name}" for name in ours}
            if not ours <= keys or (modality != "action" and ours < keys):
                raise ServerFault(
                    f"is another policy: its {modality} is {_listed(keys)}, the file's {_listed(ours)}"
                )
            if modality in ("video", "state") and steps != list(range(1 - self.history, 1)):
                raise ServerFault(
                    f"is another policy: it reads {modality} of steps {abridged(str(steps), ERROR_LENGTH)}, "
                    f"the file's history is the newest {self.history}"
                )
            if modality == "action" and len(steps) < self.horizon:
                raise ServerFault(
                    f"is another policy: it plans {len(steps)} actions, the file's horizon is {self.horizon}"
                )


def _configured(modality: str, configuration: Any) -> tuple[set[str], list[Any]]:
    """Return the keys and steps of a modality configuration."""
    content = (
        configuration.get("as_json", configuration.get("as_dict", configuration))
        if isinstance(configuration, dict)
        else None
    )
    try:
        if isinstance(content, str):
            content = json.loads(content)
        keys, steps = content["modality_keys"], content["delta_indices"]  # type: ignore[index]
        if not isinstance(steps, list):
            raise TypeError("delta_indices")
        return set(map(str, keys)), steps
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ServerFault(f"is no policy server: its {modality} is no modality configuration") from None


def _listed(names: set[str]) -> str:
    return abridged(", ".join(sorted(names)) or "nothing", ERROR_LENGTH)


def answer_of(message: bytes) -> object:
    """Return the content of a server's answer.

    Raises:
        ServerFault: it is an error, or cannot be read.
    """
    if message == EARLY_ERROR:
        raise ServerFault("answered ERROR: is an early GR00T server, which reads pickles and not msgpack")
    try:
        answer = unpack_groot(message)
    except PackedError as error:
        raise ServerFault(f"answered with {error}") from None
    if isinstance(answer, dict) and "error" in answer:
        raise ServerFault(f"answered with an error: {error_line(str(answer['error']))}")
    return answer
