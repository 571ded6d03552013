# SPDX-License-Identifier: Apache-2.0
"""Numbers in the names of methods, such as the threshold of plan:age@7."""

from __future__ import annotations

import math

from adahi_ros.core.texts import abridged

LONGEST = 32  # characters; of more digits a number has no use
SHOWN = 100  # characters of a name that is refused


def named_number(method: str, field: str, text: str) -> float | None:
    """Return the number that a text in a method's name says; None where it is no number.

    Raises:
        ValueError: it is infinite, not a number to IEEE 754, or too long; names method, field and text.
    """
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number) or len(text) > LONGEST:
        about = f"{abridged(method, SHOWN)}: {field}: {abridged(text, LONGEST)}"
        raise ValueError(f"{about}, must be a finite number of at most {LONGEST} characters")
    return number


def named_arguments(method: str, given: str) -> dict[str, float | str]:
    """Return what :NAME=VALUE in a method's name say, once or several times, as numbers where they are any.

    Raises:
        ValueError: a number is not finite or too long, or an argument is there twice.
    """
    pairs = [each.split("=") for each in given.split(":")[1:]]
    arguments: dict[str, float | str] = {}
    for key, text in pairs:
        number = named_number(method, key, text)
        arguments[key] = text if number is None else number
    if len(arguments) < len(pairs):
        raise ValueError(f"{abridged(method, SHOWN)}: must not name an argument twice")
    return arguments
