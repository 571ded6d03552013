# SPDX-License-Identifier: Apache-2.0
"""Makes the JPEG messages of an arm's cameras."""

from __future__ import annotations

import numpy as np
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import Header

from adahi_ros.nodes.common.messages import CAMERA_FRAME, to_stamp
from adahi_ros.vision.images import to_jpeg

JPEG_QUALITY = 90


def to_compressed(pixels: np.ndarray, stamp_ns: int) -> CompressedImage:
    """Make the message of an image (rows, columns, 3) uint8, as image_transport publishes it."""
    header = Header(stamp=to_stamp(stamp_ns), frame_id=CAMERA_FRAME)
    return CompressedImage(header=header, format="jpeg", data=to_jpeg(pixels, JPEG_QUALITY))
