# SPDX-License-Identifier: Apache-2.0
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

from adahi_ros.core.checkpoint_files import (
    CheckpointError,
    Shapes,
    check_count,
    check_integers,
    check_shapes,
    description_of_kind,
    read_description,
    read_shapes,
    read_tensors,
)
from adahi_ros.policies.vqbet.code_policy import ActionDecoder
from adahi_ros.policies.vqbet.vqbet_sizes import NetworkSizes

if TYPE_CHECKING:
    from adahi_ros.policies.vqbet.tokenizer import ActionTokenizer
    from adahi_ros.policies.vqbet.vqbet_network import VQBeT

LONGEST_WINDOW = 4096  # attention takes the square of it
TABLE = "decode_table"
NETWORK_SIZES = ("width", "layers", "heads", "head_hidden")


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
    check_integers(config)
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

    from adahi_ros.policies.networks.weights_file import save_weights

    decoder = tokenizer.freeze()
    save_weights(
        directory,
        "tokenizer",
        {**tokenizer.state_dict(), TABLE: torch.from_numpy(decoder.table)},
        fingerprint=decoder.fingerprint,
        config=asdict(tokenizer.config),
        training=training,
    )
    return decoder


def load_decoder(directory: Path) -> ActionDecoder:
    """Read the decoder of a saved tokenizer, without torch.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    meta = read_description(directory / "tokenizer.json")
    path = directory / "tokenizer.safetensors"
    tensors = read_tensors(path)
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

    from adahi_ros.policies.vqbet.tokenizer import ActionTokenizer, TokenizerConfig

    load_decoder(directory)
    path = directory / "tokenizer.safetensors"
    tensors = {name: torch.from_numpy(value) for name, value in read_tensors(path).items() if name != TABLE}
    try:
        sizes = read_description(directory / "tokenizer.json")["config"]
        _check_tokenizer(sizes, read_shapes(path))
        config = TokenizerConfig(**sizes)
        tokenizer = ActionTokenizer(config, tensors["action_mean"], tensors["action_scale"])
        tokenizer.load_state_dict(tensors)
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path}: does not fit the config in tokenizer.json ({error})") from None
    return tokenizer.eval().requires_grad_(False)


def save_policy(directory: Path, name: str, model: VQBeT, training: dict[str, Any]) -> None:
    """Write a trained policy beside the saved tokenizer that it speaks."""
    from adahi_ros.policies.networks.weights_file import save_weights

    save_weights(
        directory,
        name,
        model.state_dict(),
        kind="vqbet",
        fingerprint=load_decoder(directory).fingerprint,
        parameters=model.parameters_count,
        config=asdict(model.config),
        training=training,
    )


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a policy's description from `DIRECTORY/NAME.json` (or the same path without suffix).

    Raises:
        CheckpointError: it is missing, damaged, or speaks another tokenizer than the one beside it.
    """
    path, meta = description_of_kind(path, "vqbet")
    decoder = load_decoder(path.parent)
    if meta.get("fingerprint") != decoder.fingerprint:
        raise CheckpointError(
            f"{path}: tokenizer fingerprint {meta.get('fingerprint')}, "
            f"the one beside it is {decoder.fingerprint}"
        )
    names = [field.name for field in fields(NetworkSizes) if field.name not in ("parameters", "image_dim")]
    try:
        config = dict(meta["config"])
        sizes = NetworkSizes(
            **{name: config[name] for name in names},
            parameters=meta["parameters"],
            image_dim=config.get("image_dim", 0),  # older checkpoints have none
        )
        check_integers({**vars(sizes), **{size: config[size] for size in NETWORK_SIZES}})
        check_integers({"image_dim": sizes.image_dim}, sizes.observation_dim)
        check_integers({"window_length": sizes.window_length}, LONGEST_WINDOW)
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
