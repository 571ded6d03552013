# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of VQ-BeT and of its action tokenizer, read without torch.

A directory holds `tokenizer.safetensors` and `tokenizer.json`, and the files of each policy. The JSON of a
policy has the fingerprint of its tokenizer.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from adahi_ros.core.checkpoint_files import CheckpointError, read_description
from adahi_ros.core.signature import CodeSpace, Signature
from adahi_ros.core.tensor_files import read_tensors
from adahi_ros.policies.flat_signature import flat_signature
from adahi_ros.policies.networks.network_checkpoint import NetworkCheckpoint, RunNetwork, read_network
from adahi_ros.policies.registry import CheckpointKind
from adahi_ros.policies.vqbet.code_policy import ActionDecoder, CodePolicy
from adahi_ros.policies.vqbet.vqbet_sizes import VQBeTConfig

TABLE = "decode_table"


@dataclass(frozen=True)
class Checkpoint(NetworkCheckpoint[VQBeTConfig]):
    """A VQ-BeT on disk, and the decoder of its tokenizer."""

    kind = "vqbet"
    network = "adahi_ros.policies.vqbet.vqbet_torch:load_network"
    outputs = ("logits", "offsets")

    decoder: ActionDecoder

    @property
    def signature(self) -> Signature:
        """Inputs and proposals of the policy."""
        sizes = self.sizes
        return code_signature(
            self.decoder,
            sizes.window_length,
            sizes.observation_dim,
            sizes.goal_dim,
            sizes.image_dim,
            self.parameters,
        )

    def inputs(self) -> dict[str, tuple[int, ...]]:
        """See `NetworkCheckpoint`."""
        sizes = self.sizes
        return {"windows": (sizes.window_length, sizes.observation_dim), "goals": (sizes.goal_dim,)}


def code_signature(
    decoder: ActionDecoder,
    history: int,
    observation_dim: int,
    goal_dim: int = 0,
    image_dim: int = 0,
    parameters: int = 0,
) -> Signature:
    """Return the signature of a policy of codes with a decoder; see `flat_signature`."""
    codes = CodeSpace(decoder.fingerprint, decoder.codebooks, decoder.codebook_size)
    sizes = (decoder.chunk_length, decoder.action_dim, observation_dim, goal_dim, image_dim)
    return flat_signature(history, *sizes, codes, parameters)


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


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a policy's description from `DIRECTORY/NAME.json` (or the same path without suffix).

    Raises:
        CheckpointError: it is missing, damaged, or of another tokenizer than the one beside it.
    """
    weights, sizes, description = read_network(path, Checkpoint.kind, VQBeTConfig)
    path, decoder = weights.with_suffix(".json"), load_decoder(path.parent)
    fingerprint = description.get("fingerprint")
    if fingerprint != decoder.fingerprint:
        raise CheckpointError(
            f"{path}: tokenizer fingerprint {fingerprint}, the one beside it is {decoder.fingerprint}"
        )
    for size in ("codebooks", "codebook_size", "chunk_length", "action_dim"):
        found, wanted = getattr(sizes, size), getattr(decoder, size)
        if found != wanted:
            raise CheckpointError(f"{path}: {size}: {found}, must be {wanted}, the tokenizer's")
    return Checkpoint(weights, sizes, description, decoder)


def vqbet_policy(checkpoint: Checkpoint, run: RunNetwork, device: str = "cpu") -> CodePolicy:
    """Return the policy of a checkpoint, with a runtime of its network on a device."""
    return CodePolicy(checkpoint.signature, checkpoint.decoder, checkpoint.digest(), run, device)


VQBET = CheckpointKind(load_checkpoint, vqbet_policy)
