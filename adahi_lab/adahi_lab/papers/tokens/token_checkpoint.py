# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of token policies and of their action tokenizer, read without torch.

A directory holds `tokenizer.safetensors` and `tokenizer.json`, and the files of each policy. The JSON of a
policy has the fingerprint of its tokenizer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from safetensors.numpy import save_file

from adahi_lab.papers.tokens.frequency_codes import FrequencyCodec
from adahi_lab.papers.tokens.token_codes import TOKENS_MOST, VOCABULARY_MOST, BinCodec, TokenCodec
from adahi_lab.papers.tokens.token_sizes import TokenConfig
from adahi_ros.core.checkpoint_files import FORMAT, CheckpointError, read_description
from adahi_ros.core.schema import Schema, checked, within
from adahi_ros.core.signature import CodeSpace, Signature
from adahi_ros.core.tensor_files import read_tensors
from adahi_ros.core.written_files import replacing, save_json
from adahi_ros.policies.flat_signature import flat_signature
from adahi_ros.policies.networks.network_checkpoint import NetworkCheckpoint, read_network

KIND = "tokens"
CODECS: dict[str, Callable[[dict[str, np.ndarray], CodecSizes], TokenCodec]] = {
    BinCodec.kind: lambda arrays, sizes: BinCodec(arrays, sizes.codebook_size, sizes.chunk_length),
    FrequencyCodec.kind: lambda arrays, sizes: FrequencyCodec(arrays, sizes.codebooks, sizes.chunk_length),
}
"""Action tokenizers by kind, made from the arrays and sizes in their files."""


@dataclass(frozen=True)
class CodecSizes(Schema):
    """Sizes of an action tokenizer, in its JSON file and in recipes.

    Attributes:
        kind: a key of `CODECS`.
        chunk_length: T, actions of a chunk.
        codebook_size: K, the vocabulary.
        codebooks: N, most tokens of a chunk; of bins T * A, and 0 here.
    """

    kind: str
    chunk_length: Annotated[int, within(1, TOKENS_MOST, "an integer")]
    codebook_size: Annotated[int, within(2, VOCABULARY_MOST, "an integer")]
    codebooks: Annotated[int, within(0, TOKENS_MOST, "an integer")] = 0

    def __post_init__(self) -> None:
        if self.kind not in CODECS:
            raise ValueError(f"kind: {self.kind!r}, must be one of {', '.join(CODECS)}")
        if (self.codebooks > 0) != (self.kind == FrequencyCodec.kind):
            raise ValueError(
                f"codebooks: {self.codebooks}, must be above 0 for {FrequencyCodec.kind}, and only there"
            )


def save_codec(directory: Path, codec: TokenCodec) -> None:
    """Write an action tokenizer."""
    with replacing(directory / "tokenizer.safetensors") as partial:
        save_file({name: np.ascontiguousarray(each) for name, each in codec.arrays.items()}, partial)
    sizes = {"kind": codec.kind, "chunk_length": codec.chunk_length, "codebook_size": codec.codebook_size}
    if codec.end is not None:
        sizes["codebooks"] = codec.codebooks
    save_json(
        directory / "tokenizer.json", {"format": FORMAT, "fingerprint": codec.fingerprint, "config": sizes}
    )


def load_codec(directory: Path) -> TokenCodec:
    """Read an action tokenizer.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    path = directory / "tokenizer.json"
    meta, tensors = read_description(path), read_tensors(path.with_suffix(".safetensors"))
    try:
        sizes: CodecSizes = checked(CodecSizes, meta.get("config"))
        codec = CODECS[sizes.kind](tensors, sizes)
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{path}: not an action tokenizer ({error})") from None
    if codec.fingerprint != meta.get("fingerprint"):
        raise CheckpointError(f"{path}: fingerprint {meta.get('fingerprint')}, must be {codec.fingerprint}")
    return codec


@dataclass(frozen=True)
class TokenCheckpoint(NetworkCheckpoint[TokenConfig]):
    """A token policy on disk, and its tokenizer."""

    kind = KIND
    network = "adahi_lab.papers.tokens.token_torch:load_network"
    outputs = ("logits", "hidden", "present")

    codec: TokenCodec

    @property
    def signature(self) -> Signature:
        """What the policy reads and proposes."""
        sizes, codec = self.sizes, self.codec
        codes = CodeSpace(codec.fingerprint, codec.codebooks, codec.codebook_size, sequential=True)
        shape = (codec.chunk_length, codec.action_dim, sizes.observation_dim, sizes.goal_dim, sizes.image_dim)
        return flat_signature(sizes.window_length, *shape, codes, self.parameters)

    def inputs(self) -> dict[str, tuple[int, ...]]:
        """See `NetworkCheckpoint`; of two new positions after two."""
        sizes = self.sizes
        past = (sizes.layers, 2, sizes.heads, 2, sizes.width // sizes.heads)
        return {"embedded": (2, sizes.width), "past": past}

    def free_sizes(self) -> dict[str, dict[int, str]]:
        """See `NetworkCheckpoint`."""
        return {"embedded": {1: "new"}, "past": {4: "old"}}


def load_tokens(path: Path) -> TokenCheckpoint:
    """Read a policy's description from `DIRECTORY/NAME.json` (or the same path without suffix).

    Raises:
        CheckpointError: it is missing, damaged, or of another tokenizer than the one beside it.
    """
    weights, sizes, description = read_network(path, KIND, TokenConfig)
    path, codec = weights.with_suffix(".json"), load_codec(weights.parent)
    if description.get("fingerprint") != codec.fingerprint:
        found = description.get("fingerprint")
        raise CheckpointError(f"{path}: fingerprint: {found}, must be {codec.fingerprint}, the tokenizer's")
    for name in ("codebooks", "codebook_size", "action_dim"):
        found, wanted = getattr(sizes, name), getattr(codec, name)
        if found != wanted:
            raise CheckpointError(f"{path}: {name}: {found}, must be {wanted}, the tokenizer's")
    return TokenCheckpoint(weights, sizes, description, codec)
