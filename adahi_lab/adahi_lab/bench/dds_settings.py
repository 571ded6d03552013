# SPDX-License-Identifier: Apache-2.0
"""DDS settings across a bad link, side by side: what DDS does by default, and config/dds."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from adahi_lab.bench.call_figures import call_figures
from adahi_lab.bench.link_ends import DDS, dds_environment, run_at_robot, serving
from adahi_lab.figures import Figures
from adahi_lab.link.emulator import EmulatedLink, emulated_link
from adahi_lab.link.link_profile import profile_named

LINKS = ("wifi_ac", "wifi_ac_loss_1", "wifi_ac_loss_5", "wifi_ac_bursts")
SIZES = {"1_kB": (1_000, 300), "100_kB": (100_000, 60)}  # bytes of a request, calls
TIMEOUT_S = 10.0
PROGRAM = ("-m", "adahi_lab.nodes.service_calls")
LIMIT_S = 40.0  # some settings lose nearly every call on some links


def compare_dds(sizes: Mapping[str, tuple[int, int]], seed: int, on_trial: Callable[[str], None]) -> Figures:
    """Measure service calls across `LINKS` by every setting of `DDS`.

    Args:
        sizes: of requests in bytes, and how many calls, by name.
        seed: of the links' draws.
        on_trial: called with the name of each measurement before it starts.

    Returns:
        By setting, size and link: `call_figures`.
    """
    found: dict[str, Any] = {setting: {size: {} for size in sizes} for setting in DDS}
    for name in LINKS:
        for size, (size_bytes, calls) in sizes.items():
            for setting in DDS:
                on_trial(f"{name}, {size}, {setting}")
                with emulated_link(profile_named(name), seed) as link:
                    found[setting][size][name] = _measure(link, setting, size_bytes, calls)
    return found


def _measure(link: EmulatedLink, setting: str, size_bytes: int, calls: int) -> Figures:
    variables = dds_environment(setting)
    with tempfile.TemporaryDirectory(prefix="adahi_dds_") as scratch:
        out = Path(scratch) / "calls.json"
        command = [*PROGRAM, "drive", "--size_bytes", str(size_bytes), "--calls", str(calls)]
        command += ["--timeout_s", str(TIMEOUT_S), "--limit_s", str(LIMIT_S), "--out", str(out)]
        with serving(link, [*PROGRAM, "serve"], variables, "ready"):
            run_at_robot(link, command, variables)
        figures = dict(call_figures([json.loads(out.read_text())]))
    del figures["compute_ms"]  # there is none
    return figures
