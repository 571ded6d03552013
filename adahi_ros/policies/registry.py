# SPDX-License-Identifier: Apache-2.0
"""Kinds of policies by name; a new one is a line here, or an entry point of another package."""

from __future__ import annotations

from collections.abc import Callable

from adahi_ros.core.registry import Registry
from adahi_ros.policies.interface import Policy

COMPUTE = ("device", "dtype", "compile")
"""Where and how a policy computes; see `OnTorch`."""
DTYPES = ("float32", "bfloat16", "float16")
BACKENDS = ("int8", "onnxruntime", "torch")
"""Backends that run our checkpoints."""

POLICIES: Registry[Callable[..., Policy]] = Registry(
    "adahi_ros.policies",
    {
        "committee": "adahi_ros.policies.committee:load_committee",
        "groot": "adahi_ros.policies.remote.groot:GrootTarget",
        "lerobot": "adahi_ros.policies.remote.lerobot_target:LeRobotTarget",
        "openpi": "adahi_ros.policies.remote.openpi:OpenPiTarget",
    },
)
"""Kinds of policies in YAML files: called with the file's folder, and with keyword arguments.

Arguments in `COMPUTE` are also set by the parameters of a verifier.
"""


VQBET = (
    "adahi_ros.policies.vqbet.vqbet_checkpoint:load_checkpoint",
    "adahi_ros.policies.vqbet.vqbet_checkpoint:vqbet_policy",
)
"""The kind of a checkpoint without one; see `KINDS`."""
KINDS = {
    "flow": (
        "adahi_ros.policies.flow.flow_checkpoint:load_flow",
        "adahi_ros.policies.flow.flow_policy:FlowPolicy",
    ),
    "tokens": (
        "adahi_ros.policies.tokens.token_checkpoint:load_tokens",
        "adahi_ros.policies.tokens.token_policy:TokenPolicy",
    ),
}
"""Kinds of checkpoints: the reader of a `NetworkCheckpoint`, and the policy of one with its runtime."""
ON_EVERY_BACKEND = {
    "corrector": ("adahi_ros.policies.corrector.distilled:load_distilled", "ONNX Runtime"),
    "retrieval": ("adahi_ros.policies.retrieval:load_retrieval", "numpy"),
}
"""Kinds that run the same on every backend: the loader, and the library that runs it."""
