# SPDX-License-Identifier: Apache-2.0
"""A larger target with the same outputs: the trained one, grown.

The effect of a server's compute on a robot's latency shows only with a large network. So the heads of the
trained target are widened by hidden units with random incoming and zero outgoing weights: the function stays
the same, to rounding, and every weight is multiplied as any other. That is function-preserving
growth as in Net2Net (Chen et al., 2016), not a better policy.
"""

from __future__ import annotations

import hashlib
import math
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from adahi_lab.evaluation.loaded_policies import DRAFT_CODES
from adahi_lab.training.vqbet_files import save_with_export
from adahi_ros.policies.networks.onnx_cache import cache_folder
from adahi_ros.policies.vqbet.vqbet_checkpoint import Checkpoint, load_checkpoint, load_decoder
from adahi_ros.policies.vqbet.vqbet_network import VQBeT
from adahi_ros.policies.vqbet.vqbet_torch import load_network

PARAMETERS = 5_000_000
HEADS = ("code_head", "offset_head")
SHARED = (
    *("tokenizer.json", "tokenizer.safetensors"),
    *(f"{name}.{kind}" for name in ("draft", DRAFT_CODES) for kind in ("json", "safetensors", "onnx")),
)


def grow(model: VQBeT, parameters: int, seed: int = 0) -> VQBeT:
    """Return a network with at least a number of weights and the same predictions as another one.

    Args:
        model: the network to grow; it is not changed.
        parameters: weights to reach; exceeded by less than one hidden unit of each head.
        seed: of the new units' incoming weights.

    Raises:
        ValueError: the model already has as many.
    """
    before = model.parameters_count
    if parameters <= before:
        raise ValueError(f"parameters: {parameters}, must be above those of the trained one, {before}")
    trained = model.state_dict()
    hidden = model.config.head_hidden
    unit = sum(trained[f"{head}.0.weight"].shape[1] + 1 + len(trained[f"{head}.2.weight"]) for head in HEADS)
    config = replace(model.config, head_hidden=hidden + math.ceil((parameters - before) / unit))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        grown = VQBeT(config, model.moments, model.action_scale)
    weights = {name: value.clone() for name, value in grown.state_dict().items()}
    for head in HEADS:
        weights[f"{head}.2.weight"].zero_()
    for name, value in trained.items():
        weights[name][tuple(slice(size) for size in value.shape)] = value
    grown.load_state_dict(weights)
    return grown.eval().requires_grad_(False)


def grown_policies(folder: Path, parameters: int) -> Path:
    """Return a folder with the tokenizer, the draft and the grown target of another folder.

    It is made once and then kept in the user's cache.

    Args:
        folder: of the trained policies.
        parameters: see `grow`.

    Raises:
        CheckpointError: a policy is missing or damaged.
        ValueError: the target already has as many weights.
    """
    draft, target = load_checkpoint(folder / "draft"), load_checkpoint(folder / "target")
    shared = [name for name in SHARED if (folder / name).is_file()]
    origin = f"{draft.digest()} {target.digest()} {parameters} 0 {shared}"
    digest = hashlib.sha256(origin.encode()).hexdigest()[:16]
    grown = cache_folder() / "grown" / f"{folder.resolve().name}-{digest}"
    if not grown.is_dir():
        grown.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=grown.parent) as scratch:
            partial = Path(scratch) / grown.name
            _write(folder, shared, target, parameters, partial)
            try:
                partial.rename(grown)
            except OSError:  # another process was faster
                load_decoder(grown)
    return grown


def _write(folder: Path, shared: Sequence[str], target: Checkpoint, parameters: int, out: Path) -> None:
    out.mkdir()
    for name in shared:
        shutil.copy2(folder / name, out)
    model = grow(load_network(target), parameters)
    how = {
        "from": target.digest(),
        "head_hidden": [target.sizes.head_hidden, model.config.head_hidden],
        "seed": 0,
        "note": "units added that nothing listens to: the same function, to rounding, at a larger cost",
    }
    save_with_export(out, "target", model, {**target.training, "grown": how})
