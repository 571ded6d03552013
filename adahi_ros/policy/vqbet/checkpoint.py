"""Checkpoints: weights as safetensors, everything else as JSON beside them. No pickle.

A directory holds `tokenizer.safetensors`, and per policy `NAME.safetensors`, `NAME.json` and, once
exported, `NAME.onnx`. The JSON carries the fingerprint of the tokenizer that the policy speaks, and the hash
of the ONNX file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file

from adahi_ros.files import LARGEST_WEIGHTS, check_size, parse_json, read_bytes, replacing, save_json
from adahi_ros.policy.vqbet.decoder import ActionDecoder
from adahi_ros.policy.vqbet.sizes import NetworkSizes

if TYPE_CHECKING:
    from adahi_ros.policy.vqbet.network import VQBeT
    from adahi_ros.policy.vqbet.tokenizer import ActionTokenizer

FORMAT = 1
LARGEST_SIZE = 2**31
LONGEST_WINDOW = 4096  # attention takes the square of it
TABLE = "decode_table"
NETWORK_SIZES = ("width", "layers", "heads", "head_hidden")
Shapes = dict[str, tuple[int, ...]]
# What a reader raises of a file that is none, or has tensors that numpy or torch cannot hold.
UNREADABLE = (SafetensorError, OSError, ValueError, TypeError, AttributeError, KeyError, RuntimeError)


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged, or of another tokenizer. The message says which and why."""


@dataclass(frozen=True)
class Checkpoint:
    """A policy on disk, read but not yet running.

    Attributes:
        weights: path of its safetensors file.
        config: the arguments of `VQBeTConfig`.
        sizes: of the network.
        decoder: the tokenizer's decoder.
        training: how it was made.
    """

    weights: Path
    config: dict[str, int]
    sizes: NetworkSizes
    decoder: ActionDecoder
    training: dict[str, Any]

    def digest(self) -> str:
        """Return 16 hexadecimal digits of the SHA-256 of the network: its configuration and weights."""
        config = json.dumps(self.config, sort_keys=True).encode()
        return hashlib.sha256(config + self.weights.read_bytes()).hexdigest()[:16]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = parse_json(read_bytes(path))
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such checkpoint") from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: not JSON ({error})") from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise CheckpointError(f"{path}: format: must be {FORMAT}")
    return value


def _read_tensors(path: Path) -> dict[str, np.ndarray]:
    try:
        check_size(path, LARGEST_WEIGHTS)
        return dict(load_file(path))
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such checkpoint") from None
    except UNREADABLE as error:
        raise CheckpointError(f"{path}: not a safetensors file ({error})") from None


def read_shapes(path: Path) -> Shapes:
    """Return the shapes of the tensors in a safetensors file; of these themselves, nothing is read.

    Raises:
        CheckpointError: there is no such file, it is none, or too large.
    """
    try:
        check_size(path, LARGEST_WEIGHTS)
        with safe_open(path, framework="numpy") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such checkpoint") from None
    except UNREADABLE as error:
        raise CheckpointError(f"{path}: not a safetensors file ({error})") from None


def check_count(field: str, asked: int, shapes: Shapes, before: str, after: str) -> None:
    """Check that there are as many layers as a configuration asks for, numbered from 0.

    Args:
        field: of the configuration.
        asked: its value.
        shapes: of the weights.
        before: what is left of the number in the name of one tensor of each layer.
        after: what is right of it.

    Raises:
        ValueError: there are more, or fewer.
    """
    found = sum(name.startswith(before) and name.endswith(after) for name in shapes)
    if asked != found:
        raise ValueError(f"{field}: {asked!r}, must be {found}, as many as there are {before}*{after}")


def check_shapes(shapes: Shapes, wanted: Shapes) -> None:
    """Check that weights have the shapes that a configuration asks for, before anything is made by it.

    Raises:
        ValueError: one is missing, or of another shape.
    """
    for name, shape in wanted.items():
        if shapes.get(name) != shape:
            raise ValueError(f"{name}: of shape {shapes.get(name)}, must be {shape} as the config has it")


def _check_integers(sizes: dict[str, Any], most: int = LARGEST_SIZE) -> None:
    for size, value in sizes.items():
        if type(value) is not int or not 0 <= value <= most:
            raise ValueError(f"{size}: {value!r}, must be an integer from 0 to {most}")


