"""Observation windows on the air: only what the verifier has not seen.

A window repeats all but the newest rows of the one before it. The robot names a window that the verifier
has answered about by its digest, and sends the rows since; the verifier puts both together. Windows are
named by what is in them, so neither a restart on either side nor an old packet can make a wrong window.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from adahi_ros.speculation.request import RequestError, RequestFault

WHOLE = 0  # as a base: none
ROBOTS_KEPT = 256
WINDOWS_KEPT = 4  # per robot: answers that come too late leave the robot with an older base


@dataclass(frozen=True)
class WindowUpdate:
    """A window as it is sent.

    Attributes:
        base: digest of the window that this one continues, or `WHOLE`.
        rows: (R, O) float32, the newest; all H of them where whole.
        goal: (G,) float32; empty where it is the base's.
    """

    base: int
    rows: np.ndarray
    goal: np.ndarray


@dataclass(frozen=True)
class _Known:
    digest: int
    window: np.ndarray
    goal: np.ndarray


def window_digest(window: np.ndarray, goal: np.ndarray) -> int:
    """Name a window (H, O) with its goal (G,) by its content: 64 bits, never `WHOLE`."""
    content = blake2b(window.tobytes() + goal.tobytes(), digest_size=8).digest()
    return int.from_bytes(content, "little") or 1


def _known(window: np.ndarray, goal: np.ndarray) -> _Known:
    return _Known(window_digest(window, goal), window.copy(), goal.copy())


class SentWindows:
    """The robot's side: what the verifier has, and so need not be sent."""

    def __init__(self) -> None:
        self._base: _Known | None = None

    def forget(self) -> None:
        """Send the next window whole."""
        self._base = None

    def answered(self, window: np.ndarray, goal: np.ndarray) -> None:
        """The verifier has answered about a window (H, O) float32 with a goal (G,) float32: it has them."""
        self._base = _known(window, goal)

    def update(self, window: np.ndarray, goal: np.ndarray) -> WindowUpdate:
        """Return the least that says a window (H, O) float32 with a goal (G,) float32."""
        if self._base is None:
            return WindowUpdate(WHOLE, window, goal)
        # As bytes: what is not a number must not differ from itself, nor 0.0 be the same as -0.0.
        new, old = window.tobytes(), self._base.window.tobytes()
        row_bytes = len(new) // len(window)
        same_goal = goal.tobytes() == self._base.goal.tobytes()
        for rows in range(len(window)):
            if new[: len(new) - rows * row_bytes] == old[rows * row_bytes :]:
                sent = goal[:0] if same_goal else goal
                return WindowUpdate(self._base.digest, window[len(window) - rows :], sent)
        return WindowUpdate(WHOLE, window, goal)


class WindowCache:
    """The verifier's side: the last windows of each robot.

    Args:
        window_length: H.
        observation_dim: O.
    """

    def __init__(self, window_length: int, observation_dim: int) -> None:
        self._size = window_length * observation_dim
        self._row = observation_dim
        self._robots: OrderedDict[str, OrderedDict[int, _Known]] = OrderedDict()

    def complete(
        self, robot_id: str, base: int, rows: np.ndarray, goal: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the window and the goal, flat and unchecked, that an update says.

        Args:
            robot_id: of the robot that asks.
            base: digest of the base, or `WHOLE`.
            rows: (R * O,) float32.
            goal: (G,) float32; empty where it is the base's.

        Raises:
            RequestError: the base is not here, or the rows do not fit it.
        """
        if base == WHOLE:
            return rows, goal
        windows = self._robots.get(robot_id)
        known = None if windows is None else windows.get(base)
        if known is None:
            raise RequestError(
                RequestFault.WINDOW_UNKNOWN, f"base_window: {base:#x}, is not here; send the whole window"
            )
        if rows.size % self._row or rows.size >= self._size:
            raise RequestError(
                RequestFault.WRONG_SHAPE,
                f"observation_window: {rows.size} values after a base, must be a multiple of {self._row} "
                f"and below {self._size}",
            )
        window = np.concatenate([known.window.ravel()[rows.size :], rows])
        return window, goal if goal.size else known.goal

    def keep(self, robot_id: str, window: np.ndarray, goal: np.ndarray) -> None:
        """Remember a window (H, O) float32 that was answered about, with its goal (G,) float32."""
        windows = self._robots.setdefault(robot_id, OrderedDict())
        self._robots.move_to_end(robot_id)
        known = _known(window, goal)
        windows[known.digest] = known
        windows.move_to_end(known.digest)
        if len(windows) > WINDOWS_KEPT:
            windows.popitem(last=False)
        if len(self._robots) > ROBOTS_KEPT:
            self._robots.popitem(last=False)
