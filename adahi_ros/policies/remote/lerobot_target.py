# SPDX-License-Identifier: Apache-2.0
"""A LeRobot policy, run by LeRobot in this process (docs/reference/target_file.md).

    kind: lerobot
    folder: pretrained_model           # relative to this file
    device: auto                       # or cpu, cuda, cuda:1: cuda where there is one
    dtype: float32                     # or bfloat16, float16, by autocast
    compile: false                     # torch.compile

and the fields of `described.py`. The folder is the one that `save_pretrained` of the policy and its two
processors, or training, writes: config.json, model.safetensors, policy_preprocessor.json and
policy_postprocessor.json with the files that they name. LeRobot itself loads policy and processors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from pydantic.dataclasses import dataclass

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.schema import Text, checked, one_of
from adahi_ros.core.signature import Observations
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling, TooManyAtOnceError
from adahi_ros.policies.networks.computing import DTYPES, autocast, device_called
from adahi_ros.policies.remote.described import described
from adahi_ros.policies.remote.lerobot_folder import checked_folder, import_lerobot, read_config
from adahi_ros.policies.remote.lerobot_metadata import learnt_ranges, metadata_of
from adahi_ros.policies.remote.target_fields import TargetFile

ACTION, TASK, IMAGES = "action", "task", "observation.images"
TAKE_NOISE = ("pi0", "pi05", "smolvla")  # types with plans that are a function of a noise argument
DRAW_NOTHING = ("act",)
SEEDS = 1 << 53  # of a draw in [0, 1) that is a float64
SMALLEST = 1e-6  # of an action's scale
BLOCK = 1 << 20  # bytes


@dataclass(frozen=True, kw_only=True)
class LeRobotFile(TargetFile):
    """Fields of `kind: lerobot`.

    Attributes:
        folder: written by `save_pretrained`, relative to this file: `config.json`, `model.safetensors`, and
            the files of both processors.
        device: `auto` (a GPU where there is one), `cpu`, `cuda`, `cuda:1`.
        dtype: `float32`; `bfloat16` or `float16` by autocast.
        compile: use torch.compile; the first plans then take minutes.
    """

    folder: Text
    device: Text = "auto"
    dtype: Annotated[str, one_of(DTYPES)] = "float32"
    compile: bool = False


class LeRobotTarget(Policy):
    """Plans as LeRobot's policy does; for every robot from its request only, without state.

    Random draws come from the request. Flows (pi0, pi0.5, SmolVLA) receive their noise, scaled by the
    temperature. Other policies that draw while they plan, such as diffusion or VQ-BeT, plan for one robot at
    a time, with torch's generators seeded for it and restored afterwards. So a plan depends neither on
    earlier requests nor on other robots in the batch.

    Committed actions are passed to LeRobot's real-time chunking (Black, Galliker and Levine, 2025) where the
    policy has it: flows, unless compiled or relative. Other policies ignore them.

    Args:
        beside: the folder of the YAML file.
        values: content of the file.

    Raises:
        ImportError: LeRobot is not installed, or a package that the policy needs is not.
        ValueError: names the field, the value and what was allowed.
    """

    def __init__(self, beside: Path, /, **values: Any) -> None:
        file: LeRobotFile = checked(LeRobotFile, values)
        path = checked_folder(beside, file.folder)
        self._device = device_called(file.device)
        self.device = str(self._device)
        self._dtype = DTYPES[file.dtype]
        import_lerobot()
        from lerobot.policies.factory import get_policy_class, make_pre_post_processors

        self._config = config = read_config(path)
        config.device = str(self._device)
        moved = {"device_processor": {"device": config.device}}
        self._before, self._after = make_pre_post_processors(config, path, preprocessor_overrides=moved)
        own = metadata_of(path)
        own = replace(own, action_scale=_action_scale(config, self._before, self._after, own.action_dim))
        self._interface = interface = described(file, own, TASK)
        # Committed actions are absolute, so they cannot guide what this file calls relative.
        self._guided = not file.compile and not file.relative and hasattr(config, "rtc_config")
        if self._guided:
            _enable_guidance(config)
        # A missing weight would be random: LeRobot only logs it, unless it is strict.
        self._policy = get_policy_class(config.type).from_pretrained(path, config=config, strict=True)
        self._policy.requires_grad_(False)
        self._remembers = any(name != ACTION for name in getattr(self._policy, "_queues", None) or ())
        if interface.signature.history > 1 and not self._remembers:
            raise ValueError(
                f"folder: {file.folder!r}, a {config.type} of n_obs_steps above 1, must queue them"
            )
        if file.compile:
            _compile(self._policy)
        count = sum(each.numel() for each in self._policy.parameters())
        signature = replace(interface.signature, parameters=count)
        super().__init__(signature, interface.action_range, interface.action_scale, _digest(path), draws=1)
        self.ranges = learnt_ranges(path, interface)

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy.propose`; the temperature is that of a flow's noise."""
        committed = sampling.committed
        if committed is None or not self._guided:
            committed = np.empty((len(draws), 0, self.signature.action_dim), dtype=np.float32)
        counts = np.isfinite(committed).all(axis=2).sum(axis=1)
        # Robots with equally many committed steps share a batch; policies that draw while planning run alone.
        alone = self._config.type not in (*TAKE_NOISE, *DRAW_NOTHING)
        groups = [np.array([row]) for row in range(len(draws))] if alone else _alike(counts)
        shape = len(draws), self.signature.horizon, self.signature.action_dim
        actions = np.empty(shape, dtype=np.float32)
        for rows in groups:
            known = committed[rows, : counts[rows[0]]]
            actions[rows] = self._plans(observations.rows(rows), draws[rows, 0], sampling.temperature, known)
        return Proposal(self._interface.relative.absolute(actions, observations))

    @torch.no_grad()
    def _plans(
        self, observations: Observations, draws: np.ndarray, temperature: float, known: np.ndarray
    ) -> np.ndarray:
        """Return the plans (B, T, A) of B robots.

        Args:
            observations: of them.
            draws: (B,).
            temperature: of a flow's noise.
            known: (B, d, A), actions that they execute first in any case.

        Raises:
            TooManyAtOnceError: the device has too little free memory.
            ValueError: the plans have another shape than in the policy's configuration.
        """
        options: dict[str, Any] = {}
        if self._config.type in TAKE_NOISE:
            options["noise"] = temperature * self._noise(draws)
        generators = nullcontext() if options else _seeded(self._device, draws[0])
        with generators, autocast(self._device, self._dtype):
            try:
                batch, scaled = self._read(observations, known)
                if known.shape[1]:
                    options |= {"prev_chunk_left_over": scaled, "inference_delay": known.shape[1]}
                chunk = self._policy.predict_action_chunk(batch, **options)
            except torch.OutOfMemoryError as error:
                raise TooManyAtOnceError(f"lerobot: {str(error).splitlines()[0]}") from error
        plans: np.ndarray = self._after(chunk.float()).numpy()
        horizon, action_dim = self.signature.horizon, self.signature.action_dim
        if plans.shape[1] < horizon or plans.shape[::2] != (len(draws), action_dim):
            allowed = f"({len(draws)}, at least {horizon}, {action_dim})"
            raise ValueError(f"actions: of shape {plans.shape}, must be {allowed}, as its config.json says")
        return plans[:, :horizon]

    def _read(self, observations: Observations, known: np.ndarray) -> tuple[dict[str, Any], Any]:
        """Return the newest observation in the policy's format, and the committed actions in its scale.

        Earlier observations are in the policy's queues, where it has any; nothing else is.
        """
        from lerobot.policies.utils import populate_queues

        self._policy.reset()  # clears any state, such as TD-MPC's last plan
        for step in range(self.signature.history):
            batch = self._before(self._observed(observations, step, known))
            scaled = batch.pop(ACTION, None)
            if self._remembers:  # as its select_action does, for predict_action_chunk reads the queues
                pictures = [batch[name] for name in self._config.image_features]
                if pictures:
                    batch[IMAGES] = torch.stack(pictures, dim=-4)
                self._policy._queues = populate_queues(self._policy._queues, batch)
        return batch, scaled

    def _observed(self, observations: Observations, step: int, known: np.ndarray) -> dict[str, object]:
        """Return one of the observations as in LeRobot's evaluation: pixels from 0 to 1, (B, 3, H, W)."""
        state = self._interface.state(observations)
        batch: dict[str, Any] = {name: torch.from_numpy(each[:, step]) for name, each in state.items()}
        for name, each in self._interface.pictures(observations).items():
            pixels = torch.from_numpy(np.ascontiguousarray(each[:, step])).permute(0, 3, 1, 2)
            batch[name] = pixels.contiguous().float() / 255
        sentences = self._interface.sentences(observations, len(known)) or ("",) * len(known)
        return {**batch, TASK: list(sentences), ACTION: torch.from_numpy(known) if known.shape[1] else None}

    def _noise(self, draws: np.ndarray) -> torch.Tensor:
        """Return a flow's noise (B, chunk_size, max_action_dim), equal on every device."""
        shape = self._config.chunk_size, self._config.max_action_dim
        generators = [torch.Generator().manual_seed(int(draw * SEEDS)) for draw in draws]
        return torch.stack([torch.randn(shape, generator=each) for each in generators]).to(self._device)


