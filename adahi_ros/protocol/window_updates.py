# SPDX-License-Identifier: Apache-2.0
"""Observation windows on the air: only what the verifier has not seen.

A window repeats all but the newest rows of the one before it. The robot names a window that the verifier
has replied about by its digest, and sends the rows since; the verifier puts both together. Windows are
named by what is sent of them, so neither a restart on either side nor an old packet can make a wrong window,
and a row whose images were decoded once is known when it comes again.
"""

from __future__ import annotations

from typing import NamedTuple

from adahi_ros.protocol.window import WireRows

WHOLE = 0  # as a base: none


class WindowUpdate(NamedTuple):
    """A window as it is sent.

    Attributes:
        base: digest of the window that this one continues, or `WHOLE`.
        rows: the newest; all H of them where whole.
        goal: G float32; empty where it is the base's.
    """

    base: int
    rows: WireRows
    goal: bytes
