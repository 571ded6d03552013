# SPDX-License-Identifier: Apache-2.0
"""Chooses among measured methods: as good as the best, with the fewest requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adahi_lab.figures import Figures


@dataclass(frozen=True)
class Choice:
    """The recommended method.

    Attributes:
        name: of the method.
        as_good: methods with a success within chance of the best one's, ordered by their requests.
        sentence: text with figures and intervals.
    """

    name: str
    as_good: tuple[str, ...]
    sentence: str


def chosen(figures: Mapping[str, Figures]) -> Choice:
    """Choose a method.

    A method is as good as the most successful one where its success rate is not below the 95 % interval of
    that one. Among these the one with the lowest transmission rate is taken.

    Args:
        figures: by method, as `evaluate_methods` returns them.

    Raises:
        ValueError: there are no figures.
    """
    if not figures:
        raise ValueError("figures: empty, must have at least one method")
    most = max(figures, key=lambda name: figures[name]["success_rate"])
    least = figures[most]["success_ci95"][0]
    as_good = sorted(
        (name for name in figures if figures[name]["success_rate"] >= least),
        key=lambda name: figures[name]["transmission_rate"],
    )
    best = as_good[0]
    low, high = figures[best]["success_ci95"]
    sentence = (
        f"use {best}: success {figures[best]['success_rate']:.3f} ({low:.2f} to {high:.2f}), "
        f"requests at {figures[best]['transmission_rate']:.3f} of the steps"
    )
    if best != most:
        sentence += f"; {most} has {figures[most]['success_rate']:.3f}, within chance of that"
    return Choice(best, tuple(as_good), sentence)
