# SPDX-License-Identifier: Apache-2.0
"""Memory of the process and its GPU."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from adahi_ros.nodes.common.spin import freeze_garbage

KIB = 1024
RESIDENT = 1  # place in /proc/self/statm, in pages


def free_memory() -> None:
    """Free what nothing refers to, and give a GPU's memory back to other processes."""
    freeze_garbage()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def memory_figures(device: str) -> dict[str, int]:
    """Return the current and largest memory use, by name.

    For the process this is its resident set; for a GPU, the memory of torch's tensors, and its total.

    Args:
        device: torch's name of it, if a policy computes in this process; else any text.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[RESIDENT])
    now, peak = pages * resource.getpagesize(), KIB * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures = {"memory_bytes": now, "memory_peak_bytes": max(now, peak)}  # Linux updates the peak rarely
    torch = sys.modules.get("torch")  # a policy on a GPU has imported it
    if torch is not None and device.startswith("cuda"):
        figures |= {
            "device_memory_bytes": torch.cuda.memory_allocated(device),
            "device_memory_peak_bytes": torch.cuda.max_memory_allocated(device),
            "device_memory_total_bytes": torch.cuda.get_device_properties(device).total_memory,
        }
    return figures
