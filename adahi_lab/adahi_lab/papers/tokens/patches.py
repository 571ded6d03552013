# SPDX-License-Identifier: Apache-2.0
"""Patches of an image, for policies that read them as positions of a transformer."""

from __future__ import annotations

from typing import Any, TypeVar

from adahi_lab.papers.tokens.token_sizes import COLOURS, TokenConfig

HALF = 127.5  # of the range of a pixel; networks read it from -1 to 1
A = TypeVar("A", bound=Any)


def patches_of(pixels: A, sizes: TokenConfig) -> A:
    """Return the patches (B, P, 3 side^2) of images (B, image_dim), row by row; numpy's or torch's."""
    (rows, columns), side = sizes.grid, sizes.patch
    cut = pixels.reshape(-1, rows, side, columns, side * COLOURS)
    return cut.swapaxes(2, 3).reshape(-1, rows * columns, COLOURS * side**2)
