"""What became of the inputs of a kind."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Outcome:
    """What became of the inputs of a kind.

    Attributes:
        kind: of input.
        inputs: that were given.
        named: of them, those that were answered with an error of ours, or said to be ignored.
        commands: that came meanwhile.
        compared: of them, those whose acceleration could be told.
        crashes: each with the number of its input.
        outside: commands outside of the envelope, likewise.
    """

    kind: str
    inputs: int = 0
    named: int = 0
    commands: int = 0
    compared: int = 0
    crashes: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
