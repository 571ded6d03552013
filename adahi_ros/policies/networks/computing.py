# SPDX-License-Identifier: Apache-2.0
"""Device, number format and compilation of networks on torch."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from torch import nn

DTYPES = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
"""Number formats by name; None for float32, that of the weights."""


def device_called(name: str) -> torch.device:
    """Return the torch device of this name; for `auto`, cuda where available, else cpu.

    Raises:
        ValueError: torch does not know the device, or this machine has none.
    """
    chosen = name
    if chosen == "auto":
        chosen = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(chosen)
        torch.empty(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device: {name!r}, must be auto, or one that torch has here ({reason})") from None
    return device


def autocast(device: torch.device, dtype: torch.dtype | None) -> AbstractContextManager[object]:
    """Return the autocast context of a number format; None for that of the weights."""
    return nullcontext() if dtype is None else torch.autocast(device.type, dtype)


class OnTorch:
    """Runs a network: arrays of float32 in and out.

    Args:
        network: ready to predict; its tensors are moved to the device.
        device: see `device_called`.
        dtype: a key of `DTYPES`, by autocast.
        compile: by torch.compile, at the first call.

    Attributes:
        device: where it computes.

    Raises:
        ValueError: the device or dtype does not exist; names the field, the value and what was allowed.
    """

    def __init__(
        self, network: nn.Module, device: str = "cpu", dtype: str = "float32", compile: bool = False
    ) -> None:
        if dtype not in DTYPES:
            raise ValueError(f"dtype: {dtype!r}, must be one of {', '.join(DTYPES)}")
        self.device = device_called(device)
        self._dtype = DTYPES[dtype]
        self._network = network.to(self.device)
        if compile:
            self._network.compile()

    @torch.inference_mode()
    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the network's outputs for arrays; a single output as a tuple of one."""
        given = [torch.from_numpy(each).to(self.device) for each in arrays]
        with autocast(self.device, self._dtype):
            made = self._network(*given)
        each_made = made if isinstance(made, tuple) else (made,)
        return tuple(each.float().cpu().numpy() for each in each_made)
