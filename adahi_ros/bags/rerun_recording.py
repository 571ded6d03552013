# SPDX-License-Identifier: Apache-2.0
"""Messages of a robot as a recording for the viewer of Rerun."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from adahi_ros.bags.recorded_topics import BESIDE_A_RUN, DRAFT_STATUS
from adahi_ros.core.texts import shortened
from adahi_ros.vision.images import from_image, to_jpeg
from adahi_ros.vision.interface import QUALITY, ImageError

KINDS = (
    *DRAFT_STATUS.values(),
    *BESIDE_A_RUN.values(),
    *(f"sensor_msgs/msg/{name}" for name in ("JointState", "Image", "CompressedImage")),
    *("trajectory_msgs/msg/JointTrajectory", "std_msgs/msg/Float64MultiArray", "std_msgs/msg/String"),
)
"""Types of messages that are shown."""
VIEWS = {
    "Actions": ("draft_status/action", "draft_status/planned_action"),
    "Gate": ("draft_status/score", "draft_status/threshold"),
    "Times, ms": ("draft_status/total_ms", "draft_status/verify_ms", "link_state/rtt_ms"),
    "Safety": ("safety_state/enabled", "safety_state/holding", "safety_state/counts"),
}
"""By title the curves of a view; the viewer adds views of what is in none."""
NAMES = ("name", "joint_names")
LEFT_OUT = ("header", "layout", "time_from_start", "__msgtype__", *NAMES)
CURVES_MOST = 128  # of one field


class RerunRecording:
    """Writes messages as curves of their numbers, images, and texts where they change.

    Args:
        out: file to write; or viewer, which is opened.
        namespace: of the robot, including namespaces below it; empty for all.
    """

    def __init__(self, out: str, namespace: str = "") -> None:
        import rerun
        from rerun.blueprint import Blueprint, Grid, TimeSeriesView

        self._rerun, self._recording = rerun, rerun.RecordingStream("adahi")
        self._inside = f"/{namespace.strip('/')}/" if namespace.strip("/") else "/"
        self._known: dict[str, object] = {}  # by path: names of its curves, or the last text
        if out == "viewer":
            self._recording.spawn()
        else:
            self._recording.save(out)
        views = [
            TimeSeriesView(name=title, contents=[f"{self._inside}{path}" for path in paths])
            for title, paths in VIEWS.items()
        ]
        self._recording.send_blueprint(Blueprint(Grid(*views), auto_views=True))

    def shows(self, topic: str, kind: str) -> bool:
        """Whether messages of a topic, of a type, are shown."""
        return kind in KINDS and topic.startswith(self._inside)

    def add(self, topic: str, message: Any, at_ns: int) -> None:
        """Write a message of rclpy or rosbags, and when it arrived; images that are none are left out."""
        self._recording.set_time("time", timestamp=np.datetime64(at_ns, "ns"))
        if hasattr(message, "encoding") or hasattr(message, "format"):
            with suppress(ImageError):
                jpeg = to_jpeg(from_image(message), QUALITY)
                self._recording.log(topic, self._rerun.EncodedImage(contents=jpeg, media_type="image/jpeg"))
            return
        for path, value, names in parts_of(message, topic):
            known, self._known[path] = self._known.get(path), value if isinstance(value, str) else names
            if not isinstance(value, str):
                if len(names) == len(value) and names != known:
                    self._recording.log(path, self._rerun.SeriesLines(names=names), static=True)
                self._recording.log(path, self._rerun.Scalars(value))
            elif value != known:
                self._recording.log(path, self._rerun.TextLog(shortened(value)))

    def close(self) -> None:
        """Write what is left."""
        self._recording.flush()
        self._recording.disconnect()


def parts_of(
    message: Any, path: str, names: tuple[str, ...] = ()
) -> Iterator[tuple[str, np.ndarray | str, tuple[str, ...]]]:
    """Yield paths and values of a message's fields: texts, or numbers (N,) with names of its joints.

    Of a list of messages, such as the points of a trajectory, it is the last one.
    """
    names = next((tuple(getattr(message, each)) for each in NAMES if hasattr(message, each)), names)
    for field in (each for each in _fields_of(message) if each not in LEFT_OUT):
        value, place = getattr(message, field), f"{path}/{field}"
        if isinstance(value, list) and value and _fields_of(value[-1]):
            value = value[-1]
        if isinstance(value, str):
            yield place, value, ()
        elif _fields_of(value):
            yield from parts_of(value, place, names)
        elif 0 < np.size(value) <= CURVES_MOST and np.asarray(value).dtype.kind in "biuf":
            yield place, np.ravel(value).astype(float), names


def _fields_of(message: Any) -> list[str]:
    """Return the names of a message's fields, without constants; none of another object."""
    by_ros = getattr(message, "get_fields_and_field_types", dict)
    names = getattr(message, "__dataclass_fields__", None) or by_ros()
    return [name for name in names if not name.isupper()]
