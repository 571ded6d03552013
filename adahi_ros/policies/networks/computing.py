# SPDX-License-Identifier: Apache-2.0
"""Where and how a network computes with torch: on which device, in which numbers, compiled or not."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn

DTYPES = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
"""By name; of float32, the weights' own."""


def device_called(name: str) -> torch.device:
    """Return the device that is called so by torch; of `auto`, cuda where there is one, else cpu.

    Raises:
        ValueError: torch knows no such device, or has none here.
    """
    told = name
    if told == "auto":
        told = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(told)
        torch.empty(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device: {name!r}, must be auto, or one that torch has here ({reason})") from None
    return device


def autocast(device: torch.device, dtype: torch.dtype | None) -> AbstractContextManager[Any]:
    """Return within what a network's matrix products are in such numbers; None for those of its weights."""
    return nullcontext() if dtype is None else torch.autocast(device.type, dtype)


class OnTorch:
    """Runs a network: arrays of float32 in and out.

    Args:
        network: ready to predict; its tensors are moved to the device.
        device: see `device_called`.
        dtype: a key of `DTYPES`, by autocast.
        compile: by torch.compile, as it is first called.

    Attributes:
        device: where it computes.

    Raises:
        ValueError: there is no such device, or dtype; names the field, the value and what was allowed.
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
        """Return what the network makes of arrays; what it makes alone, as a tuple of one."""
        given = [torch.from_numpy(each).to(self.device) for each in arrays]
        with autocast(self.device, self._dtype):
            made = self._network(*given)
        each_made = made if isinstance(made, tuple) else (made,)
        return tuple(each.float().cpu().numpy() for each in each_made)
