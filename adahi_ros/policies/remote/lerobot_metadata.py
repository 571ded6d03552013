# SPDX-License-Identifier: Apache-2.0
"""What LeRobot's files say of a policy: inputs, outputs and ranges; read without LeRobot."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from adahi_ros.core.files import read_json
from adahi_ros.core.schema import checked
from adahi_ros.core.signature import ACTION, Ranges, Signature
from adahi_ros.policies.remote.described import DescribedTarget, PolicyMetadata, described
from adahi_ros.policies.remote.target_fields import TargetFile

INSTALL = "pip install lerobot==0.6.1 (Python 3.12 or 3.13), lerobot==0.4.4 (3.10 or 3.11)"
CONFIG = "config.json"
WEIGHTS = "model.safetensors"
TRAINED = "pretrained_model"  # the trainer's name of the folder
ADAPTER = "adapter_config.json"
EMPTY_CAMERA = "observation.images.empty_camera_"  # LeRobot fills it with black itself
TASK_TYPES = ("groot", "wall_x")  # types that read the task without LeRobot's tokenizer step
CHUNKS = ("action_chunk_size", "chunk_size", "n_action_steps")  # the first is what a plan has
PADS = ("pi0", "pi05", "pi0_fast")  # types that pad images themselves; others say so
COMPUTE = ("kind", "folder", "device", "dtype", "compile")
PROCESSORS = ("policy_preprocessor.json", "policy_postprocessor.json")
REACH = 2.5  # standard deviations, of numbers of which no range is known
STATISTICS = {"minimum": "min", "maximum": "max", "q01": "q01", "q99": "q99"}
"""LeRobot's names of the fields of `Ranges`."""


def described_by_files(beside: Path, values: Mapping[str, Any]) -> tuple[Signature, Ranges, Ranges]:
    """Return a target's signature, and the ranges of its features and actions.

    Args:
        beside: the folder of its file.
        values: content of the file, of `kind: lerobot`.

    Raises:
        ValueError: a file is missing or has other content; names the field, the value and what was allowed.
    """
    folder = beside / str(values.get("folder", ""))
    file = checked(TargetFile, {name: value for name, value in values.items() if name not in COMPUTE})
    target = described(file, metadata_of(folder))
    return target.signature, *learnt_ranges(folder, target)


DESCRIBED_BY_FILES = {"lerobot": described_by_files}  # by the kind of a target's file: nothing is loaded


def metadata_of(folder: Path) -> PolicyMetadata:
    """Return a policy's own description.

    Raises:
        ValueError: `config.json` is missing, or has other content; names the field and what was expected.
    """
    path = folder / CONFIG
    try:
        config = read_json(path)
    except FileNotFoundError:
        raise ValueError(f"{folder}: {no_policy(folder, str(folder), CONFIG)}") from None
    chunks = [config[name] for name in CHUNKS if isinstance(config.get(name), int)]
    inputs, outputs = (config.get(f"{name}_features") or {} for name in ("input", "output"))
    try:
        sizes = {name: (each["type"], tuple(map(int, each["shape"]))) for name, each in inputs.items()}
        (action_dim,) = outputs[ACTION]["shape"]
        horizon, history = chunks[0], int(config.get("n_obs_steps", 1))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise ValueError(
            f"{path}: must have a type that predicts chunks of actions, input_features and output_features"
        ) from None
    images = {
        name: shape[1:]
        for name, (kind, shape) in sizes.items()
        if kind == "VISUAL" and len(shape) == 3 and shape[0] == 3
    }
    state = {
        name: shape[0]
        for name, (kind, shape) in sizes.items()
        if kind in ("STATE", "ENV") and len(shape) == 1
    }
    for name in sizes.keys() - images.keys() - state.keys():
        kind, shape = sizes[name]
        raise ValueError(
            f"{path}: {name}: {kind} of shape {shape}, must be a state (N,) or an image (3, rows, columns)"
        )
    images = {name: size for name, size in images.items() if not name.startswith(EMPTY_CAMERA)}
    tokenized = any(
        step.get("registry_name") == "tokenizer_processor" for step in _steps(folder, PROCESSORS[0])
    )
    return PolicyMetadata(
        *(history, horizon, action_dim, state, images, tokenized or config.get("type") in TASK_TYPES),
        pads=config.get("type") in PADS or bool(config.get("resize_imgs_with_padding")),
    )


