"""The methods that are compared: a gate on the robot, a rule at the verifier."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """One way to share the work between draft and target.

    Attributes:
        gate: a key of `gates.GATES`.
        rule: a key of `verifier.RULES`.
        label: for tables and pictures.
        about: one line for people.
    """

    gate: str
    rule: str
    label: str
    about: str


METHODS: dict[str, Method] = {
    "adahi": Method("deviation", "speculative", "ADAHI", "verify where the action deviates"),
    "hybrid": Method("always", "speculative", "Hybrid", "verify every step"),
    "draft": Method("never", "speculative", "Draft only", "never ask the target"),
    "target": Method("always", "target", "Target only", "the target acts, every observation is sent"),
    "random": Method("random", "speculative", "Random", "verify by lot, at ADAHI's rate"),
    "uncertainty": Method("uncertainty", "speculative", "Uncertainty", "verify where the draft was unsure"),
}


def parse_methods(text: str) -> list[str]:
    """Split a comma-separated list of methods.

    Raises:
        ValueError: an unknown one, or none.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        raise ValueError(f"methods: {', '.join(unknown) or text!r}, must be of {', '.join(METHODS)}")
    return names
