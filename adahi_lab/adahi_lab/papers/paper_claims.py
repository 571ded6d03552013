# SPDX-License-Identifier: Apache-2.0
"""Checks the paper's claims against measured figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adahi_lab.figures import Figures

KEPT = 0.95  # share of hybrid inference's success that ADAHI has to keep
MOST_TRANSMITTED = 0.62
PARTS = 0.75
POOR = 0.35  # share of the target's success above which the draft needs no help


@dataclass(frozen=True)
class Claim:
    """One claim on one task.

    Attributes:
        text: the claim.
        measured: the figures.
        holds: whether the claim holds.
    """

    text: str
    measured: str
    holds: bool


def check_claims(methods: Mapping[str, Figures]) -> list[Claim]:
    """Check the claims for which the methods they need were run.

    Args:
        methods: figures by method, as `adahi evaluate --json` writes them.
    """
    success = {name: float(figures["success_rate"]) for name, figures in methods.items()}
    claims: list[Claim] = []
    if {"hybrid", "target"} <= methods.keys():
        (low, high), found = methods["target"]["success_ci95"], success["hybrid"]
        text, measured = (
            "hybrid lies in the 95 % interval of target",
            f"{found:.3f} in {low:.3f} to {high:.3f}",
        )
        claims.append(Claim(text, measured, low <= found <= high))
    if {"adahi", "hybrid"} <= methods.keys():
        share = success["adahi"] / max(success["hybrid"], 1e-9)
        rate = methods["adahi"]["transmission_rate"]
        text = f"ADAHI keeps {KEPT} of hybrid's success, sending {MOST_TRANSMITTED} of the steps at most"
        claims.append(Claim(text, f"{share:.3f} at {rate:.3f}", share >= KEPT and rate <= MOST_TRANSMITTED))
    if {"adahi", "random"} <= methods.keys():
        apart = methods["random"]["success_ci95"][1] < methods["adahi"]["success_ci95"][0]
        text = "random at the same rate is below ADAHI, their intervals apart"
        claims.append(Claim(text, f"{success['random']:.3f} against {success['adahi']:.3f}", apart))
    if "target" in methods and methods["target"]["subtasks"] > 1:
        parts, whole = methods["target"]["subtasks_completed"], methods["target"]["subtasks"]
        text = f"the target completes {PARTS} of the sub-tasks on average, or more"
        claims.append(Claim(text, f"{parts:.2f} of {whole}", parts >= PARTS * whole))
    if {"draft", "target"} <= methods.keys():
        share = success["draft"] / max(success["target"], 1e-9)
        text = f"the draft alone has {POOR} of the target's success at most"
        claims.append(Claim(text, f"{share:.3f}", share <= POOR))
    return claims


def better_than_adahi(methods: Mapping[str, Figures]) -> list[str]:
    """Name the methods that transmit at most 0.01 more than ADAHI and succeed at least as often."""
    if "adahi" not in methods:
        return []
    ours = methods["adahi"]
    return [
        name
        for name, values in methods.items()
        if name != "adahi"
        and values["transmission_rate"] <= ours["transmission_rate"] + 0.01
        and values["success_rate"] >= ours["success_rate"]
    ]