def _action_scale(config: Any, before: Any, after: Any, action_dim: int) -> np.ndarray:
    """Return how far an action (A,) moves while the policy's own output goes from 0 to 1."""
    nothing = {name: torch.zeros(2, *feature.shape) for name, feature in config.input_features.items()}
    before({**nothing, TASK: ["", ""], ACTION: None})  # relative actions are added to the state that it saw
    ends = after(torch.stack([torch.zeros(action_dim), torch.ones(action_dim)]))
    scale = np.abs((ends[1] - ends[0]).numpy())
    scale[scale < SMALLEST] = 1.0  # an action that was constant in the data
    return scale


def _enable_guidance(config: Any) -> None:
    """Make LeRobot guide plans by committed actions; without any, plans are unchanged."""
    from lerobot.policies.rtc.configuration_rtc import RTCConfig

    config.rtc_config = config.rtc_config or RTCConfig()
    config.rtc_config.enabled = True


def _compile(policy: Any) -> None:
    """Compile the parts that make a plan in place: the weights keep their names."""
    for child in policy.children():
        if hasattr(child, "sample_actions"):
            child.sample_actions = torch.compile(child.sample_actions)
        else:
            getattr(child, "unet", child).compile()


def _alike(counts: np.ndarray) -> list[np.ndarray]:
    """Return the indices of each group of equal numbers."""
    return [np.flatnonzero(counts == count) for count in np.unique(counts)]


@contextmanager
def _seeded(device: torch.device, draw: float) -> Iterator[None]:
    """Seed torch's generators by a draw in [0, 1) for a while; restore them afterwards."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(int(draw * SEEDS))
        yield


def _digest(folder: Path) -> str:
    """Return the hash of all files that LeRobot loaded the policy from."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in (".json", ".safetensors"):
            digest.update(f"{path.name} {path.stat().st_size}\n".encode())
            with path.open("rb") as file:
                while block := file.read(BLOCK):
                    digest.update(block)
    return digest.hexdigest()