def no_policy(path: Path, name: str, missing: str) -> str:
    """Return what to do about a folder that has no policy of LeRobot's, for people.

    Args:
        path: of the folder.
        name: its name for people.
        missing: a file that it lacks.
    """
    trained = [*path.glob(TRAINED), *path.glob(f"*/{TRAINED}"), *path.glob(f"checkpoints/*/{TRAINED}")]
    if trained:
        newest = Path(name) / max(trained, key=lambda each: each.parent.name).relative_to(path)
        return f"is a training run, must be a checkpoint's: {newest}"
    if (path / ADAPTER).is_file():
        base = read_json(path / ADAPTER).get("base_model_name_or_path")
        return f"is a PEFT adapter, must be merged into {base} (merge_and_unload)"
    if not path.exists() and re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        return f"there is none; if it is a name on the hub: hf download {name} --local-dir {TRAINED}"
    files = f"{CONFIG}, {WEIGHTS}, {PROCESSORS[0]} and {PROCESSORS[1]}"
    return f"has no {missing}, must be a folder of LeRobot's with {files}"


def learnt_ranges(folder: Path, target: DescribedTarget) -> tuple[Ranges, Ranges]:
    """Return the ranges of a target's features and actions, as far as LeRobot's files have them.

    Args:
        folder: that LeRobot wrote.
        target: its features may be parts of LeRobot's, under other names.
    """
    found = dict(_statistics(folder))
    for name, mean in tuple(found.items()):  # of checkpoints that were converted, nothing else is known
        own, _, statistic = name.rpartition(".")
        if statistic == "mean" and f"{own}.std" in found and f"{own}.min" not in found:
            reach = REACH * found[f"{own}.std"]
            found |= {f"{own}.min": mean - reach, f"{own}.max": mean + reach}
    features: dict[str, list[float]] = {name: [] for name in STATISTICS}
    actions: dict[str, list[float]] = {name: [] for name in STATISTICS}
    begins: dict[str, int] = {}
    parts = [part for each in target.signature.features for part in target.parts[each.name].items()]
    for values, own, size in (
        *((features, own, size) for own, size in parts),
        (actions, ACTION, target.signature.action_dim),
    ):
        begin = begins.get(own, 0)
        begins[own] = begin + size
        for name, statistic in STATISTICS.items():
            numbers = found.get(f"{own}.{statistic}", np.full(0, math.nan))[begin : begin + size].tolist()
            values[name] += numbers if len(numbers) == size else [math.nan] * size
    return _ranges(features), _ranges(actions)


def _ranges(values: dict[str, list[float]]) -> Ranges:
    known = {name: tuple(each) for name, each in values.items() if np.isfinite(each).any()}
    return Ranges(**known)


def _statistics(folder: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Yield LeRobot's statistics by their names, such as `action.min`."""
    for name in PROCESSORS:
        for step in _steps(folder, name):
            state = step.get("state_file")
            if isinstance(state, str):
                try:
                    numbers = load_file(folder / Path(state).name)
                except (OSError, SafetensorError, KeyError, TypeError):  # not there, or not numpy's types
                    continue
                yield from ((key, each.astype(np.float64).ravel()) for key, each in numbers.items())


def _steps(folder: Path, name: str) -> list[dict[str, Any]]:
    path = folder / name
    steps = read_json(path).get("steps") if path.is_file() else None
    return [step for step in steps or () if isinstance(step, dict)]
