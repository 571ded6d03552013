"""Checkpoints: weights as safetensors, everything else as JSON beside them. No pickle.

A directory holds `tokenizer.safetensors`, and per policy `NAME.safetensors`, `NAME.json` and, once
exported, `NAME.onnx`. The JSON carries the fingerprint of the tokenizer that the policy speaks.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from adahi_ros.files import parse_json, read_bytes
from adahi_ros.policy.decoder import ActionDecoder
from adahi_ros.policy.interface import PolicySpec

if TYPE_CHECKING:
    from adahi_ros.policy.tokenizer import ActionTokenizer
    from adahi_ros.policy.vqbet import VQBeT

FORMAT = 1
LARGEST_SIZE = 2**31
TABLE = "decode_table"


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged, or of another tokenizer. The message says which and why."""


@dataclass(frozen=True)
class Checkpoint:
    """A policy on disk, read but not yet running.

    Attributes:
        weights: path of its safetensors file.
        config: the arguments of `VQBeTConfig`.
        spec: its sizes.
        decoder: the tokenizer's decoder.
        training: how it was made.
    """

    weights: Path
    config: dict[str, int]
    spec: PolicySpec
    decoder: ActionDecoder
    training: dict[str, Any]

    def digest(self) -> str:
        """Return 16 hexadecimal digits of the SHA-256 of the network: its configuration and weights."""
        config = json.dumps(self.config, sort_keys=True).encode()
        return hashlib.sha256(config + self.weights.read_bytes()).hexdigest()[:16]


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = parse_json(read_bytes(path))
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such checkpoint") from None
    except ValueError as error:
        raise CheckpointError(f"{path}: not JSON ({error})") from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise CheckpointError(f"{path}: format: must be {FORMAT}")
    return value


def _read_tensors(path: Path) -> dict[str, np.ndarray]:
    try:
        return dict(load_file(path))
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such checkpoint") from None
    except SafetensorError as error:
        raise CheckpointError(f"{path}: not a safetensors file ({error})") from None


def save_tokenizer(directory: Path, tokenizer: ActionTokenizer, training: dict[str, Any]) -> ActionDecoder:
    """Write a trained tokenizer with its decode table; return the decoder as it will be read."""
    import torch
    from safetensors.torch import save_file

    decoder = tokenizer.freeze()
    tensors = {name: value.contiguous() for name, value in tokenizer.state_dict().items()}
    tensors[TABLE] = torch.from_numpy(decoder.table)
    directory.mkdir(parents=True, exist_ok=True)
    save_file(tensors, directory / "tokenizer.safetensors")
    _write_json(
        directory / "tokenizer.json",
        {
            "format": FORMAT,
            "fingerprint": decoder.fingerprint,
            "config": asdict(tokenizer.config),
            "training": training,
        },
    )
    return decoder


def load_decoder(directory: Path) -> ActionDecoder:
    """Read the decoder of a saved tokenizer, without torch.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    meta = _read_json(directory / "tokenizer.json")
    path = directory / "tokenizer.safetensors"
    tensors = _read_tensors(path)
    try:
        decoder = ActionDecoder(tensors[TABLE], tensors["action_scale"])
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{path}: {error}") from None
    if decoder.fingerprint != meta.get("fingerprint"):
        raise CheckpointError(
            f"{path}: fingerprint {decoder.fingerprint}, but tokenizer.json says {meta.get('fingerprint')}"
        )
    return decoder


def load_tokenizer(directory: Path) -> ActionTokenizer:
    """Read a saved tokenizer to encode with it.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    import torch

    from adahi_ros.policy.tokenizer import ActionTokenizer, TokenizerConfig

    load_decoder(directory)
    path = directory / "tokenizer.safetensors"
    tensors = {name: torch.from_numpy(value) for name, value in _read_tensors(path).items() if name != TABLE}
    try:
        config = TokenizerConfig(**_read_json(directory / "tokenizer.json")["config"])
        tokenizer = ActionTokenizer(config, tensors["action_mean"], tensors["action_scale"])
        tokenizer.load_state_dict(tensors)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path}: does not fit the config in tokenizer.json ({error})") from None
    return tokenizer.eval().requires_grad_(False)


def save_policy(directory: Path, name: str, model: VQBeT, training: dict[str, Any]) -> None:
    """Write a trained policy beside the saved tokenizer that it speaks."""
    from safetensors.torch import save_file

    fingerprint = load_decoder(directory).fingerprint
    tensors = {key: value.contiguous() for key, value in model.state_dict().items()}
    save_file(tensors, directory / f"{name}.safetensors")
    _write_json(
        directory / f"{name}.json",
        {
            "format": FORMAT,
            "kind": "vqbet",
            "fingerprint": fingerprint,
            "parameters": model.parameters_count,
            "config": asdict(model.config),
            "training": training,
        },
    )


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a policy's description from `DIRECTORY/NAME.json` (or the same path without suffix).

    Raises:
        CheckpointError: it is missing, damaged, or speaks another tokenizer than the one beside it.
    """
    path = path if path.suffix == ".json" else path.with_name(path.name + ".json")
    meta = _read_json(path)
    decoder = load_decoder(path.parent)
    if meta.get("fingerprint") != decoder.fingerprint:
        raise CheckpointError(
            f"{path}: tokenizer fingerprint {meta.get('fingerprint')}, "
            f"the one beside it is {decoder.fingerprint}"
        )
    sizes = [field.name for field in fields(PolicySpec) if field.name != "parameters"]
    if meta.get("kind") != "vqbet":
        raise CheckpointError(f"{path}: kind: {meta.get('kind')!r}, must be 'vqbet'")
    try:
        config = dict(meta["config"])
        spec = PolicySpec(**{size: config[size] for size in sizes}, parameters=meta["parameters"])
        for size, value in vars(spec).items():
            if type(value) is not int or not 0 <= value <= LARGEST_SIZE:
                raise ValueError(f"{size}: {value!r}, must be an integer from 0 to {LARGEST_SIZE}")
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: not a whole description of a policy ({error})") from None
    weights = path.with_suffix(".safetensors")
    if not weights.is_file():
        raise CheckpointError(f"{weights}: no such checkpoint")
    return Checkpoint(weights, config, spec, decoder, meta.get("training", {}))
