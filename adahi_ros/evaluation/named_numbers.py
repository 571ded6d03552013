"""Numbers in the names of methods, such as the threshold of plan:age@7."""

from __future__ import annotations

import math

from adahi_ros.texts import abridged

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