def _check_network(config: dict[str, Any], shapes: Shapes) -> None:
    """Compare the sizes of a VQ-BeT with its weights: every size, and every layer by its largest part."""
    width, hidden, goal_dim = (config[size] for size in ("width", "head_hidden", "goal_dim"))
    codes = config["codebooks"] * config["codebook_size"]
    check_count("layers", config["layers"], shapes, "blocks.", ".mlp.0.weight")
    check_shapes(
        shapes,
        {
            "observation_in.weight": (width, config["observation_dim"]),
            "goal_mean": (goal_dim,),
            "action_scale": (config["action_dim"],),
            "position": (bool(goal_dim) + config["window_length"], width),
            **({"goal_in.weight": (width, goal_dim)} if goal_dim else {}),
            **{f"blocks.{layer}.mlp.0.weight": (4 * width, width) for layer in range(config["layers"])},
            "code_head.0.weight": (hidden, width),
            "code_head.2.weight": (codes, hidden),
            "offset_head.2.weight": (codes * config["chunk_length"] * config["action_dim"], hidden),
        },
    )


def _check_tokenizer(config: dict[str, Any], shapes: Shapes) -> None:
    """Compare the sizes of an action tokenizer with its weights."""
    _check_integers(config)
    hidden, latent, books = (config[size] for size in ("hidden", "latent_dim", "codebooks"))
    flat, book = config["chunk_length"] * config["action_dim"], (1, config["codebook_size"], latent)
    before, after = "quantizer.layers.", "._codebook.embed"
    check_count("codebooks", books, shapes, before, after)
    check_shapes(
        shapes,
        {
            "action_scale": (config["action_dim"],),
            "encoder.0.weight": (hidden, flat),
            "encoder.2.weight": (hidden, hidden),
            "encoder.4.weight": (latent, hidden),
            **{f"{before}{number}{after}": book for number in range(books)},
        },
    )


def save_tokenizer(directory: Path, tokenizer: ActionTokenizer, training: dict[str, Any]) -> ActionDecoder:
    """Write a trained tokenizer with its decode table; return the decoder as it will be read."""
    import torch
    from safetensors.torch import save_file

    decoder = tokenizer.freeze()
    tensors = {name: value.contiguous() for name, value in tokenizer.state_dict().items()}
    tensors[TABLE] = torch.from_numpy(decoder.table)
    with replacing(directory / "tokenizer.safetensors") as partial:
        save_file(tensors, partial)
    save_json(
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

    from adahi_ros.policy.vqbet.tokenizer import ActionTokenizer, TokenizerConfig

    load_decoder(directory)
    path = directory / "tokenizer.safetensors"
    tensors = {name: torch.from_numpy(value) for name, value in _read_tensors(path).items() if name != TABLE}
    try:
        sizes = _read_json(directory / "tokenizer.json")["config"]
        _check_tokenizer(sizes, read_shapes(path))
        config = TokenizerConfig(**sizes)
        tokenizer = ActionTokenizer(config, tensors["action_mean"], tensors["action_scale"])
        tokenizer.load_state_dict(tensors)
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path}: does not fit the config in tokenizer.json ({error})") from None
    return tokenizer.eval().requires_grad_(False)


def save_policy(directory: Path, name: str, model: VQBeT, training: dict[str, Any]) -> None:
    """Write a trained policy beside the saved tokenizer that it speaks."""
    from safetensors.torch import save_file

    fingerprint = load_decoder(directory).fingerprint
    tensors = {key: value.contiguous() for key, value in model.state_dict().items()}
    with replacing(directory / f"{name}.safetensors") as partial:
        save_file(tensors, partial)
    save_json(
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
    names = [field.name for field in fields(NetworkSizes) if field.name != "parameters"]
    if meta.get("kind") != "vqbet":
        raise CheckpointError(f"{path}: kind: {meta.get('kind')!r}, must be 'vqbet'")
    try:
        config = dict(meta["config"])
        sizes = NetworkSizes(**{name: config[name] for name in names}, parameters=meta["parameters"])
        _check_integers({**vars(sizes), **{size: config[size] for size in NETWORK_SIZES}})
        _check_integers({"window_length": sizes.window_length}, LONGEST_WINDOW)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: not a whole description of a policy ({error})") from None
    for size in ("codebooks", "codebook_size", "chunk_length", "action_dim"):
        if config[size] != getattr(decoder, size):
            raise CheckpointError(
                f"{path}: {size}: {config[size]}, must be {getattr(decoder, size)}, the tokenizer's"
            )
    weights = path.with_suffix(".safetensors")
    try:
        _check_network(config, read_shapes(weights))
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{weights}: {error}") from None
    return Checkpoint(weights, config, sizes, decoder, meta.get("training", {}))
