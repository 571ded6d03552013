# SPDX-License-Identifier: Apache-2.0
"""How much memory a policy takes, of the process and of its GPU."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

KIB = 1024
RESIDENT = 1  # place in /proc/self/statm, in pages


def memory_figures(device: str) -> dict[str, int]:
    """Return by name what of memory is taken now, and was at most.

    Of the process, its resident set; of a GPU, what torch's tensors take, and how much the GPU has.

    Args:
        device: as torch calls it, where a policy computes in this process; else any text.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[RESIDENT])
    now, peak = pages * resource.getpagesize(), KIB * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures = {"memory_bytes": now, "memory_peak_bytes": max(now, peak)}  # Linux notes the peak now and then
    torch = sys.modules.get("torch")  # who computes on a GPU has imported it
    if torch is not None and device.startswith("cuda"):
        figures |= {
            "device_memory_bytes": torch.cuda.memory_allocated(device),
            "device_memory_peak_bytes": torch.cuda.max_memory_allocated(device),
            "device_memory_total_bytes": torch.cuda.get_device_properties(device).total_memory,
        }
    return figures
