# SPDX-License-Identifier: Apache-2.0
"""How long a draft may act alone where its gate wants the target to be asked."""

from __future__ import annotations

FALLBACKS = ("draft", "hold")


class Fallback:
    """Counts the steps in a row whose draft was to be verified, and about which nothing was heard.

    Past a limit the draft is withheld: at every step, whatever its gate says, until the target has verified
    one. So ask about every step while it is withheld; a robot that stands still may never again draft what
    its gate would have verified. A step that the gate leaves to the draft does not count, and does not end
    the row either: else a gate that skips one now and then would keep a robot going without a target.

    Args:
        limit: of such steps in a row; 0 for none at all, None for no limit.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self.reset()

    def reset(self) -> None:
        """Begin to count."""
        self._alone = 0

    @property
    def withholds(self) -> bool:
        """Whether nothing of a draft is to be executed until the target has verified one."""
        return self._limit is not None and self._alone > self._limit

    def verified(self) -> None:
        """The target has verified a draft, or its plan is executed."""
        self._alone = 0

    def unverified(self) -> bool:
        """Count a draft that was to be verified and was not; return whether it may be executed."""
        self._alone += 1
        return not self.withholds

    @property
    def label(self) -> str:
        """What happens without a target, for people."""
        if self._limit is None:
            return "drafts are executed"
        if self._limit == 0:
            return "the robot is held"
        return f"drafts are executed for {self._limit} steps in a row, then the robot is held"
